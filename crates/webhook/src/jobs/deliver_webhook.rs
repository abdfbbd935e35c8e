//! `deliver-webhook`: makes attempts to deliver one message to one endpoint. The delivery in the store counts its attempts and
//! decides when there are no more: a Redis that lost the job, or a job that was added twice, changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stampede_broker::{Backoff, JobContext, JobPolicy, JobSpec, Keep, Outcome, RetryPolicy, Work};
use stampede_model::DeliveryId;

use crate::deliver::Delivered;
use crate::{Webhooks, now};

/// More than the schedule has: the delivery decides, not the job.
const ATTEMPTS: u32 = 100;
/// An attempt is over long before: it guards against a defect.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Records of ended jobs; the log of deliveries is in the store.
const KEPT: Keep = Keep::AtMost { age: Duration::from_secs(3_600), count: 1_000 };

/// Deliver one message to one endpoint. The job's id is the delivery's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliverWebhook {
    /// The delivery.
    pub delivery_id: DeliveryId,
}

impl DeliverWebhook {
    /// The job of a delivery that is due after a pause.
    pub(crate) fn job(delivery_id: DeliveryId, delay: Duration) -> JobSpec {
        JobSpec {
            id: delivery_id.to_string(),
            delay,
            keep_completed: KEPT,
            keep_failed: KEPT,
            ..Self { delivery_id }.spec()
        }
    }
}

impl Work for DeliverWebhook {
    const QUEUE: &'static str = "webhooks";
    const NAME: &'static str = "deliver-webhook";
    const VERSION: u32 = 1;
    type Env = Webhooks;

    fn policy() -> JobPolicy {
        let backoff = Backoff::Fixed(Duration::from_secs(60));
        let retry = RetryPolicy { attempts: ATTEMPTS, backoff, ..RetryPolicy::default() };
        JobPolicy { retry, timeout: Some(TIMEOUT) }
    }

    /// A delivery that failed for good is no dead letter: its endpoint is at fault, and its owner has the log.
    async fn run(&self, webhooks: &Webhooks, _: &JobContext) -> Outcome {
        match webhooks.deliver(self.delivery_id).await {
            Delivered::Done(status) => {
                Outcome::Done(json!({ "delivered": true, "status": status }))
            }
            Delivered::Skipped => Outcome::Done(json!({ "delivered": false, "skipped": true })),
            Delivered::Failed(reason) => {
                Outcome::Done(json!({ "delivered": false, "reason": reason }))
            }
            Delivered::Later(pause) => Outcome::Snooze(pause),
            Delivered::Again(reason, pause) => Outcome::RetryAfter(reason, pause),
            Delivered::Defect(reason) => Outcome::Retry(reason),
        }
    }

    /// A delivery whose job cannot run is failed, so that it does not get jobs for ever.
    async fn given_up(&self, webhooks: &Webhooks, reason: &str) -> Result<(), String> {
        let failed = webhooks.shared.store.fail_delivery(self.delivery_id, reason, now()).await;
        failed.map_err(|error| error.to_string())
    }

    async fn comes_back(webhooks: &Webhooks, job_id: &str) -> Option<String> {
        let id = job_id.parse().ok()?;
        let pending = webhooks.shared.store.sealed_delivery(id).await.ok().flatten()?;
        Some(format!(
            "the message is still to be delivered, so within a minute it gets a new job; to stop it, disable its \
             webhook: PATCH /api/webhooks/{} {{\"state\": \"disabled\"}}",
            pending.webhook
        ))
    }

    fn all_come_back() -> Option<&'static str> {
        Some(
            "messages that are still to be delivered get new jobs within a minute; to hold them back, pause the queue; \
             to stop them, disable their webhooks: PATCH /api/webhooks/{id} {\"state\": \"disabled\"}",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_delivery_has_its_id_and_a_small_payload() {
        let id = DeliveryId::generate();
        let job = DeliverWebhook::job(id, Duration::from_secs(9));
        assert_eq!(
            (job.id.as_str(), job.name.as_ref()),
            (id.to_string().as_str(), "deliver-webhook")
        );
        assert_eq!(job.data, json!({ "v": 1, "deliveryId": id }));
        assert_eq!((job.attempts, job.delay), (Some(100), Duration::from_secs(9)));
        assert_eq!(DeliverWebhook::parse(&job.data).unwrap().delivery_id, id);
    }
}
