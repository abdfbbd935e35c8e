//! Records in SQLite or PostgreSQL: events with the keys that sign their tickets, batches, tickets,
//! templates, API keys.
//!
//! The store is the truth: whatever travels on a queue can be lost and is made again from here.
//! Every query exists once. Both databases have the same tables and columns, speak through
//! `sqlx::Any`, and what they say differently is in `dialect.rs`; bulk data goes in as one JSON
//! text, because that is the one form of "many rows" both understand.
//!
//! The counters of a batch are kept by triggers in the database (see `migrations/`), in the same
//! statement that changes a ticket. No code in this crate writes a counter.
//!
//! This crate knows no HTTP and no queues, reads no clock (times are passed in) and no environment.
//!
//! Adding a column? Write the next migration for both databases, then touch `rows.rs` and the
//! statements of its table.

mod address;
mod compiled;
mod completion;
mod connect;
mod dialect;
mod error;
mod events;
mod file;
mod keys;
mod lease;
mod migrations;
mod orders;
mod rows;
mod templates;
mod ticket_keys;
mod tickets;
mod transaction;
mod verification;

pub use completion::{Completion, Failure, Outcome};
pub use connect::{Config, Durability, Store};
pub use error::Error;
pub use events::Deleted;
pub use orders::Placed;
pub use templates::{NewRevision, Revised, TemplateDeleted};
pub use ticket_keys::{Revoked, Rotated, TicketSecret};
pub use tickets::{Edited, TicketEdit, TicketFilter};
pub use verification::Verdict;

/// What the operations of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
