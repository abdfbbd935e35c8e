//! Feeding: the recipients of a running campaign get jobs, a portion at a time, so that a pause has little to take back and
//! Redis never holds a hundred thousand jobs that wait for one limit.
//!
//! ```text
//!   feed_campaign: pending ─▶ queued (committed) ──▶ jobs added ──▶ snooze ──▶ again, until no recipient is open
//! ```
//! A process that dies between the commit and the jobs leaves queued recipients without a job: the reconciler puts them back.

use std::time::Duration;

use stampede_broker::{JobContext, JobSpec};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::Campaign;

use crate::jobs::send_message::SendMessage;
use crate::{Campaigns, Error, answers, asks, now, pace};

/// How often, and how long, somebody who replaces a feeder waits for one that runs.
const TURNS: usize = 20;
const TURN: Duration = Duration::from_millis(25);

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
        let Some(snapshot) = shared.snapshots.read(id).await? else { return Ok(Fed::NotRunning) };
        let rate = asks::slowest_rate(&snapshot);
        let fed = shared.store.feed_campaign(id, pace::portion(rate), now()).await?;
        let jobs: Vec<JobSpec> =
            fed.queued.iter().map(|recipient| SendMessage::job(id, *recipient)).collect();
        // A retry has the id of the job that failed, whose record may still be kept.
        shared.messages.enqueue_again(&jobs).await?;
        let Some(campaign) = shared.store.campaign(id).await? else { return Ok(Fed::NotRunning) };
        if let Err(error) = context.progress(answers::progress(&campaign.counts)).await {
            tracing::debug!(%error, campaign = %id, "cannot tell the progress of a campaign");
        }
        if fed.is_completed {
            log_end(&campaign, "campaign completed");
            return Ok(Fed::Completed);
        }
        if !fed.is_running {
            return Ok(Fed::NotRunning);
        }
        Ok(Fed::Later(pace::feeder_sleep(rate, now(), fed.next_at)))
    }

    /// Adds the feeder of a campaign, which begins at a time.
    pub(crate) async fn add_feeder(
        &self,
        id: CampaignId,
        at: Option<Timestamp>,
    ) -> Result<(), Error> {
        use crate::jobs::feed_campaign::FeedCampaign;
        let delay = at.and_then(|at| Duration::try_from(at.duration_since(now())).ok());
        let job = FeedCampaign::job(id, delay.unwrap_or_default());
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
