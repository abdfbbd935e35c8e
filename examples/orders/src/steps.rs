//! The handlers of the five jobs. This is the part to copy from: outcomes, a circuit breaker for the
//! bank, a rate limit for the warehouse, a time limit for mails.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{
    Backoff, BreakerConfig, Gate, Handler, Job, JobContext, JobPolicy, Outcome, Permit, Rate,
    RetryPolicy,
};

use super::world::{Charge, WAREHOUSE_MOST, World};

/// The name of the warehouse's rate limit, which all processes share.
const WAREHOUSE: &str = "warehouse";

/// The handler of all four queues.
pub(super) struct Steps {
    world: Arc<World>,
}

impl Steps {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world }
    }

    async fn charge(&self, order: u32, job: &Job, context: &JobContext) -> Result<Value, Outcome> {
        let config = BreakerConfig {
            failures: 5,
            within: Duration::from_secs(10),
            pause: Duration::from_millis(500),
            patience: Duration::from_secs(5),
        };
        let passage = match context.breaker("bank", config).ask().await? {
            Gate::Open(passage) => passage,
            Gate::Shut(wait) => {
                self.world.note("charges that waited for the bank to come back");
                return Err(Outcome::Snooze(wait));
            }
        };
        let card = job.data["card"].as_str().unwrap_or_default();
        // The job's id is the bank's idempotency key: a job that runs again pays once. An error of the breaker
        // does not change the outcome: the payment has happened or not.
        let (outcome, told) = match self.world.charge(order, card, &job.id) {
            Charge::Paid => {
                (Ok(json!({ "payment": format!("pay-{order}") })), passage.worked().await)
            }
            // The bank is fine, the card is not: no retry would help.
            Charge::Declined => {
                (Err(Outcome::Discard("the card was declined".to_owned())), passage.worked().await)
            }
            Charge::Failed => {
                (Err(Outcome::Retry("the bank answered 500".to_owned())), passage.failed().await)
            }
            // It is unknown whether the bank has the money; the idempotency key makes the retry safe.
            Charge::AnswerLost => {
                let reason = "the bank's answer was lost".to_owned();
                (Err(Outcome::Retry(reason)), passage.failed().await)
            }
            // Snoozing uses no attempt: an outage of the bank is no failure of the job.
            Charge::Down => {
                (Err(Outcome::Snooze(Duration::from_millis(100))), passage.failed().await)
            }
        };
        if let Err(error) = told {
            tracing::debug!(%error, "cannot tell the bank's breaker");
        }
        outcome
    }

    async fn notify_warehouse(&self, order: u32, context: &JobContext) -> Result<Value, Outcome> {
        let rate = Rate::new(WAREHOUSE_MOST, Duration::from_secs(1));
        if let Permit::Wait(wait) = context.permit(WAREHOUSE, Some(rate)).await? {
            self.world.note("messages to the warehouse that waited for its rate limit");
            return Err(Outcome::Snooze(wait));
        }
        self.world.tell_warehouse(order);
        Ok(json!(null))
    }

    async fn confirm(&self, order: u32) -> Value {
        if self.world.mail_hangs(order) {
            std::future::pending::<()>().await;
        }
        self.world.confirm(order);
        json!({ "mailed": true })
    }
}

impl Handler for Steps {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        let Some(order) = job.data["order"].as_u64().map(|number| number as u32) else {
            return Outcome::Discard("the payload names no order".to_owned());
        };
        // `?` on an error of the broker gives an outcome, too: the job is snoozed and loses no attempt.
        let result: Result<Value, Outcome> = match job.name.as_str() {
            "validate-order" if World::has_items(order) => Ok(json!({ "valid": true })),
            "validate-order" => Err(Outcome::Discard("the order is empty".to_owned())),
            "charge-payment" => self.charge(order, job, context).await,
            "reserve-inventory" => {
                self.world.reserve(order);
                Ok(json!(null))
            }
            "notify-warehouse" => self.notify_warehouse(order, context).await,
            "send-confirmation-email" => Ok(self.confirm(order).await),
            other => Err(Outcome::Discard(format!("no step is called {other:?}"))),
        };
        result.into()
    }

    fn policy(&self, job_name: &str) -> JobPolicy {
        let timeout = (job_name == "send-confirmation-email").then_some(Duration::from_millis(500));
        let backoff = Backoff::Exponential(Duration::from_millis(50));
        let retry = RetryPolicy { attempts: 4, backoff, jitter: 0.5, ..RetryPolicy::default() };
        JobPolicy { timeout, retry }
    }
}
