//! Jobs as data: what is put on a queue and read back from it.
//!
//! Payloads carry ids, never records: the store is the truth when the job runs. Each has a version
//! `v`; a worker refuses versions it does not know instead of guessing.
//!
//! Adding a job? Add its payload here, its file in `crates/worker/src/jobs/`, and a line in
//! `crates/worker/src/jobs.rs`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BatchId, TicketId};

/// Why a payload was refused; such a job is never retried.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// Not the expected fields.
    #[error("unreadable payload: {0}")]
    Shape(#[from] serde_json::Error),
    /// Written by a newer Stampede.
    #[error("payload version {0} is newer than this worker understands (1)")]
    Version(u32),
}

/// Make the PDF of one ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateTicket {
    /// Version of this payload.
    pub v: u32,
    /// The ticket.
    pub ticket_id: TicketId,
    /// Its batch, for readers of the queue.
    pub batch_id: BatchId,
}

impl GenerateTicket {
    /// The queue of seed 000.
    pub const QUEUE: &'static str = "tickets";
    /// The wire name of seed 000.
    pub const NAME: &'static str = "generate-pdf";

    /// Reads a payload from the queue.
    pub fn parse(data: &Value) -> Result<Self, PayloadError> {
        let payload = Self::deserialize(data)?;
        if payload.v == 1 { Ok(payload) } else { Err(PayloadError::Version(payload.v)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_of_a_newer_version_is_refused() {
        let ticket = TicketId::generate();
        let batch = BatchId::generate();
        let json = |v: u32| serde_json::json!({"v": v, "ticketId": ticket, "batchId": batch});
        assert_eq!(GenerateTicket::parse(&json(1)).unwrap().ticket_id, ticket);
        assert!(matches!(GenerateTicket::parse(&json(2)), Err(PayloadError::Version(2))));
        assert!(GenerateTicket::parse(&serde_json::json!({"ticketId": "x"})).is_err());
    }
}
