//! What jobs may touch. A job that needs more gets it here, where everybody sees it.

use std::time::Duration;

use stampede_campaign::Campaigns;
use stampede_studio::Studio;
use stampede_ticketing::Ticketing;
use stampede_webhook::Webhooks;

/// Everything a job can reach.
#[derive(Clone)]
pub struct Environment {
    /// Orders and tickets.
    pub ticketing: Ticketing,
    /// Webhooks.
    pub webhooks: Webhooks,
    /// Campaigns.
    pub campaigns: Campaigns,
    /// Stickers.
    pub studio: Studio,
}

impl Environment {
    /// Ends the background tasks of all parts and waits for them. To be called when no job runs any more.
    pub async fn stop(&self) {
        // First: what messages led to is recorded before anything else ends.
        self.campaigns.stop().await;
        self.ticketing.stop().await;
        // No job draws any more: its threads end at once.
        self.studio.stop(Duration::from_secs(1)).await;
    }
}
