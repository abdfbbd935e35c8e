//! Reconciling: pending tickets that have no job get one.
//!
//! The store is the truth, Redis only carries the jobs. An order whose enqueueing was cut off, a Redis that
//! came back empty, a ticket marked stale by a process that died right after: all of them are pending tickets
//! without a live job. Adding a job that exists does nothing, so any number of nodes may reconcile at the
//! same time.

use std::time::Duration;

use stampede_broker::{JobSpec, Presence};
use stampede_model::{Ticket, TicketId, Timestamp};

use crate::Ticketing;
use crate::jobs::generate_ticket::GenerateTicket;

/// Tickets looked at in one step.
const PAGE: u32 = 1_000;
/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(30);
/// Younger orders are still being enqueued by the process that accepted them.
const SETTLE: Duration = Duration::from_secs(15);
/// The first of so many passes looks at all tickets, however young: one whose time lies in the future was written
/// while the clock was ahead, and would wait for its job until the clock is there again.
const LOOK_AT_ALL: u32 = 10;

/// Compares the store with the queue, at the start and every 30 seconds.
pub struct Reconciler {
    ticketing: Ticketing,
}

impl Reconciler {
    /// Nothing happens before [`Reconciler::run`].
    pub fn new(ticketing: Ticketing) -> Self {
        Self { ticketing }
    }

    /// Reconciles until `stop`. The first pass looks at all tickets, however young; so does every tenth after it.
    pub async fn run(self, stop: tokio_util::sync::CancellationToken) {
        let mut passes = 0;
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            match self.pass(horizon(passes, Timestamp::now())).await {
                Ok(tickets) => {
                    passes += 1;
                    if tickets > 0 {
                        tracing::info!(tickets, "enqueued pending tickets that had no job");
                    }
                }
                // The next pass tries again; nothing is lost meanwhile.
                Err(error) => tracing::warn!(error, "cannot reconcile"),
            }
        }
    }

    /// One pass over all tickets changed last before `created_before`; returns how many had no job.
    pub async fn pass(&self, created_before: Timestamp) -> Result<usize, String> {
        let mut after: Option<TicketId> = None;
        let mut enqueued = 0;
        loop {
            let store = &self.ticketing.shared.store;
            let page = store.pending_tickets(created_before, after, PAGE).await;
            let page = page.map_err(|e| e.to_string())?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            enqueued += self.ticketing.enqueue_missing(&page).await.map_err(|e| e.to_string())?;
        }
        self.refresh_mirror().await?;
        Ok(enqueued)
    }

    /// Writes the states of batches again that changed lately: a worker that died right after a commit has
    /// not told Redis.
    async fn refresh_mirror(&self) -> Result<(), String> {
        let shared = &*self.ticketing.shared;
        let mirror = shared.announcer.mirror();
        let since = Timestamp::now() - 3 * INTERVAL;
        let changed = shared.store.batches_changed_since(since, PAGE).await;
        for batch in changed.map_err(|e| e.to_string())? {
            mirror.write(&shared.store, &batch).await?;
        }
        Ok(())
    }
}

impl Ticketing {
    /// Gives pending tickets a job that have none; returns how many.
    pub(crate) async fn enqueue_missing(
        &self,
        tickets: &[Ticket],
    ) -> Result<usize, stampede_broker::Error> {
        let queue = &self.shared.queue;
        let ids: Vec<String> = tickets.iter().map(|ticket| ticket.id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let missing: Vec<JobSpec> = tickets
            .iter()
            .zip(queue.presence(&ids).await?)
            .filter(|(_, presence)| *presence != Presence::Live)
            .map(|(ticket, _)| GenerateTicket::job(ticket))
            .collect();
        queue.enqueue_again(&missing).await?;
        Ok(missing.len())
    }
}

/// Tickets that were changed before this time are looked at; `passes` have been made.
fn horizon(passes: u32, now: Timestamp) -> Timestamp {
    if passes.is_multiple_of(LOOK_AT_ALL) { Timestamp::MAX } else { now - SETTLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_of_a_clock_that_was_ahead_is_looked_at_within_ten_passes() {
        let now = Timestamp::now();
        let ahead = now + Duration::from_secs(3600);
        let seen = |passes: u32| ahead < horizon(passes, now);
        assert!(seen(0), "by the first pass");
        assert!((1..=10).any(seen), "and while the process lives");
        let young = now - Duration::from_secs(5);
        assert!(young > horizon(1, now), "young orders are left to those who took them");
    }
}
