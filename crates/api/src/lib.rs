//! The HTTP API: routes, who may use them, and errors a person can act on.
//!
//! `router.rs` holds every route on one page. Requests are checked here and become records in the
//! store and jobs on a queue; this crate must never render or send anything itself.

mod app;
mod auth;
mod input;
mod problem;
mod router;
mod routes;

pub use app::{App, Limits};
pub use router::router;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves on `listener` until `stop`, then lets running requests end.
pub async fn run(listener: TcpListener, app: App, stop: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, router(app)).with_graceful_shutdown(stop.cancelled_owned()).await
}
