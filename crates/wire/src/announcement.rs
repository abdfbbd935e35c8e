//! Everything that is published on a Redis channel.
//!
//! Field names are contracts with older software (docs/compatibility.md): never rename one. Names of
//! `ticket:*` are in snake_case, all others in camelCase.
//!
//! Commands to nodes are not announcements: see [`crate::cluster`].

use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, TicketId};

use crate::cluster::{Alert, ScalingDecision, ScalingEvent};

/// A message on a channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Announcement {
    /// An order was accepted.
    BatchCreated(BatchCreated),
    /// A ticket's PDF is ready.
    TicketCompleted(TicketCompleted),
    /// A ticket failed permanently.
    TicketFailed(TicketFailed),
    /// A job failed permanently and is a dead letter now. The broker writes this message itself, inside the
    /// transaction that fails the job.
    DeadLetter(DeadLettered),
    /// A worker process was started.
    WorkerStarted(WorkerStarted),
    /// A node has changed the number of its workers.
    ScalingEvent(ScalingEvent),
    /// A coordinator has decided about a node.
    ScalingDecision(ScalingDecision),
    /// A message to operators.
    ClusterAlert(Alert),
}

/// `batch:created`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchCreated {
    /// The order.
    pub batch_id: BatchId,
    /// The user who ordered.
    pub user_id: String,
    /// Tickets in the order.
    pub quantity: u64,
}

/// `ticket:completed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCompleted {
    /// The ticket's batch.
    pub batch_id: BatchId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// The address of the PDF.
    pub pdf_path: String,
    /// The worker that made it.
    pub worker_id: String,
    /// Completed tickets of the batch; `null` if the batch is gone.
    pub completed_count: Option<u64>,
}

/// `ticket:failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketFailed {
    /// The ticket's batch.
    pub batch_id: BatchId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// The reason, for people.
    pub error: String,
    /// The worker that gave up.
    pub worker_id: String,
}

/// `queue:dead-letter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettered {
    /// The queue in which the job failed.
    pub queue: String,
    /// The job.
    pub job_id: String,
    /// The job's type.
    pub name: String,
    /// The reason, for people.
    pub reason: String,
}

/// `worker:started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStarted {
    /// The worker.
    pub worker_id: String,
    /// The worker's node.
    pub instance_id: String,
    /// Milliseconds since 1970 by the node's clock.
    pub timestamp: u64,
}

