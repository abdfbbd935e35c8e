//! Interim, until the ticketing crate holds both: the state of batches for outside readers, and the job of a
//! ticket. `crates/api` includes this file, too.
#![allow(dead_code, reason = "the worker and the API use different parts")]

use std::time::Duration;

use serde_json::json;
use stampede_broker::{Backoff, Broker, Error, JobSpec, SnapshotWrite, Snapshots};
use stampede_model::{Batch, GenerateTicket, Ticket, TicketId};

/// How long the state of a finished batch is kept.
const KEEP_FINISHED: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the state of a batch in progress is kept after its last change.
const KEEP_OPEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// Writes `batch:{id}`, a name older software relies on (`docs/compatibility.md`).
#[derive(Clone)]
pub(crate) struct BatchMirror {
    snapshots: Snapshots,
}

impl BatchMirror {
    pub(crate) fn new(broker: &Broker) -> Self {
        Self { snapshots: broker.snapshots() }
    }

    /// Writes the state of a batch together with its list of tickets.
    pub(crate) async fn put(&self, batch: &Batch, tickets: &[TicketId]) -> Result<(), Error> {
        self.write(batch, Some(&json!(tickets).to_string())).await.map(drop)
    }

    /// Updates the state of a batch. `Ok(false)`: Redis has no such batch; it has to be `put`.
    pub(crate) async fn update(&self, batch: &Batch) -> Result<bool, Error> {
        self.write(batch, None).await
    }

    async fn write(&self, batch: &Batch, tickets: Option<&str>) -> Result<bool, Error> {
        let mut head = json!({
            "id": batch.id,
            "eventId": batch.event_id,
            "userId": batch.owner,
            "total": batch.total,
            "completed": batch.completed,
            "failed": batch.failed,
            "voided": batch.voided,
            "status": batch.status(),
            "createdAt": batch.created_at.as_millisecond(),
            "updatedAt": batch.updated_at.as_millisecond(),
        })
        .to_string();
        head.pop();
        let write = SnapshotWrite {
            key: &format!("batch:{}", batch.id),
            revision: batch.revision,
            head: &head,
            list_name: "tickets",
            list: tickets,
            keep: if batch.pending() == 0 { KEEP_FINISHED } else { KEEP_OPEN },
        };
        self.snapshots.write(write).await
    }
}

/// The job that makes a ticket: its id is the ticket's, so that nothing is made twice.
pub(crate) fn ticket_job(ticket: &Ticket) -> JobSpec {
    let payload = GenerateTicket { v: 1, ticket_id: ticket.id, batch_id: ticket.batch_id };
    JobSpec {
        id: ticket.id.to_string(),
        priority: if ticket.is_vip() { 1 } else { 10 },
        attempts: Some(3),
        backoff: Some(Backoff::Exponential(Duration::from_secs(2))),
        ..JobSpec::new(GenerateTicket::NAME, json!(payload))
    }
}
