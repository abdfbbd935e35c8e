//! Taking a job for a slot.

use std::sync::atomic::Ordering;

use super::{FreeSlot, Handler, Shared, now_ms};
use crate::limits::{Permit, Taken, queue_limit};
use crate::scripts::{self, Fetched};
use crate::{Error, Queue};

impl<H: Handler> Shared<H> {
    /// Takes a job for a slot. First, a job it may have been given in a lost answer goes back: nobody
    /// would renew its lock.
    pub(super) async fn fetch(&self, slot: &mut FreeSlot) -> Result<Fetched, Error> {
        let claim = self.claim(slot.number);
        if slot.answer_lost {
            let jobs = self.queue.hand_back(|lock| lock == claim.token).await?;
            if !jobs.is_empty() {
                tracing::info!(?jobs, "gave back jobs of a lost answer");
            }
            slot.answer_lost = false;
        }
        // Before the job: one that is taken and may not begin would have to go back.
        let permit = match self.permit().await? {
            Some(Permit::Wait(wait)) => {
                let limited_ms = (wait.as_millis() as u64).max(1);
                return Ok(Fetched::Nothing { due_ms: None, limited_ms });
            }
            Some(Permit::Granted(taken)) => Some(taken),
            None => None,
        };
        slot.answer_lost = true;
        let keys = self.queue.keys();
        let fetched = scripts::move_to_active(&mut self.redis(), keys, &claim, now_ms()).await?;
        slot.answer_lost = false;
        if let (Fetched::Nothing { .. }, Some(permit)) = (&fetched, permit) {
            give_back(permit).await;
        }
        Ok(fetched)
    }

    /// A permit of the queue's rate limit; `None`: it has none.
    async fn permit(&self) -> Result<Option<Permit>, Error> {
        if !self.is_limited() {
            return Ok(None);
        }
        let limits = self.queue.broker().limits();
        Ok(Some(limits.take(&queue_limit(self.queue.name()), self.config.limit).await?))
    }

    /// Whether jobs of this queue need a permit before they are taken.
    pub(super) fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// Looks whether somebody has set or lifted a limit meanwhile.
    pub(super) async fn look_for_limit(&self) {
        if let Ok(is_set) = has_limit(&self.queue).await {
            self.limited.store(is_set || self.config.limit.is_some(), Ordering::Relaxed);
        }
    }
}

async fn has_limit(queue: &Queue) -> Result<bool, Error> {
    queue.broker().limits().is_set(&queue_limit(queue.name())).await
}

async fn give_back(permit: Box<Taken>) {
    if let Err(error) = permit.give_back().await {
        // It counts as used, and is forgotten with its window.
        tracing::debug!(%error, "could not give back a permit");
    }
}
