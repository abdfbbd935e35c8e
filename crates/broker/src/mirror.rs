//! `batch:{id}` in Redis: the state of a batch for outside readers (seed 000's contract).
//!
//! The value is one JSON object whose list of ticket ids comes last. An update replaces only what
//! stands before that list, so that it costs the same for ten tickets and for a hundred thousand.
//! Updates of several workers may arrive in any order: the one with the higher revision wins.

use std::sync::LazyLock;

use redis::Script;
use serde_json::json;
use stampede_model::{Batch, TicketId};

use crate::Error;
use crate::connection::Link;
use crate::names::batch_key;

/// A finished batch stays readable for a week, one in progress for a month after its last change.
const KEEP_S: (u64, u64) = (7 * 24 * 3600, 30 * 24 * 3600);

static UPDATE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("mirror.lua")));

/// Writes the state of batches for outside readers.
#[derive(Clone)]
pub struct BatchMirror {
    redis: Link,
}

impl BatchMirror {
    pub(crate) fn new(redis: Link) -> Self {
        Self { redis }
    }

    /// Writes the state of a batch together with its list of tickets.
    pub async fn put(&self, batch: &Batch, tickets: &[TicketId]) -> Result<(), Error> {
        self.write(batch, &json!(tickets).to_string()).await?;
        Ok(())
    }

    /// Updates the state of a batch. `Ok(false)`: Redis knows no such batch (any more); `put` it.
    pub async fn update(&self, batch: &Batch) -> Result<bool, Error> {
        self.write(batch, "").await
    }

    async fn write(&self, batch: &Batch, tickets: &str) -> Result<bool, Error> {
        // The fields without their closing brace: the script appends the list of tickets.
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
        let known: bool = UPDATE
            .key(batch_key(&batch.id.to_string()))
            .arg(batch.revision)
            .arg(head)
            .arg(tickets)
            .arg(if batch.pending() == 0 { KEEP_S.0 } else { KEEP_S.1 })
            .invoke_async(&mut self.redis.clone())
            .await?;
        Ok(known)
    }
}
