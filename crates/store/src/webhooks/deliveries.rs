//! Deliveries of messages to endpoints.

use std::time::Duration;

use async_trait::async_trait;
use stampede_model::{BatchId, DeliveryId, EventId, FeedEventId, Timestamp, WebhookId};

use super::DisabledReason;
use crate::{Result, Slice};

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is to be sent, for the first time or again.
    Pending,
    /// The endpoint accepted it.
    Delivered,
    /// The endpoint did not accept it in any attempt.
    Failed,
    /// The endpoint was disabled or deleted first.
    Cancelled,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Delivered, Self::Failed, Self::Cancelled];

    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A message that is sent to one endpoint only.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// Names the delivery.
    pub id: DeliveryId,
    /// The endpoint.
    pub webhook: WebhookId,
    /// Names the message.
    pub message: FeedEventId,
    /// The kind of the message.
    pub kind: String,
    /// When it happened.
    pub happened_at: Timestamp,
    /// What happened, as JSON.
    pub data: String,
}

/// The delivery of one message to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// Names the delivery.
    pub id: DeliveryId,
    /// The endpoint.
    pub webhook: WebhookId,
    /// Names the message: the same for all endpoints and attempts.
    pub message: FeedEventId,
    /// The kind of the message.
    pub kind: String,
    /// The ticketed event that it is about.
    pub event: Option<EventId>,
    /// The order that it is about.
    pub batch: Option<BatchId>,
    /// When it happened.
    pub happened_at: Timestamp,
    /// What happened, as JSON.
    pub data: String,
    /// Its state.
    pub state: DeliveryState,
    /// Attempts in all.
    pub attempts: u32,
    /// Attempts since it was last asked for.
    pub tries: u32,
    /// When it is tried again, if it has been tried.
    pub next_at: Option<Timestamp>,
    /// The status of the last answer.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was delivered, failed or cancelled.
    pub ended_at: Option<Timestamp>,
}

/// A delivery to be sent, as it is kept: its secrets are encrypted.
#[derive(Debug, Clone)]
pub struct SealedDelivery {
    /// The delivery.
    pub delivery: WebhookDelivery,
    /// The endpoint.
    pub webhook: WebhookId,
    /// The endpoint's owner.
    pub owner: String,
    /// Where it is sent.
    pub url: String,
    /// The present secret.
    pub secret: String,
    /// The former secret.
    pub former_secret: Option<String>,
    /// Until when the former secret counts.
    pub former_until: Option<Timestamp>,
}

/// A delivery to be sent.
#[derive(Clone)]
pub struct OutgoingDelivery {
    /// The delivery.
    pub delivery: WebhookDelivery,
    /// The endpoint.
    pub webhook: WebhookId,
    /// The endpoint's owner.
    pub owner: String,
    /// Where it is sent.
    pub url: String,
    /// The secrets that sign it, the present one first.
    pub secrets: Vec<Vec<u8>>,
}

/// A pending delivery, for those who look whether it has a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// When it is tried again; `None`: now.
    pub next_at: Option<Timestamp>,
}

/// Which deliveries to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Only those in this state.
    pub state: Option<DeliveryState>,
    /// Only those of this kind.
    pub kind: Option<String>,
}

/// One attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAttempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why it failed; `None`: it did not.
    pub error: Option<String>,
    /// The beginning of the answer, as text without control characters.
    pub answer: String,
}

/// The effect of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The endpoint accepted the message.
    Delivered,
    /// It is tried again at this time. If the endpoint has been failing since `give_up_before` or longer, it is disabled.
    Retry {
        /// When it is tried again.
        at: Timestamp,
        /// An endpoint that has been failing for so long is disabled.
        give_up_before: Timestamp,
    },
    /// No attempts are left. If the endpoint has been failing since `give_up_before` or longer, it is disabled.
    Failed {
        /// An endpoint that has been failing for so long is disabled.
        give_up_before: Timestamp,
    },
    /// The endpoint is gone: it is disabled.
    Gone,
}

/// The result of asking for a delivery once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redelivered {
    /// It is pending.
    Done,
    /// There is no such delivery of this endpoint.
    NotFound,
    /// The endpoint is disabled.
    Disabled,
}

/// The deliveries.
#[async_trait]
pub trait WebhookDeliveries: Send + Sync {
    /// Writes a message to one active endpoint; `false`: there is none.
    async fn insert_delivery(&self, delivery: &NewDelivery, now: Timestamp) -> Result<bool>;

    /// A delivery of an endpoint.
    async fn delivery(&self, webhook: WebhookId, id: DeliveryId)
    -> Result<Option<WebhookDelivery>>;

    /// A part of the list of an endpoint's deliveries.
    async fn deliveries(
        &self,
        webhook: WebhookId,
        filter: &DeliveryFilter,
        slice: &Slice<DeliveryId>,
    ) -> Result<Vec<WebhookDelivery>>;

    /// The last attempts of a delivery, the first first.
    async fn delivery_attempts(&self, id: DeliveryId) -> Result<Vec<WebhookAttempt>>;

    /// A pending delivery of an active endpoint.
    async fn sealed_delivery(&self, id: DeliveryId) -> Result<Option<SealedDelivery>>;

    /// Records an attempt and its effect; returns why the endpoint was disabled by it, if it was. An attempt that
    /// delivered is not synced: after a power cut the message may be sent again, under the same id.
    async fn record_attempt(
        &self,
        id: DeliveryId,
        attempt: &WebhookAttempt,
        result: AttemptResult,
    ) -> Result<Option<DisabledReason>>;

    /// Fails a pending delivery that cannot be tried.
    async fn fail_delivery(&self, id: DeliveryId, reason: &str, now: Timestamp) -> Result<()>;

    /// Makes a delivery pending again, with all attempts.
    async fn redeliver(&self, webhook: WebhookId, id: DeliveryId) -> Result<Redelivered>;

    /// Makes the deliveries of an active endpoint pending again that failed or were cancelled at `since` or later.
    async fn redeliver_all(&self, webhook: WebhookId, since: Timestamp) -> Result<u64>;

    /// An endpoint that is disabled or deleted and has pending deliveries.
    async fn inactive_with_pending(&self) -> Result<Option<WebhookId>>;

    /// Cancels a portion of the pending deliveries of an endpoint that is disabled or deleted; returns how many. Not synced:
    /// a delivery that is pending again after a power cut is cancelled again.
    async fn cancel_pending(&self, webhook: WebhookId, now: Timestamp) -> Result<u64>;

    /// Pending deliveries for which no job was added yet, the oldest first.
    async fn unqueued_deliveries(&self, limit: u32) -> Result<Vec<PendingDelivery>>;

    /// Notes that jobs were added for these deliveries. Not synced: adding a job twice changes nothing.
    async fn mark_queued(&self, ids: &[DeliveryId]) -> Result<()>;

    /// Pending deliveries by id; those after `after`.
    async fn pending_deliveries(
        &self,
        after: Option<DeliveryId>,
        limit: u32,
    ) -> Result<Vec<PendingDelivery>>;

    /// Returns after this process has made deliveries pending, or at once if it has since the last call. A hint to look:
    /// other processes do so, too.
    async fn deliveries_wait(&self);

    /// Removes at most `limit` deliveries that ended before a time or whose endpoint is deleted, and deleted endpoints
    /// without deliveries; returns how many deliveries were removed.
    async fn forget_deliveries(&self, ended_before: Timestamp, limit: u32) -> Result<u64>;
}
