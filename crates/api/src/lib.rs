//! The HTTP API: routes, who may use them, and errors a person can act on.
//!
//! `router.rs` holds every route on one page. A handler reads its input, calls one function of the crate that
//! holds the business (such as `ticketing`), and answers with a struct of `wire`. This crate must never hold a
//! rule that such a crate could hold.

mod app;
mod auth;
mod body;
mod client_address;
mod compression;
mod connection_places;
mod connections;
mod cors;
mod describe;
mod forms;
mod front;
mod headers;
mod idempotency;
mod input;
mod link_base;
mod live;
mod metrics;
mod orders_at_once;
mod page;
mod problem;
mod query;
mod ranges;
mod rate_limits;
mod refusals;
mod request_ids;
mod room;
mod router;
mod routes;
mod scope;
mod storage_check;
mod test_hooks;
mod trace;
mod turns;
mod unknown;
mod version;
mod write_limit;

pub use app::{App, AppParts, Limits};
pub use auth::Right;
pub use body::{Budget, Uploads};
pub use client_address::TrustedProxies;
pub use connections::{run, run_health, run_metrics};
pub use cors::Origins;
pub use describe::openapi;
pub use front::Front;
pub use idempotency::{AnswerShares, SHOWS_SECRET, forget_old_requests};
pub use link_base::LinkBase;
pub use live::Live;
pub use metrics::{MetricsPage, MetricsParts};
pub use orders_at_once::OrdersAtOnce;
pub use rate_limits::{RateLimitConfig, RateLimits};
pub use room::Route;
pub use router::routes;
pub use routes::health::Vitals;
pub use routes::templates::previews::preview_values;
pub use scope::{Reach, Record};
pub use storage_check::StorageCheck;
pub use turns::Turns;
