//! The HTTP API: routes, who may use them, and errors a person can act on.
//!
//! `router.rs` holds every route on one page. Requests are checked here and become records in the
//! store and jobs on a queue; this crate must never render or send anything itself.

mod app;
mod auth;
mod connections;
mod input;
#[path = "../../worker/src/interim.rs"]
mod interim;
mod outlet;
mod problem;
mod query;
mod router;
mod routes;
mod turns;
mod unknown;

pub use app::{App, Limits};
pub use connections::{run, run_health};
pub use router::router;
pub use routes::health::Vitals;
pub use routes::templates::files::shown as template_files_json;
pub use routes::templates::previews::preview_values;
pub use routes::verify::verdict_json;
pub use turns::Turns;
