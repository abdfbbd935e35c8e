//! The seam between [`Store`](crate::Store) and a database.
//!
//! A backend implements one trait a subject. Each trait is documented in the file of its subject with
//! what every operation promises; `tests/it/suite` checks the promises on every backend.
//!
//! Adding a backend? Implement the traits in a folder beside `sql/`, open it in `Store::connect`, and
//! name it in `on_every_backend!` of the tests.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{
    Accounts, ApiKeys, Audiences, AuditLog, Batches, Blocks, Campaigns, CheckInReports,
    CheckInSetup, CompiledTemplates, Completions, Events, IdempotentRequests, Ledger, Orders,
    Outbox, PastSends, Reports, Result, Scans, Suppressions, Templates, TestLog, TicketKeys,
    Tickets, WebhookDeliveries, Webhooks,
};

/// How the tables of a database compare with what this program needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// There are none yet.
    Empty,
    /// So many migrations of this program were not applied: an older program made them.
    Older(usize),
    /// They are those of this program.
    Current,
    /// This migration was applied, which this program does not know: a newer program made them.
    Newer(i64),
}

impl Schema {
    /// Compares the migrations that were applied with those that this program knows.
    pub(crate) fn compare(applied: &[i64], known: &[i64]) -> Self {
        if applied.is_empty() {
            return Self::Empty;
        }
        if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
            return Self::Newer(*newer);
        }
        match known.iter().filter(|version| !applied.contains(version)).count() {
            0 => Self::Current,
            missing => Self::Older(missing),
        }
    }
}

/// A database with the records of all subjects.
///
/// Every operation ends within a time limit, with `Error::Unavailable` if the database does not answer.
/// A caller may drop the future of an operation at any point: the change is then done whole or not at
/// all.
#[async_trait]
pub trait Backend:
    Events
    + Orders
    + Batches
    + Tickets
    + Completions
    + Templates
    + CompiledTemplates
    + ApiKeys
    + TicketKeys
    + CheckInSetup
    + Blocks
    + Scans
    + CheckInReports
    + AuditLog
    + IdempotentRequests
    + Outbox
    + Webhooks
    + WebhookDeliveries
    + Accounts
    + Campaigns
    + Audiences
    + Ledger
    + Reports
    + TestLog
    + PastSends
    + Suppressions
    + Debug
    + Send
    + Sync
    + 'static
{
    /// Brings the tables up to date; any number of processes may do so at the same time.
    async fn migrate(&self) -> Result<()>;

    /// How old the tables are. Nothing is changed.
    async fn schema(&self) -> Result<Schema>;

    /// Succeeds if the database answers and accepts writes. The error's text names no address.
    async fn ping(&self) -> Result<()>;

    /// Waits for running operations, then closes all connections.
    async fn close(&self);
}
