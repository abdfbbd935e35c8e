//! The conformance suite: what every backend promises.
//!
//! A test is an async function that takes a [`Database`](crate::backends::Database). Naming it in
//! `on_every_backend!` at the top of its file makes one test a backend of it, for example
//! `suite::orders::sqlite::an_order_is_all_or_nothing`. A function that is not named there is dead code,
//! which the check refuses.

mod api_keys;
mod audit;
mod batches;
pub(crate) mod campaigns;
mod check_ins;
mod completions;
mod counters;
mod events;
mod idempotent_requests;
mod opening;
mod orders;
mod outbox;
mod rules;
pub(crate) mod samples;
mod templates;
mod ticket_keys;
mod ticket_secret;
mod tickets;
mod versions;
mod webhooks;
