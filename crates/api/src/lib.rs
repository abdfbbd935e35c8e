//! The HTTP API: routes, who may use them, and errors a person can act on.
//!
//! `router.rs` holds every route on one page. A handler reads its input, calls one function of the crate that
//! holds the business (such as `ticketing`), and answers with a struct of `wire`. This crate must never hold a
//! rule that such a crate could hold.

mod app;
mod auth;
mod body;
mod connections;
mod describe;
mod forms;
mod headers;
mod input;
mod orders_at_once;
mod problem;
mod query;
mod refusals;
mod room;
mod router;
mod routes;
mod scope;
mod storage_check;
mod turns;
mod unknown;

pub use app::{App, Limits};
pub use auth::Right;
pub use body::Budget;
pub use connections::{run, run_health};
pub use describe::openapi;
pub use orders_at_once::OrdersAtOnce;
pub use room::Route;
pub use router::{router, routes};
pub use routes::health::Vitals;
pub use routes::templates::previews::preview_values;
pub use scope::{Reach, Record};
pub use storage_check::StorageCheck;
pub use turns::Turns;
