//! What the routes share.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::{Broker, Channel, Queue};
use stampede_files::Files;
use stampede_model::{Batch, GenerateTicket, JobSpec, Ticket, TicketId};
use stampede_store::Store;

/// How long a request waits for Redis to take its jobs; the reconciler does it later otherwise.
const ENQUEUE_PATIENCE: Duration = Duration::from_secs(5);

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
    /// Revision of the template that workers use; part of every PDF's fingerprint.
    pub template_revision: Arc<str>,
    /// What a request may ask for at most.
    pub limits: Limits,
}

impl App {
    /// Puts the jobs of a committed order on the queue and tells outside readers.
    ///
    /// The order stands whatever happens here: jobs that do not get through, because Redis is away or
    /// this process dies, are put on the queue by the reconciler. Runs to its end even when the
    /// client hangs up.
    pub(crate) async fn enqueue_order(&self, batch: Batch, tickets: Vec<Ticket>) {
        let app = self.clone();
        let task = tokio::spawn(async move {
            fail_point("order-committed").await;
            let jobs: Vec<JobSpec> = tickets.iter().map(GenerateTicket::spec).collect();
            let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id).collect();
            app.tickets.enqueue(&jobs).await?;
            app.broker.batch_mirror().put(&batch, &ids).await?;
            let created = serde_json::json!({
                "batchId": batch.id, "userId": batch.owner, "quantity": batch.total,
            });
            app.broker.publish(Channel::BatchCreated, &[created]).await
        });
        match tokio::time::timeout(ENQUEUE_PATIENCE, task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "order kept, but not enqueued; the reconciler will");
            }
            Ok(Err(error)) => tracing::error!(%error, "enqueueing an order panicked"),
            Err(_) => {
                tracing::warn!("enqueueing an order takes long and goes on in the background")
            }
        }
    }

    /// Puts one ticket on the queue again although it was made before.
    pub(crate) async fn enqueue_again(&self, ticket: &Ticket) {
        let jobs = [GenerateTicket::spec(ticket)];
        let enqueue = self.tickets.enqueue_again(&jobs);
        match tokio::time::timeout(ENQUEUE_PATIENCE, enqueue).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, ticket = %ticket.id, "not enqueued; the reconciler will");
            }
            Err(_) => tracing::warn!(ticket = %ticket.id, "not enqueued; the reconciler will"),
        }
    }

    /// Tells outside readers that the counters of a batch changed.
    pub(crate) async fn mirror(&self, batch: &Batch) {
        if let Err(error) = self.broker.batch_mirror().update(batch).await {
            tracing::debug!(%error, batch = %batch.id, "could not write the state of a batch");
        }
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
