//! Webhooks after Standard Webhooks (standardwebhooks.com): endpoints of organisers are told what happens.
//!
//! ```text
//!   change ──▶ outbox ──▶ relay settles: deliveries (pending) ──▶ dispatch: job ──▶ worker: deliver ──▶ endpoint
//!                           one transaction                        │                  │
//!                                                                  ▼                  ▼
//!                                                           queue `webhooks`   attempt recorded, delivered or retried
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `endpoints.rs` | the verbs of endpoints: make, list, read, change, rotate, delete, test |
//! | `deliveries.rs` | the log: list, read, redeliver |
//! | `dispatch.rs` | pending deliveries get jobs; those of disabled endpoints are cancelled; old ones are forgotten |
//! | `jobs/deliver_webhook.rs` | the job |
//! | `deliver.rs` | one attempt: read, send, record |
//! | `schedule.rs` | what follows from an attempt: pure |
//! | `turns.rs` | one slow endpoint holds up no other |
//! | `writes.rs` | whether attempts can be recorded |
//! | `message.rs` | the body |
//! | `client.rs` | one POST by the crate `outbound`, which guards addresses and makes signatures |
//! | `answers.rs` | records as the API tells them |
//!
//! A message is delivered at least once, under an id that stays the same. The order is not promised.
//! [`Webhooks`] is the one type that callers hold. This crate must never name routes or statuses of our own API.

mod answers;
mod client;
mod deliver;
mod deliveries;
mod dispatch;
mod endpoints;
mod error;
mod jobs;
mod message;
mod schedule;
mod turns;
mod writes;

use std::sync::Arc;

use stampede_broker::{Broker, Queue, Work};
use stampede_model::Timestamp;
pub use stampede_outbound::AllowedAddresses;
use stampede_outbound::{address, signature};
use stampede_store::Store;

use self::client::Client;
pub use self::deliveries::Redelivery;
pub use self::dispatch::Dispatcher;
pub use self::endpoints::{
    Change, Deleted, LONGEST_GRACE, MOST_ENDPOINTS, Made, NewWebhook, Tested, Written,
};
pub use self::error::Error;
pub use self::jobs::deliver_webhook::DeliverWebhook;
use self::turns::Turns;
use self::writes::Writes;

/// What webhooks work with. Cheap to clone.
#[derive(Clone)]
pub struct Parts {
    /// Records.
    pub store: Store,
    /// Redis.
    pub broker: Broker,
    /// Addresses that are not public and may be reached all the same.
    pub allowed: AllowedAddresses,
    /// Jobs that this process runs at the same time. One endpoint gets at most a quarter of them.
    pub slots: usize,
}

/// Webhooks. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Webhooks {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    queue: Queue,
    client: Client,
    turns: Turns,
    writes: Writes,
}

impl Webhooks {
    /// Opens the queue of deliveries.
    pub async fn open(parts: Parts) -> Result<Self, stampede_broker::Error> {
        let Parts { store, broker, allowed, slots } = parts;
        let queue = broker.queue(DeliverWebhook::QUEUE).await?;
        let (client, turns) = (Client::new(allowed), Turns::new(slots));
        Ok(Self {
            shared: Arc::new(Shared { store, queue, client, turns, writes: Writes::default() }),
        })
    }
}

/// The present, as precise as the store keeps it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
