//! Tells outside readers what happened: channels for each ticket, `batch:{id}` for each batch.
//!
//! Announcements never hold up the work. A message on a channel is best effort, as pub/sub is.
//! The state of a batch is not: it is kept here until Redis has taken it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use stampede_broker::Broker;
use stampede_model::{Batch, BatchId, TicketId};
use stampede_store::{Outcome, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::completions::Finished;
use crate::interim::BatchMirror;

/// How often the state of batches is written at most …
const MIRROR_INTERVAL: Duration = Duration::from_millis(100);
/// … and how much more seldom for each ticket of the largest one: its list of tickets is written along.
const MIRROR_INTERVAL_PER_TICKET: Duration = Duration::from_micros(50);
/// How long to wait before writing again what Redis did not take.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Hands announcements over. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Announcer {
    broker: Broker,
    unwritten: Unwritten,
    wake: mpsc::Sender<()>,
}

impl Announcer {
    /// Starts the task that writes batches; it ends when the last clone of the handle is dropped,
    /// after a last attempt to write what is left.
    pub(crate) fn start(broker: Broker, store: Store) -> (Self, JoinHandle<()>) {
        let (wake, woken) = mpsc::channel(1);
        let unwritten = Unwritten::default();
        let task =
            tokio::spawn(write_batches(BatchMirror::new(&broker), store, unwritten.clone(), woken));
        (Self { broker, unwritten, wake }, task)
    }

    /// Tickets of one group commit were completed; those that were so before are not told again.
    pub(crate) async fn tickets_completed(&self, outcome: &Outcome, finished: &[Finished]) {
        let counts: HashMap<BatchId, u64> =
            outcome.batches.iter().map(|batch| (batch.id, batch.completed)).collect();
        let changed: HashSet<TicketId> = outcome.changed.iter().copied().collect();
        let messages: Vec<_> = finished
            .iter()
            .filter(|finished| changed.contains(&finished.completion.ticket_id))
            .map(|finished| {
                json!({
                    "batch_id": finished.batch_id,
                    "ticket_id": finished.completion.ticket_id,
                    "pdf_path": finished.pdf_path,
                    "worker_id": finished.completion.worker,
                    "completed_count": counts.get(&finished.batch_id),
                })
            })
            .collect();
        self.publish("ticket:completed", &messages).await;
        outcome.batches.iter().for_each(|batch| self.batch_changed(batch));
    }

    /// A ticket failed for good.
    pub(crate) async fn ticket_failed(
        &self,
        batch: &Batch,
        ticket_id: TicketId,
        reason: &str,
        worker: &str,
    ) {
        let message = json!({
            "batch_id": batch.id,
            "ticket_id": ticket_id,
            "error": reason,
            "worker_id": worker,
        });
        self.publish("ticket:failed", &[message]).await;
        self.batch_changed(batch);
    }

    async fn publish(&self, channel: &str, messages: &[serde_json::Value]) {
        let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
        if let Err(error) = self.broker.publish(channel, &messages).await {
            tracing::debug!(%error, channel, "could not announce");
        }
    }

    fn batch_changed(&self, batch: &Batch) {
        self.unwritten.remember(batch.clone());
        // A full channel means that the task is about to look anyway.
        let _ = self.wake.try_send(());
    }
}

/// The newest state of each batch that Redis has not taken yet.
#[derive(Clone, Default)]
struct Unwritten(Arc<Mutex<HashMap<BatchId, Batch>>>);

impl Unwritten {
    fn remember(&self, batch: Batch) {
        let mut batches = self.lock();
        if batches.get(&batch.id).is_none_or(|known| known.revision < batch.revision) {
            batches.insert(batch.id, batch);
        }
    }

    fn take(&self) -> Vec<Batch> {
        self.lock().drain().map(|(_, batch)| batch).collect()
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BatchId, Batch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_batches(
    mirror: BatchMirror,
    store: Store,
    unwritten: Unwritten,
    mut woken: mpsc::Receiver<()>,
) {
    loop {
        let over = if unwritten.is_empty() {
            woken.recv().await.is_none()
        } else {
            // Redis did not take something: try again, whether woken or not.
            tokio::time::timeout(RETRY_INTERVAL, woken.recv()).await == Ok(None)
        };
        let mut largest = 0;
        for batch in unwritten.take() {
            largest = largest.max(batch.total);
            if let Err(error) = write_batch(&mirror, &store, &batch).await {
                tracing::debug!(error, batch = %batch.id, "could not write the state of a batch");
                unwritten.remember(batch);
            }
        }
        if over {
            return;
        }
        tokio::time::sleep(MIRROR_INTERVAL + MIRROR_INTERVAL_PER_TICKET * largest as u32).await;
    }
}

/// Writes the state of one batch, with its list of tickets when Redis does not have that any more.
pub(crate) async fn write_batch(
    mirror: &BatchMirror,
    store: &Store,
    batch: &Batch,
) -> Result<(), String> {
    if mirror.update(batch).await.map_err(|e| e.to_string())? {
        return Ok(());
    }
    let tickets = store.batch_ticket_ids(batch.id).await.map_err(|e| e.to_string())?;
    mirror.put(batch, &tickets).await.map_err(|e| e.to_string())
}
