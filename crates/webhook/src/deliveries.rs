//! The log of deliveries: list, read, redeliver.

use stampede_model::{DeliveryId, Timestamp, WebhookId};
use stampede_store::{DeliveryFilter, Redelivered, Slice};
use stampede_wire::webhooks::{Delivery, DeliveryLog, DeliveryState};

use crate::{DeliverWebhook, Error, Webhooks, answers};

/// The result of asking for a delivery once more.
#[derive(Debug, Clone)]
pub enum Redelivery {
    /// It is on its way.
    Sent(Box<Delivery>),
    /// There is no such delivery.
    NotFound,
    /// The endpoint is disabled.
    Disabled,
}

impl Webhooks {
    /// A part of the list of an endpoint's deliveries.
    pub async fn deliveries(
        &self,
        webhook: WebhookId,
        state: Option<DeliveryState>,
        kind: Option<String>,
        slice: &Slice<DeliveryId>,
    ) -> Result<Vec<Delivery>, Error> {
        let filter = DeliveryFilter { state: state.map(answers::stored), kind };
        let found = self.shared.store.deliveries(webhook, &filter, slice).await?;
        Ok(found.into_iter().map(answers::delivery).collect())
    }

    /// A delivery with what was sent and answered.
    pub async fn delivery(
        &self,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<Option<DeliveryLog>, Error> {
        let store = &self.shared.store;
        let Some(delivery) = store.delivery(webhook, id).await? else { return Ok(None) };
        let attempts = store.delivery_attempts(id).await?;
        Ok(Some(answers::log(delivery, attempts)))
    }

    /// Sends a delivery once more, under the same message id. One that waits for its next attempt is tried now.
    pub async fn redeliver(&self, webhook: WebhookId, id: DeliveryId) -> Result<Redelivery, Error> {
        let (store, queue) = (&self.shared.store, &self.shared.queue);
        if store.delivery(webhook, id).await?.is_none() {
            return Ok(Redelivery::NotFound);
        }
        // A job that waits for its time would stay where it is; one that runs makes an attempt right now.
        let _is_gone: bool = queue.remove(&id.to_string()).await?;
        match store.redeliver(webhook, id).await? {
            Redelivered::Done => {}
            Redelivered::NotFound => return Ok(Redelivery::NotFound),
            Redelivered::Disabled => return Ok(Redelivery::Disabled),
        }
        let job = DeliverWebhook::job(id, std::time::Duration::ZERO);
        queue.enqueue_again(&[job]).await?;
        let delivery = store.delivery(webhook, id).await?.map(answers::delivery);
        Ok(delivery.map_or(Redelivery::NotFound, |delivery| Redelivery::Sent(Box::new(delivery))))
    }

    /// Sends everything once more that failed or was cancelled since a time; returns how many deliveries.
    pub async fn redeliver_all(&self, webhook: WebhookId, since: Timestamp) -> Result<u64, Error> {
        Ok(self.shared.store.redeliver_all(webhook, since).await?)
    }
}
