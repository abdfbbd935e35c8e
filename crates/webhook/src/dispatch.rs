//! Pending deliveries get jobs, those of disabled endpoints are cancelled, and old ones are forgotten.
//!
//! A delivery is pending from the transaction of the relay on. Its job is added after that: at once by the process that wrote
//! it, within a second by any other. A process that dies in between leaves a delivery without a job, which the next one finds.
//! Once a minute all pending deliveries are compared with the queue, for a Redis that has lost jobs. Adding a job that exists
//! changes nothing, so every node does this.

use std::time::Duration;

use stampede_broker::{JobSpec, Presence};
use stampede_model::{DeliveryId, Timestamp};
use stampede_store::PendingDelivery;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{DeliverWebhook, Error, Webhooks, now};

/// Deliveries looked at in one step.
const PAGE: u32 = 500;
/// Time between two looks for deliveries that other processes wrote.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two comparisons with the queue.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
/// Time between two looks for deliveries to forget.
const FORGET_EVERY: Duration = Duration::from_secs(10 * 60);
/// Pause between two portions that are cancelled or forgotten: others write, too.
const BREATH: Duration = Duration::from_millis(100);
/// Pause after an error, which is then logged.
const AFTER_ERROR: Duration = Duration::from_secs(10);

/// Adds jobs for pending deliveries, cancels those of disabled endpoints, and removes old ones.
pub struct Dispatcher {
    webhooks: Webhooks,
    kept: Duration,
}

impl Dispatcher {
    /// Ended deliveries are kept for so many days. Nothing happens before [`Dispatcher::run`].
    pub fn new(webhooks: Webhooks, log_days: u32) -> Self {
        Self { webhooks, kept: Duration::from_secs(u64::from(log_days) * 24 * 3_600) }
    }

    /// Works until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = async {
                tokio::join!(self.keep_dispatching(), self.keep_cancelling(), self.keep_forgetting());
            } => {}
            () = stop.cancelled() => {}
        }
    }

    async fn keep_dispatching(&self) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut compared: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                () = self.webhooks.shared.store.deliveries_wait() => {}
            }
            let done = match compared.is_none_or(|at| at.elapsed() >= COMPARE_EVERY) {
                true => {
                    let done = self.compare().await;
                    compared = done.is_ok().then(Instant::now).or(compared);
                    done
                }
                false => self.dispatch().await,
            };
            if let Err(error) = done {
                // Nothing is lost meanwhile.
                tracing::warn!(%error, "cannot add jobs for webhooks");
                tokio::time::sleep(AFTER_ERROR).await;
            }
        }
    }

    /// Adds jobs for deliveries that have none yet.
    async fn dispatch(&self) -> Result<(), Error> {
        let shared = &*self.webhooks.shared;
        loop {
            let page = shared.store.unqueued_deliveries(PAGE).await?;
            self.remove_jobs(&page).await?;
            shared.queue.enqueue_again(&jobs(&page)).await?;
            let ids: Vec<DeliveryId> = page.iter().map(|delivery| delivery.id).collect();
            shared.store.mark_queued(&ids).await?;
            if page.len() < PAGE as usize {
                return Ok(());
            }
        }
    }

    /// A delivery that is asked for again may have a job that waits for its time, and would stay where it is.
    async fn remove_jobs(&self, deliveries: &[PendingDelivery]) -> Result<(), Error> {
        let queue = &self.webhooks.shared.queue;
        let ids: Vec<String> = deliveries.iter().map(|delivery| delivery.id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for (id, presence) in ids.iter().zip(queue.presence(&ids).await?) {
            if presence == Presence::Live {
                // One that runs makes an attempt right now.
                let _is_gone: bool = queue.remove(id).await?;
            }
        }
        Ok(())
    }

    /// Cancels what is pending for endpoints that get nothing any more, in portions.
    async fn cancel(&self) -> Result<(), Error> {
        let store = &self.webhooks.shared.store;
        while let Some(webhook) = store.inactive_with_pending().await? {
            store.cancel_pending(webhook, now()).await?;
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    /// Adds jobs for all pending deliveries that have none in the queue.
    async fn compare(&self) -> Result<(), Error> {
        self.dispatch().await?;
        let shared = &*self.webhooks.shared;
        let (mut after, mut lost) = (None, 0);
        loop {
            let page = shared.store.pending_deliveries(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            let ids: Vec<String> = page.iter().map(|delivery| delivery.id.to_string()).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let presence = shared.queue.presence(&ids).await?;
            let missing: Vec<PendingDelivery> = page
                .into_iter()
                .zip(presence)
                .filter(|(_, presence)| *presence != Presence::Live)
                .map(|(delivery, _)| delivery)
                .collect();
            shared.queue.enqueue_again(&jobs(&missing)).await?;
            lost += missing.len();
        }
        if lost > 0 {
            tracing::info!(deliveries = lost, "added jobs for pending webhooks that had none");
        }
        Ok(())
    }

    async fn keep_cancelling(&self) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.cancel().await {
                tracing::warn!(%error, "cannot cancel deliveries of disabled webhooks");
                tokio::time::sleep(AFTER_ERROR).await;
            }
        }
    }

    async fn keep_forgetting(&self) {
        let mut looks = interval(FORGET_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.forget().await {
                tracing::warn!(%error, "cannot remove old deliveries of webhooks");
            }
        }
    }

    /// Removes old deliveries, in portions.
    async fn forget(&self) -> Result<(), Error> {
        let before = now() - self.kept;
        let mut removed = 0;
        loop {
            let portion = self.webhooks.shared.store.forget_deliveries(before, PAGE).await?;
            if portion == 0 {
                break;
            }
            removed += portion;
            tokio::time::sleep(BREATH).await;
        }
        if removed > 0 {
            tracing::info!(deliveries = removed, "removed old deliveries of webhooks");
        }
        Ok(())
    }
}

/// The jobs of deliveries, each due when the delivery is.
fn jobs(deliveries: &[PendingDelivery]) -> Vec<JobSpec> {
    let now = now();
    deliveries
        .iter()
        .map(|delivery| DeliverWebhook::job(delivery.id, until(delivery, now)))
        .collect()
}

/// The time until a delivery is due.
fn until(delivery: &PendingDelivery, now: Timestamp) -> Duration {
    let due = delivery.next_at.unwrap_or(now);
    Duration::try_from(due.duration_since(now)).unwrap_or_default()
}
