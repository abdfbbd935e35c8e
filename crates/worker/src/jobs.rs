//! THE LIST: every job that a worker runs, one line each.
//!
//! Adding a job? Write a type that implements [`stampede_broker::Work`] in a file named like it, in the crate
//! that holds its business, and add a line to [`jobs`]. Everything else reads this list: the queues that a worker
//! serves and their slots, the queues that autoscaler and coordinator watch, and the notes about jobs that come
//! back. A job that touches more than [`Environment`] has adds it there.

use stampede_broker::JobList;
use stampede_campaign::{FeedCampaign, SendMessage};
use stampede_studio::GenerateSticker;
use stampede_ticketing::GenerateTicket;
use stampede_webhook::DeliverWebhook;

use crate::Environment;

/// All jobs, with what they may touch.
pub fn jobs(environment: &Environment) -> JobList {
    let Environment { ticketing, webhooks, campaigns, studio } = environment;
    JobList::default() //
        .with::<GenerateTicket>(ticketing.clone())
        .with::<DeliverWebhook>(webhooks.clone())
        .with::<FeedCampaign>(campaigns.clone())
        .with::<SendMessage>(campaigns.clone())
        .with::<GenerateSticker>(studio.clone())
}
