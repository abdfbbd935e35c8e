//! One slot: runs a job, finishes it, and continues with the next job that the finish returned.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use tracing::Instrument;

use super::disposition::Disposition;
use super::fetch::Admitted;
use super::finishing::{FinishEffect, NextInSlot};
use super::slots::{FreeSlot, Residue};
use super::{EventKind, FIRST_PAUSE, LONGEST_PAUSE, RunEnd, Shared};
use crate::queue::scripts::Claim;
use crate::{Job, RequestId, now_ms};

impl Shared {
    /// Runs a job and all that follow it; returns the slot when there is no next one.
    pub(super) async fn work(self: Arc<Self>, slot: usize, admitted: Admitted) -> FreeSlot {
        let working = AssertUnwindSafe(self.work_on_all(slot, admitted));
        // Panics of handlers are caught elsewhere. A panic of our own must not lose the slot and its job.
        working
            .catch_unwind()
            .await
            .unwrap_or(FreeSlot { number: slot, residue: Residue::Unfinishable })
    }

    async fn work_on_all(&self, slot: usize, mut admitted: Admitted) -> FreeSlot {
        let claim = self.claim(slot);
        loop {
            match self.work_on(slot, &claim, admitted).await {
                NextInSlot::Job(job) => admitted = Admitted { job, permit: None },
                NextInSlot::None => return FreeSlot { number: slot, residue: Residue::None },
                NextInSlot::Unknown => {
                    return FreeSlot { number: slot, residue: Residue::MaybeLocked };
                }
                NextInSlot::Unfinishable => {
                    return FreeSlot { number: slot, residue: Residue::Unfinishable };
                }
            }
        }
    }

    /// Runs and finishes one job, as work for the request that caused it: log lines carry the request's id.
    async fn work_on(&self, slot: usize, claim: &Claim, admitted: Admitted) -> NextInSlot {
        match RequestId::of_payload(&admitted.job.data) {
            Some(id) => {
                let span = tracing::error_span!("job", request_id = %id);
                id.scope(self.run_and_finish(slot, claim, admitted)).instrument(span).await
            }
            None => self.run_and_finish(slot, claim, admitted).await,
        }
    }

    async fn run_and_finish(&self, slot: usize, claim: &Claim, admitted: Admitted) -> NextInSlot {
        let Admitted { job, permit } = admitted;
        let job = &*job;
        let _running = self.events.running();
        let held = self.held.hold(job, &claim.token);
        let took = OnceLock::new();
        let running = async {
            self.schedule_next(job).await;
            if let Some(delay) = self.must_wait(permit).await {
                return Disposition::Snoozed { delay };
            }
            self.events.tell(&job.id, EventKind::Started);
            self.run_handler(job, &took).await
        };
        let mut disposition = tokio::select! {
            // In this order: a job that was cancelled before it began does not begin.
            biased;
            () = held.lost() => {
                tracing::warn!(job = job.id, "job lost its lock; another worker may run it now");
                self.events.tell(&job.id, EventKind::LockLost);
                return NextInSlot::None;
            }
            reason = held.cancelled() => {
                tracing::info!(job = job.id, reason, "job was cancelled");
                // Its schedule was not cancelled. (Adding the next job is idempotent.)
                self.schedule_next(job).await;
                Disposition::Cancelled(self.settled(job, format!("cancelled: {reason}").into()).await)
            }
            disposition = running => disposition,
        };
        let effect = loop {
            let finished = self.finish(slot, claim, job, &disposition).await;
            self.outages.worked();
            match finished {
                Ok(effect) => break effect,
                // Only a completion is refused, not the failure that replaces it.
                Err(outcome) => disposition = self.dispose(job, outcome, None).await,
            }
        };
        let after = match effect {
            FinishEffect::Ours(after) => after,
            FinishEffect::Later => {
                self.events.tell(&job.id, EventKind::Snoozed);
                self.config.observer.ended(RunEnd::Snoozed, None);
                return NextInSlot::None;
            }
            FinishEffect::NotOurs(after) => {
                self.events.tell(&job.id, EventKind::LockLost);
                return after;
            }
        };
        self.events.tell(&job.id, disposition.event());
        self.config.observer.ended(disposition.end(), took.get().copied());
        // Before the alarm: an operator may replay the job at once, and it is not ours any more.
        drop(held);
        if let Disposition::Failed(failure) = &disposition {
            let (queue, reason) = (self.queue.name(), &failure.reason);
            tracing::warn!(
                job = job.id,
                queue,
                reason,
                "job failed permanently, and is a dead letter now"
            );
            self.handler.dead_lettered(job, &failure.reason).await;
        }
        after
    }

    /// Adds the next job of a schedule: without it the schedule would end.
    async fn schedule_next(&self, job: &Job) {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.queue.schedule_next(job, now_ms()).await {
            if !error.is_outage() {
                // Logged here: no later check notices it.
                tracing::error!(job = job.id, %error, "cannot add the next job of the schedule");
                return;
            }
            self.failed();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