/// A message that is no announcement of ours.
#[derive(Debug)]
pub enum Unreadable {
    /// Nothing of ours is published on this channel.
    UnknownChannel(String),
    /// The message has another form.
    Json(serde_json::Error),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownChannel(channel) => write!(f, "channel {channel:?} is not known"),
            Self::Json(error) => write!(f, "the message cannot be read: {error}"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Announcement {
    /// The channels of all announcements.
    pub const CHANNELS: [&'static str; 8] = [
        "batch:created",
        "ticket:completed",
        "ticket:failed",
        "queue:dead-letter",
        "worker:started",
        "scaling:event",
        "scaling:decisions",
        "cluster:alert",
    ];

    /// The channel it is published on.
    pub fn channel(&self) -> &'static str {
        match self {
            Self::BatchCreated(_) => "batch:created",
            Self::TicketCompleted(_) => "ticket:completed",
            Self::TicketFailed(_) => "ticket:failed",
            Self::DeadLetter(_) => "queue:dead-letter",
            Self::WorkerStarted(_) => "worker:started",
            Self::ScalingEvent(_) => "scaling:event",
            Self::ScalingDecision(_) => "scaling:decisions",
            Self::ClusterAlert(_) => "cluster:alert",
        }
    }

    /// The message as text.
    pub fn payload(&self) -> String {
        // Structs of texts, numbers and maps always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a message that was published on a channel.
    pub fn parse(channel: &str, text: &str) -> Result<Self, Unreadable> {
        let read = match channel {
            "batch:created" => serde_json::from_str(text).map(Self::BatchCreated),
            "ticket:completed" => serde_json::from_str(text).map(Self::TicketCompleted),
            "ticket:failed" => serde_json::from_str(text).map(Self::TicketFailed),
            "queue:dead-letter" => serde_json::from_str(text).map(Self::DeadLetter),
            "worker:started" => serde_json::from_str(text).map(Self::WorkerStarted),
            "scaling:event" => serde_json::from_str(text).map(Self::ScalingEvent),
            "scaling:decisions" => serde_json::from_str(text).map(Self::ScalingDecision),
            "cluster:alert" => serde_json::from_str(text).map(Self::ClusterAlert),
            _ => return Err(Unreadable::UnknownChannel(channel.to_owned())),
        };
        read.map_err(Unreadable::Json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stampede_model::{BatchId, TicketId};

    use super::*;
    use crate::cluster::{Priority, ScalingAction};

    fn samples() -> Vec<(Announcement, &'static str, Value)> {
        let (batch, ticket) = (BatchId::from_bytes([1; 16]), TicketId::from_bytes([2; 16]));
        let (b, t) = (batch.to_string(), ticket.to_string());
        vec![
            (
                Announcement::BatchCreated(BatchCreated {
                    batch_id: batch,
                    user_id: "u".into(),
                    quantity: 3,
                }),
                "batch:created",
                json!({ "batchId": b, "userId": "u", "quantity": 3 }),
            ),
            (
                Announcement::TicketCompleted(TicketCompleted {
                    batch_id: batch,
                    ticket_id: ticket,
                    pdf_path: "/x.pdf".into(),
                    worker_id: "w".into(),
                    completed_count: None,
                }),
                "ticket:completed",
                json!({
                    "batch_id": b, "ticket_id": t, "pdf_path": "/x.pdf", "worker_id": "w",
                    "completed_count": null,
                }),
            ),
            (
                Announcement::TicketFailed(TicketFailed {
                    batch_id: batch,
                    ticket_id: ticket,
                    error: "e".into(),
                    worker_id: "w".into(),
                }),
                "ticket:failed",
                json!({ "batch_id": b, "ticket_id": t, "error": "e", "worker_id": "w" }),
            ),
            (
                Announcement::DeadLetter(DeadLettered {
                    queue: "q".into(),
                    job_id: "j".into(),
                    name: "n".into(),
                    reason: "r".into(),
                }),
                "queue:dead-letter",
                json!({ "queue": "q", "jobId": "j", "name": "n", "reason": "r" }),
            ),
            (
                Announcement::WorkerStarted(WorkerStarted {
                    worker_id: "w".into(),
                    instance_id: "n".into(),
                    timestamp: 5,
                }),
                "worker:started",
                json!({ "workerId": "w", "instanceId": "n", "timestamp": 5 }),
            ),
            (
                Announcement::ScalingEvent(ScalingEvent {
                    instance_id: Some("n".into()),
                    action: Some(ScalingAction::ScaleUp),
                    reason: Some("r".into()),
                    workers: Some(2),
                    timestamp: Some(5),
                    ..ScalingEvent::default()
                }),
                "scaling:event",
                json!({
                    "instanceId": "n", "action": "scale_up", "reason": "r", "workers": 2, "timestamp": 5,
                }),
            ),
            (
                Announcement::ScalingDecision(ScalingDecision {
                    action: Some(ScalingAction::ScaleDown),
                    node_id: Some("n".into()),
                    reason: Some("r".into()),
                    priority: Some(Priority::Low),
                    timestamp: Some(5),
                    ..ScalingDecision::default()
                }),
                "scaling:decisions",
                json!({
                    "action": "scale_down", "nodeId": "n", "reason": "r", "priority": "low", "timestamp": 5,
                }),
            ),
            (
                Announcement::ClusterAlert(Alert {
                    timestamp: Some(5),
                    ..Alert::new("node-dead", "n", "m".into())
                }),
                "cluster:alert",
                json!({ "kind": "node-dead", "subject": "n", "message": "m", "timestamp": 5 }),
            ),
        ]
    }

    #[test]
    fn field_names_are_those_that_older_software_reads() {
        let samples = samples();
        for (announcement, channel, wanted) in &samples {
            assert_eq!(announcement.channel(), *channel);
            let text = announcement.payload();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *wanted, "{channel}");
            assert_eq!(Announcement::parse(channel, &text).unwrap(), *announcement);
        }
        let channels: Vec<&str> = samples.iter().map(|(_, channel, _)| *channel).collect();
        assert_eq!(channels, Announcement::CHANNELS);
    }

    #[test]
    fn messages_of_newer_versions_are_read_and_those_of_others_refused() {
        let newer = r#"{"workerId":"w","instanceId":"n","timestamp":5,"colour":"blue"}"#;
        assert!(Announcement::parse("worker:started", newer).is_ok());
        assert!(Announcement::parse("worker:started", "started").is_err());
        let error = Announcement::parse("worker:ended", newer).unwrap_err();
        assert_eq!(error.to_string(), "channel \"worker:ended\" is not known");
    }
}
