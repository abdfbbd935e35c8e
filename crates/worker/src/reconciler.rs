//! Puts work back on the road: what the store says is to be done, and no queue knows of.
//!
//! The store is the truth, Redis is the road. An order whose enqueueing was cut off, a Redis that
//! came back empty, a ticket made stale by a process that died right after: all look the same here,
//! a pending ticket without a live job. Adding a job that exists does nothing, so any number of
//! nodes may reconcile at the same time.

use std::time::Duration;

use stampede_broker::{Broker, JobSpec, Presence, Queue};
use stampede_model::{GenerateTicket, Ticket, TicketId, Timestamp};
use stampede_store::Store;
use tokio_util::sync::CancellationToken;

use crate::announcer::write_batch;
use crate::interim::{BatchMirror, ticket_job};

/// Tickets looked at in one step.
const PAGE: u32 = 1_000;
/// How often to look.
const INTERVAL: Duration = Duration::from_secs(30);
/// Orders younger than this are still being enqueued by whoever took them.
const SETTLE: Duration = Duration::from_secs(15);

/// Compares the store with the queue, at start and again and again.
pub struct Reconciler {
    store: Store,
    broker: Broker,
}

impl Reconciler {
    /// Nothing happens before [`Reconciler::run`].
    pub fn new(store: Store, broker: Broker) -> Self {
        Self { store, broker }
    }

    /// Reconciles until `stop`. The first pass looks at everything, however young.
    pub async fn run(self, stop: CancellationToken) {
        let mut settle = Duration::ZERO;
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            match self.pass(Timestamp::now() - settle).await {
                Ok(0) => settle = SETTLE,
                Ok(tickets) => {
                    tracing::info!(tickets, "enqueued pending tickets that had no job");
                    settle = SETTLE;
                }
                // What is away now is looked at again; nothing is lost meanwhile.
                Err(error) => tracing::warn!(error, "cannot reconcile"),
            }
        }
    }

    /// One look at everything ordered before `created_before`; returns how many tickets had no job.
    pub async fn pass(&self, created_before: Timestamp) -> Result<usize, String> {
        let queue = self.broker.queue(GenerateTicket::QUEUE).await.map_err(|e| e.to_string())?;
        let mut after: Option<TicketId> = None;
        let mut enqueued = 0;
        loop {
            let page = self.store.pending_tickets(created_before, after, PAGE).await;
            let page = page.map_err(|e| e.to_string())?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            enqueued += enqueue_missing(&queue, &page).await.map_err(|e| e.to_string())?;
        }
        self.refresh_mirror().await?;
        Ok(enqueued)
    }

    /// A worker that died right after a commit has not told Redis; batches that moved lately are told again.
    async fn refresh_mirror(&self) -> Result<(), String> {
        let mirror = BatchMirror::new(&self.broker);
        let since = Timestamp::now() - 3 * INTERVAL;
        for batch in
            self.store.batches_changed_since(since, PAGE).await.map_err(|e| e.to_string())?
        {
            write_batch(&mirror, &self.store, &batch).await?;
        }
        Ok(())
    }
}

async fn enqueue_missing(
    queue: &Queue,
    tickets: &[Ticket],
) -> Result<usize, stampede_broker::Error> {
    let ids: Vec<String> = tickets.iter().map(|ticket| ticket.id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let missing: Vec<JobSpec> = tickets
        .iter()
        .zip(queue.presence(&ids).await?)
        .filter(|(_, presence)| *presence != Presence::Live)
        .map(|(ticket, _)| ticket_job(ticket))
        .collect();
    queue.enqueue_again(&missing).await?;
    Ok(missing.len())
}
