//! Completing and failing tickets: group commits of the workers.
//!
//! Many tickets go into one transaction, because a commit costs the same for one ticket as for a
//! hundred. Both operations are idempotent: a worker that died after the commit makes the ticket again,
//! and the repeated completion changes nothing.

use async_trait::async_trait;
use stampede_model::{Batch, Pdf, TicketId, Timestamp};

use crate::Result;

/// The PDF of a ticket is in the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The ticket.
    pub ticket_id: TicketId,
    /// The ticket's `updated_at` when it was read to make the PDF.
    pub seen: Timestamp,
    /// The PDF that was put into the files.
    pub pdf: Pdf,
    /// The worker that made it.
    pub worker: String,
    /// When it was made.
    pub at: Timestamp,
}

/// Making a ticket failed permanently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Why, for a person.
    pub reason: String,
    /// The worker that tried last.
    pub worker: String,
    /// When it tried.
    pub at: Timestamp,
}

/// Result of a group commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupCommit {
    /// The batch of every ticket named that exists, after the commit; by id.
    pub batches: Vec<Batch>,
    /// The tickets whose record this call changed; by id.
    pub changed: Vec<TicketId>,
}

/// Completions and failures of tickets. If a group names a ticket twice, the last entry counts.
#[async_trait]
pub trait Completions: Send + Sync {
    /// Records PDFs that are in the files: pending and failed tickets become completed, and a completed
    /// ticket takes the new PDF if it differs.
    ///
    /// Left alone are void and deleted tickets, and tickets that changed after they were read, because
    /// their PDF shows the former content ([`rules::takes_completion`](crate::rules::takes_completion)).
    ///
    /// Relaxed: if a power cut undoes it, the ticket is pending again and the reconciler has it made
    /// again, byte for byte.
    async fn complete_tickets(&self, completions: &[Completion]) -> Result<GroupCommit>;

    /// Records tickets that could not be made: pending tickets become failed, all others are left alone.
    ///
    /// Synced: it is rare and final, and the organiser acts on it.
    async fn fail_tickets(&self, failures: &[Failure]) -> Result<GroupCommit>;
}
