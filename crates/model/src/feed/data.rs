//! The data of each kind. Fields are contracts (camelCase): fields are added, never renamed or removed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Change;
use crate::campaign::CampaignState;
use crate::{
    Batch, BatchId, BatchStatus, CampaignId, Event, EventId, GateId, ListId, ScanId, ScanKind,
    ScanResult, Ticket, TicketId, TicketStatus, Timestamp,
};

/// An event that was created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    /// The event.
    pub event_id: EventId,
    /// Its name.
    pub name: String,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
}

/// Counters of an order. A reader keeps those with the highest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchProgress {
    /// The order.
    pub batch_id: BatchId,
    /// Tickets in it.
    pub total: u64,
    /// Tickets whose PDF is ready.
    pub completed: u64,
    /// Tickets that failed permanently.
    pub failed: u64,
    /// Tickets withdrawn.
    pub voided: u64,
    /// Tickets still to be made.
    pub pending: u64,
    /// The state that follows from the counters.
    pub status: BatchStatus,
    /// Grows with every change of a counter.
    pub revision: u64,
}

/// A ticket whose PDF is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeTicket {
    /// The ticket.
    pub id: TicketId,
    /// Its number within the event.
    pub number: u32,
}

/// Tickets of one order whose PDFs are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeTickets {
    /// The order.
    pub batch_id: BatchId,
    /// The tickets, at most 100.
    pub tickets: Vec<MadeTicket>,
    /// Tickets of the order whose PDF is ready, these included.
    pub completed: u64,
    /// Tickets in the order.
    pub total: u64,
}

/// A ticket that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedTicket {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Its order.
    pub batch_id: BatchId,
    /// Its number within the event.
    pub number: u32,
    /// The reason, for people.
    pub error: String,
}

/// A ticket that was changed, withdrawn, issued anew, deleted, blocked or unblocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketData {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Its order.
    pub batch_id: BatchId,
    /// Its number within the event.
    pub number: u32,
    /// How often it was issued; only paper of the latest generation admits.
    pub generation: u32,
    /// The state of its PDF.
    pub status: TicketStatus,
}

/// A scan, without the guest's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanData {
    /// The scan.
    pub scan_id: ScanId,
    /// Its place in the order of the event's changes.
    pub seq: u64,
    /// The result: `ok`, or the reason of the refusal.
    pub result: ScanResult,
    /// The direction.
    pub kind: ScanKind,
    /// The ticket, if it is known.
    pub ticket_id: Option<TicketId>,
    /// Its number within the event.
    pub number: Option<u32>,
    /// The list.
    pub list: ListId,
    /// The gate.
    pub gate: Option<GateId>,
    /// The scanner's name.
    pub device: String,
    /// The moment of the scan by the server's clock.
    pub at: Timestamp,
    /// Whether the device decided without the server.
    pub offline: bool,
    /// Whether it let in a guest who should not have been let in.
    pub conflict: bool,
}

/// A campaign, with its recipients by state. A reader keeps the one with the highest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignData {
    /// The campaign; its routes are `/api/contracts`.
    pub campaign_id: CampaignId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: CampaignState,
    /// Why it has paused by itself; `null`: it has not.
    pub status_reason: Option<String>,
    /// All recipients.
    pub total: u64,
    /// Recipients that wait.
    pub pending: u64,
    /// Recipients with a job.
    pub queued: u64,
    /// Recipients that are being sent to.
    pub sending: u64,
    /// Recipients whose messages the provider accepted.
    pub sent: u64,
    /// Recipients whose messages arrived.
    pub delivered: u64,
    /// Recipients who have read their messages.
    pub read: u64,
    /// Recipients that failed.
    pub failed: u64,
    /// Recipients of which nobody knows whether the message arrived.
    pub unknown: u64,
    /// Recipients to which nothing is sent.
    pub skipped: u64,
    /// Grows with every change.
    pub revision: u64,
}

/// A job that failed permanently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterData {
    /// The queue.
    pub queue: String,
    /// The job.
    pub job_id: String,
    /// The job's type.
    pub name: String,
    /// The reason, for people.
    pub reason: String,
}

/// A queue that was paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueData {
    /// The queue.
    pub queue: String,
}

/// A node that was started or stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeData {
    /// The node.
    pub node: String,
}

/// A worker process that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerData {
    /// The worker.
    pub worker: String,
    /// Its node.
    pub node: String,
}

/// A decision about the workers of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingData {
    /// The node.
    pub node: Option<String>,
    /// The decision, such as `scale_up`.
    pub action: String,
    /// The reason, for people.
    pub reason: Option<String>,
}

/// A message to operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertData {
    /// The kind of the alert, such as `node-dead`.
    pub alert: String,
    /// The node, queue, campaign or account that it is about.
    pub subject: String,
    /// The message, for people.
    pub message: String,
}

impl From<&Event> for EventData {
    fn from(event: &Event) -> Self {
        Self {
            event_id: event.id,
            name: event.details.name.clone(),
            starts_at: event.details.starts_at,
        }
    }
}

impl From<&Batch> for BatchProgress {
    fn from(batch: &Batch) -> Self {
        Self {
            batch_id: batch.id,
            total: batch.total,
            completed: batch.completed,
            failed: batch.failed,
            voided: batch.voided,
            pending: batch.pending(),
            status: batch.status(),
            revision: batch.revision,
        }
    }
}

impl From<&Ticket> for TicketData {
    fn from(ticket: &Ticket) -> Self {
        Self {
            ticket_id: ticket.id,
            batch_id: ticket.batch_id,
            number: ticket.serial,
            generation: ticket.generation,
            status: ticket.status,
        }
    }
}

impl Change {
    /// The change of an order's counters: completed when no ticket is left to be made.
    pub fn of_batch(batch: &Batch) -> Self {
        match batch.pending() {
            0 => Self::BatchCompleted(batch.into()),
            _ => Self::BatchProgressed(batch.into()),
        }
    }
}
