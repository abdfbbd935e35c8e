//! Taking a job for a slot.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::slots::{Residue, Slots};
use super::{IDLE, LONGEST_PAUSE, Shared};
use crate::queue::limits::{Permit, Taken, queue_limit};
use crate::queue::scripts::{self, Fetched};
use crate::{Error, Job, now_ms};

/// A job that may begin.
pub(super) struct Admitted {
    pub(super) job: Box<Job>,
    /// The permit of the queue's rate limit.
    pub(super) permit: Option<Box<Taken>>,
}

/// The result of taking a job.
pub(super) enum Taking {
    /// A job for the slot of this number.
    Job(usize, Admitted),
    /// No job; to be asked again after this long at the latest.
    Nothing(Duration),
    /// Redis was not asked: for this long it is doubtful what it remembers.
    NotNow(Duration),
}

impl Shared {
    /// Takes a job for a free slot.
    pub(super) async fn fetch(&self, slots: &mut Slots) -> Result<Taking, Error> {
        if let Some(doubt) = self.queue.broker().doubt() {
            return Ok(Taking::NotNow(doubt));
        }
        self.give_back_residues(slots).await?;
        slots.resize(*self.slots.borrow());
        let Some(slot) = slots.free.last_mut() else { return Ok(Taking::Nothing(IDLE)) };
        let claim = self.claim(slot.number);
        // Before the job: a job that is taken without a permit would have to go back.
        let permit = match self.permit().await? {
            Some(Permit::Wait(wait)) => return Ok(Taking::Nothing(idle_for(None, Some(wait)))),
            Some(Permit::Granted(taken)) => Some(taken),
            None => None,
        };
        slot.residue = Residue::MaybeLocked;
        let asked = Instant::now();
        let keys = self.queue.keys();
        let fetched = scripts::move_to_active(&mut self.redis(), keys, &claim, now_ms()).await?;
        if matches!(fetched, Fetched::Job(_)) && !self.is_timely(asked) {
            // Its lock may have expired: like an answer that was lost.
            return Ok(Taking::Nothing(Duration::ZERO));
        }
        slot.residue = Residue::None;
        Ok(match fetched {
            Fetched::Job(job) => {
                let number = slot.number;
                slots.free.pop();
                Taking::Job(number, Admitted { job, permit })
            }
            Fetched::NoJob(id) => {
                give_back(permit).await;
                self.put_aside(&id).await?;
                Taking::Nothing(Duration::ZERO)
            }
            Fetched::Nothing { due_ms, limited_ms } => {
                give_back(permit).await;
                let until_due = due_ms.map(|due| due.saturating_sub(now_ms()));
                let limited = (limited_ms > 0).then_some(limited_ms);
                let limited = limited.map(Duration::from_millis);
                Taking::Nothing(idle_for(until_due.map(Duration::from_millis), limited))
            }
        })
    }

    /// Gives back jobs that slots may have been given in lost answers, or could not end: their locks are not renewed.
    async fn give_back_residues(&self, slots: &mut Slots) -> Result<(), Error> {
        for residue in [Residue::MaybeLocked, Residue::Unfinishable] {
            let of_it = slots.free.iter().filter(|slot| slot.residue == residue);
            let tokens: Vec<String> = of_it.map(|slot| self.claim(slot.number).token).collect();
            if tokens.is_empty() {
                continue;
            }
            let is_ours = |lock: &str| tokens.iter().any(|token| token == lock);
            let jobs = match residue {
                Residue::Unfinishable => self.queue.hand_back_counting_crashes(is_ours).await?,
                _ => self.queue.hand_back(is_ours).await?,
            };
            if !jobs.is_empty() {
                tracing::info!(?jobs, "gave back jobs of lost answers");
            }
            for slot in slots.free.iter_mut().filter(|slot| slot.residue == residue) {
                slot.residue = Residue::None;
            }
        }
        Ok(())
    }

    /// Removes an id from the queue that no job can have; other software has put it there.
    pub(super) async fn put_aside(&self, id: &[u8]) -> Result<(), Error> {
        let shown = String::from_utf8_lossy(id);
        tracing::error!(id = ?shown, "removed an id from the queue: no job can have it");
        scripts::put_aside(&mut self.redis(), self.queue.keys(), id).await
    }

    /// Asks for a permit of the queue's rate limit; `None`: the queue has no limit.
    async fn permit(&self) -> Result<Option<Permit>, Error> {
        if !self.is_limited() {
            return Ok(None);
        }
        let limits = self.queue.broker().limits();
        let name = queue_limit(self.queue.name());
        Ok(Some(limits.take_as(&self.config.token, &name, self.config.limit).await?))
    }

    /// Exchanges a permit that is stale: the limit is about beginnings, and a job that begins late would exceed it.
    /// `Some`: there is no permit now, and the job has to come back after this long.
    pub(super) async fn must_wait(&self, permit: Option<Box<Taken>>) -> Option<Duration> {
        let stale = permit.filter(|permit| !permit.is_fresh())?;
        give_back(Some(stale)).await;
        match self.permit().await {
            Ok(Some(Permit::Wait(wait))) => Some(wait),
            // Granted, or the limit was removed meanwhile.
            Ok(Some(Permit::Granted(_)) | None) => None,
            Err(error) => {
                tracing::debug!(%error, "cannot renew a permit");
                Some(LONGEST_PAUSE)
            }
        }
    }

    /// Whether jobs of this queue need a permit before they are taken.
    pub(super) fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Reads whether the queue has a limit by now.
    pub(super) async fn look_for_limit(&self) -> Result<(), Error> {
        let limits = self.queue.broker().limits();
        let is_set = limits.is_set(&queue_limit(self.queue.name())).await?;
        self.limited.store(is_set || self.config.limit.is_some(), Ordering::Relaxed);
        Ok(())
    }
}

async fn give_back(permit: Option<Box<Taken>>) {
    if let Some(permit) = permit
        && let Err(error) = permit.give_back().await
    {
        // It counts as used until its window is over.
        tracing::debug!(%error, "could not give back a permit");
    }
}

/// How long to wait for a marker when there was nothing to do.
fn idle_for(until_due: Option<Duration>, limited: Option<Duration>) -> Duration {
    let wake = until_due.into_iter().chain(limited).min().unwrap_or(IDLE);
    wake.clamp(Duration::from_millis(5), IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_consumer_wakes_when_the_next_delayed_job_is_due() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(idle_for(None, None), IDLE);
        assert_eq!(Some(idle_for(ms(500), None)), ms(500));
        assert_eq!(Some(idle_for(ms(0), None)), ms(5));
        assert_eq!(idle_for(ms(60_000), None), IDLE);
        assert_eq!(Some(idle_for(ms(2000), ms(40))), ms(40));
    }
}
