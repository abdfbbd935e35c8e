//! Names in Redis that other software relies on (W5 in the product's requirements).
//!
//! Adding one? Other people's programs will read it: never rename it afterwards.

/// A pub/sub channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// An order was accepted: `{batchId, userId, quantity}`.
    BatchCreated,
    /// A ticket's PDF is ready: `{batch_id, ticket_id, pdf_path, worker_id, completed_count}`.
    TicketCompleted,
    /// A ticket failed for good: `{batch_id, ticket_id, error, worker_id}`.
    TicketFailed,
    /// A worker process was started: `{workerId, instanceId, timestamp}`.
    WorkerStarted,
}

impl Channel {
    /// The name of the channel.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BatchCreated => "batch:created",
            Self::TicketCompleted => "ticket:completed",
            Self::TicketFailed => "ticket:failed",
            Self::WorkerStarted => "worker:started",
        }
    }
}

/// The key that holds the state of a batch for outside readers.
pub(crate) fn batch_key(batch_id: &str) -> String {
    format!("batch:{batch_id}")
}
