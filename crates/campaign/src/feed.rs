//! Feeding: the recipients of a running campaign get jobs, a portion at a time, so that a pause has little to take back and
//! Redis never holds a hundred thousand jobs that wait for one limit.
//!
//! ```text
//!   feed_campaign: pending ─▶ queued (committed) ──▶ jobs added ──▶ snooze ──▶ again, until no recipient is open
//! ```
//! A process that dies between the commit and the jobs leaves queued recipients without a job: the reconciler puts them back.
//!
//! A campaign may stop between the commit and the jobs. Whoever stops it waits for the feeder before it removes the jobs; a feeder
//! that takes longer removes them itself.

use std::time::Duration;

use stampede_broker::{JobContext, JobSpec, State};
use stampede_model::campaign::CampaignState;
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_store::Campaign;

use crate::jobs::feed_campaign::FeedCampaign;
use crate::jobs::send_message::SendMessage;
use crate::{Campaigns, Error, answers, asks, now, pace};

/// How often, and how long, somebody waits for a job that runs.
pub(crate) const TURNS: usize = 20;
pub(crate) const TURN: Duration = Duration::from_millis(25);

/// Longest sleep of the feeder of a campaign that starts later.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How a run of a feeder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fed {
    /// The campaign is completed.
    Completed,
    /// The campaign is not running.
    NotRunning,
    /// To be fed again after this long.
    Later(Duration),
}

impl Campaigns {
    /// Gives the next recipients of a campaign their jobs.
    pub(crate) async fn feed(&self, id: CampaignId, context: &JobContext) -> Result<Fed, Error> {
        let shared = &*self.shared;
        // The account may be deleted, or its credentials lost: then the store stops the campaign.
        let read = shared.snapshots.read(id).await;
        let rate = match &read {
            Ok(Some(snapshot)) => Some(asks::slowest_rate(snapshot)),
            Ok(None) | Err(Error::Internal(_)) => None,
            Err(error) => return Err(error.clone()),
        };
        let portion = rate.map_or(0, pace::portion);
        let fed = shared.store.feed_campaign(id, portion, now()).await?;
        if let Some(reason) = &fed.stopped {
            self.stopped(id, reason, &fed.taken_back).await?;
            return Ok(Fed::NotRunning);
        }
        read?;
        let rate = rate.flatten();
        let jobs: Vec<JobSpec> =
            fed.queued.iter().map(|recipient| SendMessage::job(id, *recipient)).collect();
        // A retry has the id of the job that failed, whose record may still be kept.
        shared.messages.enqueue_again(&jobs).await?;
        let campaign = shared.store.campaign(id).await?;
        if campaign.as_ref().is_none_or(|campaign| campaign.state != CampaignState::Running) {
            self.remove_jobs(&fed.queued).await;
        }
        let Some(campaign) = campaign else { return Ok(Fed::NotRunning) };
        if let Err(error) = context.progress(answers::progress(&campaign.counts)).await {
            tracing::debug!(%error, campaign = %id, "cannot tell the progress of a campaign");
        }
        if fed.is_completed {
            log_end(&campaign, "campaign completed");
            return Ok(Fed::Completed);
        }
        if !fed.is_running {
            let later = (campaign.state == CampaignState::Scheduled).then_some(campaign.start_at);
            return Ok(later.flatten().map_or(Fed::NotRunning, |at| Fed::Later(sleep_until(at))));
        }
        Ok(Fed::Later(pace::feeder_sleep(rate, now(), fed.next_at)))
    }

    /// A campaign whose account may not send has stopped.
    async fn stopped(
        &self,
        id: CampaignId,
        reason: &str,
        taken_back: &[RecipientId],
    ) -> Result<(), Error> {
        self.shared.snapshots.forget(id);
        if let Some(campaign) = self.shared.store.campaign(id).await? {
            self.tell_paused(&campaign, reason).await;
        }
        self.remove_jobs(taken_back).await;
        Ok(())
    }

    /// Adds the feeder of a campaign whose change is committed. Without Redis, the reconciler adds it later.
    pub(crate) async fn feed_soon(&self, id: CampaignId, at: Option<Timestamp>) {
        if let Err(error) = self.add_feeder(id, at).await {
            tracing::warn!(%error, campaign = %id, "cannot add the feeder of a campaign; the reconciler does");
        }
    }

    /// Waits until no feeder of a campaign runs, half a second at most: its steps take milliseconds.
    pub(crate) async fn wait_for_feeder(&self, id: CampaignId) {
        let feeder = FeedCampaign::id(id);
        for _ in 0..TURNS {
            match self.shared.contracts.job(&feeder).await {
                Ok(Some(job)) if job.state == State::Active => tokio::time::sleep(TURN).await,
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, campaign = %id, "cannot look for the feeder of a campaign");
                    return;
                }
            }
        }
    }

    /// Adds the feeder of a campaign, which begins at a time.
    async fn add_feeder(&self, id: CampaignId, at: Option<Timestamp>) -> Result<(), Error> {
        let job = FeedCampaign::job(id, at.map(sleep_until).unwrap_or_default());
        // A feeder that sleeps is replaced: its campaign has changed. One that runs has read the campaign before, and may be
        // about to end; its steps take milliseconds. If it takes longer, the reconciler looks after the campaign.
        for _ in 0..TURNS {
            if self.shared.contracts.remove(&job.id).await? {
                break;
            }
            tokio::time::sleep(TURN).await;
        }
        self.shared.contracts.enqueue_again(&[job]).await?;
        Ok(())
    }
}

/// How long a feeder sleeps until a time. It looks at its campaign once a day: the queue delays no job by more than ten years.
fn sleep_until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now())).unwrap_or_default().min(LONGEST_SLEEP)
}

/// One line for the end of every campaign.
pub(crate) fn log_end(campaign: &Campaign, what: &'static str) {
    let Campaign { id, name, owner, account, counts, .. } = campaign;
    tracing::info!(
        campaign = %id, name, owner, %account, total = counts.total(), sent = counts.sent,
        delivered = counts.delivered, read = counts.read, failed = counts.failed,
        unknown = counts.unknown, skipped = counts.skipped, "{what}"
    );
}

/// One line for the start of every campaign.
pub(crate) fn log_start(campaign: &Campaign, what: &'static str) {
    let Campaign { id, name, owner, account, counts, .. } = campaign;
    tracing::info!(
        campaign = %id, name, owner, %account, total = counts.total(), open = counts.open(), "{what}"
    );
}
