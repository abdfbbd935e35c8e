//! What the routes share.

use std::ops::Deref;
use std::sync::Arc;

use stampede_audit::Audit;
use stampede_broker::{Broker, JobList};
use stampede_campaign::Campaigns;
use stampede_checkin::CheckIn;
use stampede_cluster::{LatencyMeter, NodeHandle};
use stampede_identity::Identity;
use stampede_model::Timestamp;
use stampede_press::Press;
use stampede_store::Store;
use stampede_studio::Studio;
use stampede_ticketing::Ticketing;
use stampede_webhook::Webhooks;

use crate::body::{Budget, Uploads};
use crate::idempotency::AnswerShares;
use crate::link_base::LinkBase;
use crate::live::Live;
use crate::metrics::MetricsPage;
use crate::orders_at_once::OrdersAtOnce;
use crate::rate_limits::RateLimits;
use crate::storage_check::StorageCheck;
use crate::turns::Turns;

/// What a request may ask for at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes in one request body.
    pub body_bytes: usize,
}

/// State of the API. Cheap to clone: every request does so several times.
#[derive(Clone)]
pub struct App(Arc<AppParts>);

impl App {
    /// The state made of its parts.
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// What the routes work with.
pub struct AppParts {
    /// Orders and tickets.
    pub ticketing: Ticketing,
    /// Check-in.
    pub checkin: CheckIn,
    /// Who is asking.
    pub identity: Identity,
    /// Webhooks.
    pub webhooks: Webhooks,
    /// Campaigns.
    pub campaigns: Campaigns,
    /// Stickers.
    pub studio: Studio,
    /// The audit log.
    pub audit: Audit,
    /// Records.
    pub store: Store,
    /// The last check of whether records and PDFs can be written.
    pub storage: StorageCheck,
    /// Redis.
    pub broker: Broker,
    /// Live streams.
    pub live: Live,
    /// The templates of events.
    pub press: Press,
    /// Turns of users who try out templates.
    pub turns: Turns,
    /// All jobs that workers run.
    pub jobs: JobList,
    /// How often addresses and keys may ask.
    pub rates: RateLimits,
    /// What a request may ask for at most.
    pub limits: Limits,
    /// How much of the answers of repeated requests is kept.
    pub answers: AnswerShares,
    /// Memory for the bodies of requests.
    pub bodies: Budget,
    /// The beginning of links.
    pub links: LinkBase,
    /// The beginning of the addresses under which providers reach this server.
    pub hooks: LinkBase,
    /// Files that are uploaded.
    pub uploads: Uploads,
    /// Large orders that are placed at the same time.
    pub orders: OrdersAtOnce,
    /// This node.
    pub node: NodeHandle,
    /// Notes how quickly requests are answered.
    pub latency: LatencyMeter,
    /// What this node counts.
    pub metrics: MetricsPage,
}

/// The present, as precise as the store keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
