//! One attempt to deliver: read the delivery, send it, record the answer.
//!
//! A process that dies between the answer and the record sends the message again, under the same id. While the database cannot be
//! written, nothing is sent (`writes.rs`).

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use stampede_model::{DeliveryId, Timestamp};
use stampede_store::{AttemptResult, DisabledReason, OutgoingDelivery, WebhookAttempt};
use url::Url;

use crate::client::{self, Answer};
use crate::schedule::{Attempted, GIVE_UP_AFTER, Next, next};
use crate::{Webhooks, message, now, signature};

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The endpoint accepted the message with this status.
    Done(u16),
    /// The delivery is no longer to be sent.
    Skipped,
    /// Nothing was sent: the endpoint has no turn free, or the database is away.
    Later(Duration),
    /// The attempt failed; the next one is after this pause.
    Again(String, Duration),
    /// The last attempt failed, or the endpoint is gone.
    Failed(String),
    /// A defect; trying again may help.
    Defect(String),
}

impl Webhooks {
    /// Makes one attempt.
    pub(crate) async fn deliver(&self, id: DeliveryId) -> Delivered {
        let outgoing = match self.shared.store.outgoing_delivery(id, now()).await {
            Ok(Some(outgoing)) => outgoing,
            Ok(None) => return Delivered::Skipped,
            Err(error) if error.is_outage() => {
                return Delivered::Later(self.shared.writes.failed());
            }
            Err(error) => return Delivered::Defect(error.to_string()),
        };
        // An attempt that cannot be recorded is not made: nothing would count it, and it would be repeated without end.
        if !self.shared.writes.are_proven() {
            if self.shared.store.ping().await.is_err() {
                return Delivered::Later(self.shared.writes.failed());
            }
            self.shared.writes.proven();
        }
        let turn = match self.shared.turns.take(outgoing.webhook) {
            Ok(turn) => turn,
            Err(pause) => return Delivered::Later(pause),
        };
        let Some(body) = message::body(&outgoing.delivery) else {
            return Delivered::Defect("the data of the message is no JSON".to_owned());
        };
        let (at, begun) = (now(), Instant::now());
        let answer = self.send(&outgoing, body, at).await;
        turn.note(answer.as_ref().is_ok_and(|answer| (200..300).contains(&answer.status)));
        drop(turn);
        self.record(&outgoing, at, begun.elapsed(), answer).await
    }

    async fn send(
        &self,
        outgoing: &OutgoingDelivery,
        body: String,
        at: Timestamp,
    ) -> Result<Answer, String> {
        // The rules may have changed since the endpoint was made.
        let url = crate::address::parse(&outgoing.url, self.shared.client.allowed())?;
        let mut headers = headers(outgoing, at);
        let message = outgoing.delivery.message;
        let signatures = signature::signatures(&outgoing.secrets, message, at, &body);
        insert(&mut headers, "webhook-signature", signatures);
        self.shared.client.post(&url, headers, body).await
    }

    /// Records an attempt and its effect.
    async fn record(
        &self,
        outgoing: &OutgoingDelivery,
        at: Timestamp,
        duration: Duration,
        answer: Result<Answer, String>,
    ) -> Delivered {
        let delivery = &outgoing.delivery;
        let attempted = Attempted {
            status: answer.as_ref().ok().map(|answer| answer.status),
            retry_after: answer.as_ref().ok().and_then(|answer| answer.retry_after),
        };
        let next = next(&attempted, delivery.tries, rand::random());
        let (error, text) = match answer {
            Ok(answer) => (refusal(answer.status), answer.text),
            Err(error) => (Some(error), String::new()),
        };
        let attempt = WebhookAttempt {
            at,
            duration,
            status: attempted.status,
            error: error.clone(),
            answer: text,
        };
        let give_up_before = at - GIVE_UP_AFTER;
        let result = match next {
            Next::Delivered => AttemptResult::Delivered,
            Next::Again(pause) => AttemptResult::Retry { at: now() + pause, give_up_before },
            Next::GiveUp => AttemptResult::Failed { give_up_before },
            Next::Gone => AttemptResult::Gone,
        };
        let recorded = self.shared.store.record_attempt(delivery.id, &attempt, result).await;
        let disabled = match recorded {
            Ok(disabled) => disabled,
            // Sent again later under the same id; the receiver drops what it knows.
            Err(error) if error.is_outage() => {
                return Delivered::Later(self.shared.writes.failed());
            }
            Err(error) => return Delivered::Defect(error.to_string()),
        };
        self.shared.writes.succeeded();
        let reason = error.unwrap_or_default();
        if let Some(why) = disabled {
            tell_disabled(outgoing, why, &reason);
        }
        match next {
            Next::Delivered => Delivered::Done(attempt.status.unwrap_or_default()),
            _ if disabled.is_some() => Delivered::Failed(reason),
            Next::Again(pause) => Delivered::Again(reason, pause),
            Next::GiveUp | Next::Gone => {
                tell_failed(outgoing, &reason);
                Delivered::Failed(reason)
            }
        }
    }
}

/// One line for each delivery that fails for good.
fn tell_failed(outgoing: &OutgoingDelivery, reason: &str) {
    let OutgoingDelivery { delivery, webhook, owner, .. } = outgoing;
    let (host, attempts) = (host_of(outgoing), delivery.attempts + 1);
    tracing::warn!(
        %webhook, delivery = %delivery.id, kind = delivery.kind, owner, host, attempts, reason,
        "webhook delivery failed"
    );
}

fn tell_disabled(outgoing: &OutgoingDelivery, why: DisabledReason, reason: &str) {
    let (webhook, owner, host) = (outgoing.webhook, &outgoing.owner, host_of(outgoing));
    tracing::warn!(
        %webhook, owner, host, why = why.as_str(), reason,
        "webhook disabled: its deliveries are cancelled until its owner makes it active again"
    );
}

/// The host alone: a path may have secrets in it.
fn host_of(outgoing: &OutgoingDelivery) -> String {
    let url = outgoing.url.parse::<Url>().ok();
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Why a status is no success; `None`: it is one.
fn refusal(status: u16) -> Option<String> {
    match status {
        200..=299 => None,
        300..=399 => Some(format!("answered {status}: redirects are not followed")),
        410 => Some("answered 410: the endpoint is gone".to_owned()),
        _ => Some(format!("answered {status}")),
    }
}

/// The headers of an attempt but for the signature.
fn headers(outgoing: &OutgoingDelivery, at: Timestamp) -> HeaderMap {
    let mut headers = client::headers();
    insert(&mut headers, "webhook-id", outgoing.delivery.message.to_string());
    insert(&mut headers, "webhook-timestamp", at.as_second().to_string());
    headers
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: String) {
    // Ids, numbers and base64 are always fit for a header.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
