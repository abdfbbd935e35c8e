//! Reconciling: the store is compared with the queues, and what a process has left behind when it died is put right.
//!
//! | found | done |
//! |---|---|
//! | a running campaign, or one whose time has come, without a feeder | it gets one |
//! | a queued recipient without a job | it is pending again |
//! | a recipient that is being sent to, without a job | it is unknown: the message may have arrived |
//! | an import that was not continued | it is undone |
//! | progress of a campaign that was not told | it is told |
//! | recipients that are left of a cancelled campaign | they are skipped |
//! | rows of deleted campaigns | they are removed |
//!
//! Each of these may be done by any number of nodes at the same time.

use std::time::Duration;

use stampede_broker::Presence;
use stampede_model::{RecipientId, Timestamp};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::jobs::feed_campaign::FeedCampaign;
use crate::{Campaigns, Error, now};

/// Rows looked at in one step.
const PAGE: u32 = 1_000;
/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(30);
/// Recipients that changed later are in the hands of the process that changed them.
const SETTLE: Duration = Duration::from_secs(60);
/// An import that was not continued for so long is dead.
pub(crate) const IMPORT_DIES: Duration = Duration::from_secs(10 * 60);
/// Recipients that are skipped or removed in one transaction.
pub(crate) const SKIPPED: u32 = 1_000;
/// Pause between two portions that are skipped or removed: others write, too.
const BREATH: Duration = Duration::from_millis(100);
/// Portions of one pass: the next one goes on, so that nothing else waits long.
const PORTIONS: usize = 100;

/// What a pass has put right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Campaigns that got a feeder.
    pub feeders: usize,
    /// Recipients that were put back or became unknown.
    pub recipients: u64,
    /// Imports that were undone.
    pub imports: u64,
}

/// Compares the store with the queues, at the start and every 30 seconds.
pub struct Reconciler {
    campaigns: Campaigns,
}

impl Reconciler {
    /// Nothing happens before [`Reconciler::run`].
    pub fn new(campaigns: Campaigns) -> Self {
        Self { campaigns }
    }

    /// Reconciles until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => return,
            }
            tokio::select! {
                done = self.pass(now() - SETTLE) => match done {
                    Ok(Reconciled { feeders: 0, recipients: 0, imports: 0 }) => {}
                    Ok(Reconciled { feeders, recipients, imports }) => tracing::info!(
                        feeders, recipients, imports,
                        "campaigns without a feeder, messages without a job and imports that broke off were put right"
                    ),
                    // The next pass tries again; nothing is lost meanwhile.
                    Err(error) => tracing::warn!(%error, "cannot reconcile campaigns"),
                },
                () = stop.cancelled() => return,
            }
        }
    }

    /// One pass over recipients that changed last before a moment.
    pub async fn pass(&self, before: Timestamp) -> Result<Reconciled, Error> {
        let recipients = self.recipients(before).await?;
        let feeders = self.feeders().await?;
        let store = &self.campaigns.shared.store;
        let imports = store.undo_dead_imports(now() - IMPORT_DIES).await?;
        store.tell_campaigns(PAGE, now()).await?;
        self.sweep().await?;
        Ok(Reconciled { feeders, recipients, imports })
    }

    /// Skips what is left of cancelled campaigns, then removes what is left of deleted ones.
    async fn sweep(&self) -> Result<(), Error> {
        let store = &self.campaigns.shared.store;
        for _ in 0..PORTIONS {
            let swept = match store.cancelled_campaigns(1).await?.first() {
                Some(id) => store.skip_cancelled(*id, SKIPPED, now()).await?,
                None => store.forget_campaigns(SKIPPED).await?,
            };
            if swept == 0 {
                break;
            }
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    async fn feeders(&self) -> Result<usize, Error> {
        let shared = &*self.campaigns.shared;
        let (mut after, mut added) = (None, 0);
        loop {
            let page = shared.store.campaigns_to_feed(now(), after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(added) };
            after = Some(*last);
            let ids: Vec<String> = page.iter().map(|id| FeedCampaign::id(*id)).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let presence = shared.contracts.presence(&ids).await?;
            let missing: Vec<_> = page
                .iter()
                .zip(presence)
                .filter(|(_, presence)| *presence != Presence::Live)
                .map(|(id, _)| FeedCampaign::job(*id, Duration::ZERO))
                .collect();
            shared.contracts.enqueue_again(&missing).await?;
            added += missing.len();
        }
    }

    async fn recipients(&self, before: Timestamp) -> Result<u64, Error> {
        let shared = &*self.campaigns.shared;
        let (mut after, mut put_back) = (None, 0);
        loop {
            let page = shared.store.recipients_in_hand(before, after, PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(put_back) };
            after = Some(*last);
            let ids: Vec<String> = page.iter().map(|(id, _)| id.to_string()).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let presence = shared.messages.presence(&ids).await?;
            let lost: Vec<RecipientId> = page
                .iter()
                .zip(presence)
                .filter(|(_, presence)| *presence != Presence::Live)
                .map(|((id, _), _)| *id)
                .collect();
            if !lost.is_empty() {
                put_back += shared.store.put_back_recipients(&lost, now()).await?;
            }
        }
    }
}
