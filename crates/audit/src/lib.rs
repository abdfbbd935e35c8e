//! The audit log: what was changed, by whom, from where, and how it ended.
//!
//! ```text
//!   begin ──▶ the entry is committed ──▶ the change ──▶ settle: status, the record afterwards
//!     └── fails: nothing is changed         └── the process dies here: the outcome stays unknown
//! ```
//!
//! So no change is without a trace (docs/decisions/0030-audit-log.md). An order writes its entry in its own transaction
//! instead ([`Audit::settled_entry`]): it needs no second commit. Scans have a log of their own.
//!
//! | file | holds |
//! |---|---|
//! | this one | the verbs: begin, settle, refused, read, list |
//! | `subject.rs` | the kinds of records, and where they are kept |
//! | `record.rs` | a record as the log keeps it: without secrets, long texts by their hash |
//! | `refusals.rs` | how many refusals are written |
//! | `retention.rs` | old entries are removed |
//! | `csv.rs` | entries as CSV |
//!
//! This crate must never name routes.

mod csv;
mod record;
mod refusals;
mod retention;
mod subject;

use std::sync::Arc;

use serde_json::Value;
use stampede_model::{AuditId, KeyId, Role, Timestamp};
use stampede_store::{AuditEntry, AuditOutcome, AuditSettlement, Slice, Store};
pub use stampede_store::{AuditFilter, AuditOrigin};
use stampede_wire::audit::{Entry, Outcome};

pub use csv::as_csv;
pub use retention::Retention;
pub use subject::{Kind, Subject};

use refusals::Refusals;

/// The store does not answer, or cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] pub stampede_store::Error);

/// Who asks for a change, how and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The user.
    pub user: String,
    /// The user's role.
    pub role: Role,
    /// The key; `None`: a token of an identity provider, or a command.
    pub key: Option<KeyId>,
    /// How the change is asked for.
    pub origin: AuditOrigin,
    /// The address that the request comes from.
    pub address: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The operation.
    pub operation: String,
}

/// How a change ended.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// The status of the answer.
    pub status: u16,
    /// The record before the change, if others have changed it since the change began.
    pub before: Option<Value>,
    /// The record after the change; `None`: there is none.
    pub after: Option<Value>,
}

/// The audit log. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    refusals: Refusals,
}

impl Audit {
    /// The audit log in the store.
    pub fn new(store: Store) -> Self {
        Self { shared: Arc::new(Shared { store, refusals: Refusals::default() }) }
    }

    /// Notes what is about to be changed. The change may be made when this returns `Ok`, and not before.
    pub async fn begin(
        &self,
        attempt: &Attempt,
        subject: &Subject,
        before: Option<Value>,
    ) -> Result<AuditId, Error> {
        let entry = AuditEntry { before: before.map(record::kept), ..new(attempt, Some(subject)) };
        self.shared.store.append_audit(&entry, subject.kind.durability()).await?;
        Ok(entry.id)
    }

    /// Notes how a change ended. If this fails, the outcome stays unknown.
    pub async fn settle(&self, id: AuditId, ending: Ending) -> Result<(), Error> {
        let settlement = AuditSettlement {
            record: ending.after.as_ref().and_then(record::id_of),
            before: ending.before.map(record::kept),
            outcome: outcome(ending.status, ending.after),
        };
        self.shared.store.settle_audit(id, &settlement).await?;
        Ok(())
    }

    /// The entry of a change that is written in the transaction of the change.
    pub fn settled_entry(
        attempt: &Attempt,
        subject: &Subject,
        status: u16,
        after: Value,
    ) -> AuditEntry {
        let outcome = Some(outcome(status, Some(after)));
        AuditEntry { outcome, ..new(attempt, Some(subject)) }
    }

    /// Notes that somebody was refused a change (403). Only so many are written, because anybody with a key can be refused.
    pub async fn refused(&self, attempt: &Attempt, record: Option<String>) -> Result<(), Error> {
        let Some(left_out) = self.shared.refusals.one_more(&attempt.user) else { return Ok(()) };
        let outcome = Some(outcome(403, None));
        let entry = AuditEntry { record, outcome, left_out, ..new(attempt, None) };
        self.shared.store.append_audit(&entry, stampede_store::Durability::Relaxed).await?;
        Ok(())
    }

    /// One entry.
    pub async fn entry(&self, id: AuditId) -> Result<Option<Entry>, Error> {
        Ok(self.shared.store.audit_entry(id).await?.map(shown))
    }

    /// A part of the entries.
    pub async fn entries(
        &self,
        filter: &AuditFilter,
        slice: &Slice<AuditId>,
    ) -> Result<Vec<Entry>, Error> {
        let entries = self.shared.store.audit_entries(filter, slice).await?;
        Ok(entries.into_iter().map(shown).collect())
    }
}

fn new(attempt: &Attempt, subject: Option<&Subject>) -> AuditEntry {
    AuditEntry {
        id: AuditId::generate(),
        user: attempt.user.clone(),
        role: attempt.role,
        key: attempt.key,
        key_name: None,
        origin: attempt.origin,
        address: attempt.address.clone(),
        request_id: attempt.request_id.clone(),
        operation: attempt.operation.clone(),
        kind: subject.map(|subject| subject.kind.as_str().to_owned()),
        record: subject.and_then(|subject| subject.record.clone()),
        event: subject.and_then(|subject| subject.event),
        before: None,
        outcome: None,
        left_out: 0,
    }
}

fn outcome(status: u16, after: Option<Value>) -> AuditOutcome {
    AuditOutcome { status, at: now(), after: after.map(record::kept) }
}

/// The present, as precise as the store keeps it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// An entry as the API tells it.
fn shown(entry: AuditEntry) -> Entry {
    let status = entry.outcome.as_ref().map(|outcome| outcome.status);
    let settled_at = entry.outcome.as_ref().map(|outcome| outcome.at);
    Entry {
        id: entry.id,
        at: entry.id.at(),
        user: entry.user,
        role: entry.role,
        key: entry.key,
        key_name: entry.key_name,
        origin: match entry.origin {
            AuditOrigin::Api => stampede_wire::audit::Origin::Api,
            AuditOrigin::Command => stampede_wire::audit::Origin::Command,
        },
        address: entry.address,
        request_id: entry.request_id,
        operation: entry.operation,
        kind: entry.kind,
        record: entry.record,
        event: entry.event,
        outcome: match status {
            None => Outcome::Unknown,
            Some(403) => Outcome::Refused,
            Some(200..400) => Outcome::Done,
            Some(_) => Outcome::Failed,
        },
        status,
        settled_at,
        before: entry.before.as_deref().map(read),
        after: entry.outcome.and_then(|outcome| outcome.after).as_deref().map(read),
        left_out: entry.left_out,
    }
}

/// A record that was kept as JSON. A text that is none is shown as it is.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
