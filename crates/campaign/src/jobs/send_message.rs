//! `message`: sends the message of one recipient, or finds out that it is not to be sent. The ledger decides: a job that was lost
//! or added twice changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stampede_broker::{Backoff, JobContext, JobPolicy, JobSpec, Keep, Outcome, RetryPolicy, Work};
use stampede_model::{CampaignId, RecipientId};

use crate::send::Ran;
use crate::share::Place;
use crate::{Campaigns, now};

/// The ledger counts the attempts to send; these are for defects.
const ATTEMPTS: u32 = 100;

/// Send one message. The job's id is the recipient's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendMessage {
    /// The campaign.
    pub contract_id: CampaignId,
    /// The recipient.
    pub recipient_id: RecipientId,
}

impl SendMessage {
    /// The job of a recipient that is queued.
    pub(crate) fn job(contract_id: CampaignId, recipient_id: RecipientId) -> JobSpec {
        // The ledger keeps what became of it.
        let kept = Keep::AtMost { age: Duration::from_secs(3_600), count: 1_000 };
        JobSpec {
            id: recipient_id.to_string(),
            keep_completed: kept,
            keep_failed: kept,
            ..Self { contract_id, recipient_id }.spec()
        }
    }
}

impl Work for SendMessage {
    const QUEUE: &'static str = "messages";
    const NAME: &'static str = "message";
    const VERSION: u32 = 1;
    type Env = Campaigns;

    /// Without a time limit: a mail server may take ten minutes to accept a message, and each channel has limits of its own.
    fn policy() -> JobPolicy {
        let backoff = Backoff::Fixed(Duration::from_secs(60));
        let retry = RetryPolicy { attempts: ATTEMPTS, backoff, ..RetryPolicy::default() };
        JobPolicy { retry, timeout: None }
    }

    async fn run(&self, campaigns: &Campaigns, _: &JobContext) -> Outcome {
        let place = match campaigns.place_for(self.contract_id).await {
            Place::Taken(place) => place,
            Place::Later(pause) => return Outcome::Snooze(pause),
        };
        match campaigns.run_message(self.recipient_id).await {
            Ran::Ended(word) => {
                if let Some(place) = place {
                    place.count_time();
                }
                Outcome::Done(json!({ "outcome": word }))
            }
            Ran::Later(pause) => Outcome::Snooze(pause),
            Ran::Defect(reason) => Outcome::Retry(reason),
        }
    }

    /// A recipient whose job cannot run goes back, so that it is not queued for ever; one that is being sent to becomes unknown.
    async fn given_up(&self, campaigns: &Campaigns, reason: &str) -> Result<(), String> {
        tracing::error!(recipient = %self.recipient_id, reason, "the job of a message cannot run");
        let put_back =
            campaigns.shared.store.put_back_recipients(&[self.recipient_id], now()).await;
        put_back.map(drop).map_err(|error| error.to_string())
    }

    async fn comes_back(_: &Campaigns, _: &str) -> Option<String> {
        Self::all_come_back().map(str::to_owned)
    }

    fn all_come_back() -> Option<&'static str> {
        Some(
            "recipients of running campaigns that were not sent to get other jobs within two minutes; to hold them back: \
             POST /api/contracts/{id}/pause",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_message_has_its_recipients_id_and_a_small_payload() {
        let (campaign, recipient) = (CampaignId::generate(), RecipientId::generate());
        let job = SendMessage::job(campaign, recipient);
        assert_eq!((job.id, job.name.as_ref()), (recipient.to_string(), "message"));
        let data = json!({ "v": 1, "contractId": campaign, "recipientId": recipient });
        assert_eq!(job.data, data);
        assert_eq!(SendMessage::parse(&data).unwrap().recipient_id, recipient);
    }
}
