//! Tells readers outside what happened: a message for each ticket, `batch:{id}` for each batch.
//!
//! Announcements never hold up the work. A message on a channel is best effort, as pub/sub is. The state of
//! a batch is not: a state that Redis did not take is kept here and written again.

pub(crate) mod batch_mirror;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stampede_broker::Broker;
use stampede_model::{Batch, BatchId, TicketId};
use stampede_store::{GroupCommit, Store};
use stampede_wire::announcement::{Announcement, BatchCreated, TicketCompleted, TicketFailed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::batch_mirror::BatchMirror;
use crate::completions::Finished;
use crate::tasks::Tasks;

/// The shortest pause between two writes of batches …
const MIRROR_INTERVAL: Duration = Duration::from_millis(100);
/// … which grows with each ticket of the largest batch, whose list of tickets is copied with every write.
const MIRROR_INTERVAL_PER_TICKET: Duration = Duration::from_micros(50);
/// Pause before a state is written again that Redis did not take.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Patience of a request that wants to write the state of a batch.
const BEST_EFFORT: Duration = Duration::from_secs(1);

/// Announces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Announcer {
    broker: Broker,
    store: Store,
    unwritten: Unwritten,
    wake: mpsc::Sender<()>,
}

impl Announcer {
    /// Starts the task that writes batches; at its end it tries once more to write all that is left.
    pub(crate) fn start(broker: Broker, store: Store, tasks: &Tasks) -> Self {
        let (wake, woken) = mpsc::channel(1);
        let announcer = Self { broker, store, unwritten: Unwritten::default(), wake };
        tasks.spawn(write_batches(
            announcer.mirror(),
            announcer.store.clone(),
            announcer.unwritten.clone(),
            woken,
            tasks.stop(),
        ));
        announcer
    }

    /// An order was accepted. The state of its batch is in Redis before its jobs are on the queue, see
    /// `place.rs`.
    pub(crate) async fn batch_created(&self, batch: &Batch) {
        let created = BatchCreated {
            batch_id: batch.id,
            user_id: batch.owner.clone(),
            quantity: batch.total,
        };
        self.publish(&[Announcement::BatchCreated(created)]).await;
    }

    /// Tickets of one group commit were completed. Those that were completed before are not told again.
    pub(crate) async fn tickets_completed(&self, commit: &GroupCommit, finished: &[Finished]) {
        let counts: HashMap<BatchId, u64> =
            commit.batches.iter().map(|batch| (batch.id, batch.completed)).collect();
        let changed: HashSet<TicketId> = commit.changed.iter().copied().collect();
        let messages: Vec<Announcement> = finished
            .iter()
            .filter(|finished| changed.contains(&finished.completion.ticket_id))
            .map(|finished| {
                Announcement::TicketCompleted(TicketCompleted {
                    batch_id: finished.batch_id,
                    ticket_id: finished.completion.ticket_id,
                    pdf_path: finished.pdf_path.clone(),
                    worker_id: finished.completion.worker.clone(),
                    completed_count: counts.get(&finished.batch_id).copied(),
                })
            })
            .collect();
        self.publish(&messages).await;
        commit.batches.iter().for_each(|batch| self.batch_changed(batch));
    }

    /// A ticket failed permanently.
    pub(crate) async fn ticket_failed(
        &self,
        batch: &Batch,
        ticket_id: TicketId,
        reason: &str,
        worker: &str,
    ) {
        let failed = TicketFailed {
            batch_id: batch.id,
            ticket_id,
            error: reason.to_owned(),
            worker_id: worker.to_owned(),
        };
        self.publish(&[Announcement::TicketFailed(failed)]).await;
        self.batch_changed(batch);
    }

    /// Writes the state of a batch before the request is answered, if Redis takes it soon.
    pub(crate) async fn write_now(&self, batch: &Batch) {
        best_effort("writing the state of a batch", self.mirror().update(batch)).await;
    }

    /// Writes the state of a batch that has fewer tickets now.
    pub(crate) async fn write_shrunk(&self, batch: &Batch) {
        if let Ok(tickets) = self.store.batch_ticket_ids(batch.id).await {
            let mirror = self.mirror();
            best_effort("writing the state of a batch", mirror.put(batch, &tickets)).await;
        }
    }

    /// The states of batches in Redis.
    pub(crate) fn mirror(&self) -> BatchMirror {
        BatchMirror::new(self.broker.snapshots())
    }

    /// All messages are of one channel.
    async fn publish(&self, messages: &[Announcement]) {
        let Some(channel) = messages.first().map(Announcement::channel) else { return };
        let payloads: Vec<String> = messages.iter().map(Announcement::payload).collect();
        if let Err(error) = self.broker.publish(channel, &payloads).await {
            tracing::debug!(%error, channel, "could not announce");
        }
    }

    fn batch_changed(&self, batch: &Batch) {
        self.unwritten.remember(batch.clone());
        // A full channel means that the task is about to look anyway.
        let _ = self.wake.try_send(());
    }
}

/// For work in Redis that a request can do without: a Redis that is away or hangs does not delay the answer.
pub(crate) async fn best_effort<T, E: std::fmt::Display>(
    what: &str,
    attempt: impl Future<Output = Result<T, E>>,
) {
    match tokio::time::timeout(BEST_EFFORT, attempt).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "{what} failed"),
        Err(_) => tracing::debug!("{what} takes too long"),
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
    stop: CancellationToken,
) {
    loop {
        // With a state that Redis did not take, the task does not wait to be woken.
        let patience = if unwritten.is_empty() { Duration::MAX } else { RETRY_INTERVAL };
        let over = tokio::select! {
            // Without any announcer left, nobody wakes this task again.
            woken = tokio::time::timeout(patience, woken.recv()) => woken == Ok(None),
            () = stop.cancelled() => true,
        };
        let mut largest = 0;
        for batch in unwritten.take() {
            largest = largest.max(batch.total);
            if let Err(error) = mirror.write(&store, &batch).await {
                tracing::debug!(error, batch = %batch.id, "could not write the state of a batch");
                unwritten.remember(batch);
            }
        }
        if over {
            return;
        }
        let pause = MIRROR_INTERVAL + MIRROR_INTERVAL_PER_TICKET * largest as u32;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
}
