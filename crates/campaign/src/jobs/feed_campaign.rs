//! `campaign`: gives the recipients of one campaign their jobs, again and again until the campaign ends. The store decides what
//! is fed: a job that was lost or added twice changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stampede_broker::{Backoff, JobContext, JobPolicy, JobSpec, Keep, Outcome, RetryPolicy, Work};
use stampede_model::CampaignId;

use crate::feed::Fed;
use crate::{Campaigns, Error};

/// A feeder fails only by a defect; the reconciler adds another one.
const ATTEMPTS: u32 = 100;
/// One step takes milliseconds: it guards against a defect.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Pause while the database or Redis is away.
const OUTAGE: Duration = Duration::from_secs(2);
/// Campaigns that a worker feeds at the same time, as older software has it.
const SLOTS: usize = 5;

/// Feed one campaign. The job's id is `contract-<campaign id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedCampaign {
    /// The campaign.
    pub contract_id: CampaignId,
}

impl FeedCampaign {
    /// The job of a campaign that begins after a pause.
    pub(crate) fn job(contract_id: CampaignId, delay: Duration) -> JobSpec {
        let kept = Keep::AtMost { age: Duration::from_secs(24 * 3_600), count: 1_000 };
        JobSpec {
            id: Self::id(contract_id),
            delay,
            keep_completed: kept,
            keep_failed: kept,
            ..Self { contract_id }.spec()
        }
    }

    /// The id of the job of a campaign.
    pub(crate) fn id(campaign: CampaignId) -> String {
        format!("contract-{campaign}")
    }
}

impl Work for FeedCampaign {
    const QUEUE: &'static str = "contracts";
    const NAME: &'static str = "campaign";
    const VERSION: u32 = 1;
    type Env = Campaigns;

    fn policy() -> JobPolicy {
        let backoff = Backoff::Fixed(Duration::from_secs(10));
        let retry = RetryPolicy { attempts: ATTEMPTS, backoff, ..RetryPolicy::default() };
        JobPolicy { retry, timeout: Some(TIMEOUT) }
    }

    async fn run(&self, campaigns: &Campaigns, context: &JobContext) -> Outcome {
        match campaigns.feed(self.contract_id, context).await {
            Ok(Fed::Completed) => Outcome::Done(json!({ "completed": true })),
            Ok(Fed::NotRunning) => Outcome::Done(json!({ "completed": false })),
            Ok(Fed::Later(pause)) => Outcome::Snooze(pause),
            Err(Error::Unavailable { .. }) => Outcome::Snooze(OUTAGE),
            Err(Error::Internal(reason)) => Outcome::Retry(reason),
        }
    }

    fn slots(_: usize) -> usize {
        SLOTS
    }

    async fn comes_back(_: &Campaigns, job_id: &str) -> Option<String> {
        let id = job_id.strip_prefix("contract-")?;
        Some(format!(
            "a campaign that is running gets another feeder within a minute; to stop it: POST /api/contracts/{id}/pause"
        ))
    }

    fn all_come_back() -> Option<&'static str> {
        Some(
            "campaigns that are running get other feeders within a minute; to stop them: POST /api/contracts/{id}/pause",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_has_the_names_that_older_software_reads() {
        let id = CampaignId::generate();
        let job = FeedCampaign::job(id, Duration::ZERO);
        assert_eq!((job.id, job.name.as_ref()), (format!("contract-{id}"), "campaign"));
        assert_eq!(job.data, json!({ "v": 1, "contractId": id }));
        assert_eq!(FeedCampaign::slots(64), 5);
    }
}
