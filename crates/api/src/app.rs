//! What the routes share.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::{Broker, Error, JobSpec, Queue};
use stampede_cluster::{LatencyMeter, NodeHandle};
use stampede_files::Files;
use stampede_model::{Batch, Ticket, TicketId, Timestamp};
use stampede_press::Press;
use stampede_store::Store;
use tokio::sync::Semaphore;

use crate::interim::{BatchMirror, ticket_job};
use crate::turns::Turns;

/// An order is answered when its jobs are on the queue, or after this time.
const ANSWER_AFTER: Duration = Duration::from_millis(250);
/// How long a request waits for Redis to take one job; the reconciler does it later otherwise.
const ENQUEUE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for what it could do without.
const BEST_EFFORT: Duration = Duration::from_secs(1);

/// What a request may ask for at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tickets in one order.
    pub quantity: u32,
    /// Bytes in one request body.
    pub body_bytes: usize,
}

/// State of the API. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Records.
    pub store: Store,
    /// Redis.
    pub broker: Broker,
    /// The queue of tickets.
    pub tickets: Queue,
    /// Rendered output.
    pub files: Files,
    /// The templates of events.
    pub press: Press,
    /// Turns of those who try out templates.
    pub turns: Turns,
    /// Places for those who download whole batches.
    pub downloads: Arc<Semaphore>,
    /// What a request may ask for at most.
    pub limits: Limits,
    /// The node this is.
    pub node: NodeHandle,
    /// Where it is noted how quickly requests are answered.
    pub latency: LatencyMeter,
}

impl App {
    /// Puts the jobs of a committed order on the queue and tells outside readers.
    ///
    /// The order stands whatever happens here: jobs that do not get through, because Redis is away or
    /// this process dies, are put on the queue by the reconciler. A large order is enqueued while its
    /// client already has the answer; a client that hangs up changes nothing.
    pub(crate) async fn enqueue_order(&self, batch: Batch, tickets: Vec<Ticket>) {
        let app = self.clone();
        let task = tokio::spawn(async move {
            fail_point("order-committed").await;
            if let Err(error) = app.try_enqueue_order(&batch, &tickets).await {
                tracing::warn!(%error, batch = %batch.id, "order kept, but not enqueued; the reconciler will");
            }
        });
        // Not in time is not an error, and a panic has been reported already.
        let _ = tokio::time::timeout(ANSWER_AFTER, task).await;
    }

    async fn try_enqueue_order(&self, batch: &Batch, tickets: &[Ticket]) -> Result<(), Error> {
        let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id).collect();
        BatchMirror::new(&self.broker).put(batch, &ids).await?;
        let jobs: Vec<JobSpec> = tickets.iter().map(ticket_job).collect();
        self.tickets.enqueue(&jobs).await?;
        let created = serde_json::json!({
            "batchId": batch.id, "userId": batch.owner, "quantity": batch.total,
        });
        self.broker.publish("batch:created", &[created.to_string()]).await
    }

    /// Puts one ticket on the queue again although it was made before.
    pub(crate) async fn enqueue_again(&self, ticket: &Ticket) {
        self.enqueue_all_again(std::slice::from_ref(ticket)).await;
    }

    /// The same for many.
    pub(crate) async fn enqueue_all_again(&self, tickets: &[Ticket]) {
        let jobs: Vec<JobSpec> = tickets.iter().map(ticket_job).collect();
        let first = tickets.first().map(|ticket| ticket.id);
        let enqueue = self.tickets.enqueue_again(&jobs);
        match tokio::time::timeout(ENQUEUE_PATIENCE, enqueue).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, ?first, "not enqueued; the reconciler will");
            }
            Err(_) => tracing::warn!(?first, "not enqueued; the reconciler will"),
        }
    }

    /// Tells outside readers that the counters of a batch changed.
    pub(crate) async fn mirror(&self, batch: &Batch) {
        best_effort("writing the state of a batch", BatchMirror::new(&self.broker).update(batch))
            .await;
    }

    /// Tells outside readers that a ticket was taken out of a batch.
    pub(crate) async fn mirror_shrunk(&self, batch: &Batch) {
        if let Ok(tickets) = self.store.batch_ticket_ids(batch.id).await {
            let put = BatchMirror::new(&self.broker);
            best_effort("writing the state of a batch", put.put(batch, &tickets)).await;
        }
    }

    /// Takes a job off the queue; one without its ticket would end by itself.
    pub(crate) async fn forget_job(&self, ticket: TicketId) {
        best_effort("taking a job off the queue", self.tickets.remove(&ticket.to_string())).await;
    }
}

/// The present, as precise as the store keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// For what only spares others work: a Redis that is away or hangs must not hold up the answer.
async fn best_effort<T>(what: &str, attempt: impl Future<Output = Result<T, Error>>) {
    match tokio::time::timeout(BEST_EFFORT, attempt).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "{what} failed"),
        Err(_) => tracing::debug!("{what} takes too long"),
    }
}

/// Stops here for ever when the test harness asks for it by name, so that it can kill the process at
/// exactly this point. Not in release builds.
async fn fail_point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("STAMPEDE_HANG_AT").as_deref() == Ok(name) {
        tracing::warn!(name, "hanging here because STAMPEDE_HANG_AT says so");
        std::future::pending::<()>().await;
    }
}
