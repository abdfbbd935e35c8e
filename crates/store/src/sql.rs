//! Records in SQLite or PostgreSQL.
//!
//! Every query exists once. Both databases have the same tables and columns and are used through
//! `sqlx::Any`; `dialect.rs` holds what they say differently. Many rows go into one statement as one
//! JSON text, because both databases understand that form.
//!
//! Triggers in the database (see `migrations/`) keep the counters of a batch, in the same statement
//! that changes a ticket, and the counts of a campaign, in the same statement that changes a recipient. No code
//! here writes a counter.

mod address;
mod api_keys;
mod audit;
mod batches;
mod campaigns;
mod check_ins;
mod compiled_templates;
mod completions;
mod connect;
mod dialect;
mod error;
mod events;
mod file;
mod idempotent_requests;
mod last_write;
mod migrations;
mod orders;
mod outbox;
mod page;
mod pooled_connection;
mod probe;
mod rows;
mod seconds;
mod slices;
mod templates;
mod ticket_keys;
mod ticket_secret;
mod tickets;
mod transaction;
mod versions;
mod webhooks;

use std::sync::Arc;

use sqlx::{AnyConnection, AnyPool};
use tokio::sync::{Mutex, Notify};

use crate::limits::Limits;
use dialect::Dialect;
use last_write::LastWrite;
use seconds::Seconds;

/// A SQLite or PostgreSQL database with the connections of this process.
#[derive(Debug)]
pub(crate) struct Sql {
    pool: AnyPool,
    dialect: Dialect,
    /// SQLite has one writer at a time. Writers of this process wait here in order, without polling the
    /// lock of the file, for which only other processes then compete.
    writer_turn: Option<Arc<Mutex<()>>>,
    limits: Limits,
    /// Woken after every committed write of this process, for the relay of the outbox.
    writes: Arc<Notify>,
    /// Woken when this process has made deliveries of webhooks pending.
    pending: Notify,
    /// Tells whether the last write of this process failed because of an outage.
    last_write: LastWrite,
    /// A connection to SQLite that nobody uses. SQLite deletes the log and the index beside the database file
    /// when the last connection is closed. On a full disk both could not be created again, and nobody could
    /// read.
    anchor: Mutex<Option<AnyConnection>>,
    /// The address for people: no password, no parameters.
    shown: Arc<str>,
    /// How long reads and transactions take.
    seconds: Seconds,
}
