//! The audit log: what was changed, by whom, and how it ended.
//!
//! ```text
//!   append (before the change) ──▶ unsettled ── settle (after it) ──▶ settled, for ever
//!                                      └── the process died: the outcome stays unknown
//! ```
//!
//! An entry is appended before its change, relaxed: commits keep their order (`durability.rs`), so that no synced change
//! survives a power cut without its entry. A change outside of this database needs a synced entry. An order's entry is
//! written in the order's own transaction. A trigger refuses to change an entry that is settled.

use async_trait::async_trait;
use stampede_model::{AuditId, EventId, KeyId, Role, Timestamp};

use crate::{Durability, Result, Slice};

/// How a change was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOrigin {
    /// By a request to the API.
    Api,
    /// By a command on a machine that reaches the database.
    Command,
}

impl AuditOrigin {
    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Command => "command",
        }
    }

    /// Reads [`Self::as_str`] back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Api, Self::Command].into_iter().find(|origin| origin.as_str() == word)
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Names the entry. Its time is that of the entry.
    pub id: AuditId,
    /// The user who asked.
    pub user: String,
    /// The user's role.
    pub role: Role,
    /// The key of the request; `None`: a token of an identity provider, or a command.
    pub key: Option<KeyId>,
    /// The name that the key had; filled in when the entry is written.
    pub key_name: Option<String>,
    /// How the change was asked for.
    pub origin: AuditOrigin,
    /// The address that the request came from.
    pub address: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The operation, as the description of the API calls it.
    pub operation: String,
    /// The kind of the record.
    pub kind: Option<String>,
    /// The record: its id or its name.
    pub record: Option<String>,
    /// The event that the record belongs to.
    pub event: Option<EventId>,
    /// The record before the change, as JSON.
    pub before: Option<String>,
    /// How the change ended; `None`: it is not known.
    pub outcome: Option<AuditOutcome>,
    /// Refusals before this one that were not written, because there were too many.
    pub left_out: u32,
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOutcome {
    /// The status of the answer.
    pub status: u16,
    /// When it was known.
    pub at: Timestamp,
    /// The record after the change, as JSON.
    pub after: Option<String>,
}

/// How an entry is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettlement {
    /// How the change ended.
    pub outcome: AuditOutcome,
    /// The record before the change, if others have changed it since the entry was appended.
    pub before: Option<String>,
    /// The record, if it was made by the change.
    pub record: Option<String>,
}

/// Which entries to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only changes by this user.
    pub user: Option<String>,
    /// Only this operation.
    pub operation: Option<String>,
    /// Only changes of this record.
    pub record: Option<String>,
    /// Only changes of records of this event.
    pub event: Option<EventId>,
}

/// The audit log.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Writes an entry, settled or not.
    async fn append_audit(&self, entry: &AuditEntry, durability: Durability) -> Result<()>;

    /// Settles an entry; returns `false` if it is settled already, or removed. Relaxed: if a power cut undoes it, the outcome
    /// is unknown again.
    async fn settle_audit(&self, id: AuditId, settlement: &AuditSettlement) -> Result<bool>;

    /// Reads one entry.
    async fn audit_entry(&self, id: AuditId) -> Result<Option<AuditEntry>>;

    /// Reads a part of the entries.
    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        slice: &Slice<AuditId>,
    ) -> Result<Vec<AuditEntry>>;

    /// Removes at most `limit` of the oldest entries that are older than `before`; returns how many. Relaxed.
    async fn remove_audit_before(&self, before: Timestamp, limit: u32) -> Result<u64>;

    /// Removes at most `limit` of the oldest refusals beyond the newest `kept`; returns how many. Relaxed.
    async fn remove_refusals_beyond(&self, kept: u32, limit: u32) -> Result<u64>;
}
