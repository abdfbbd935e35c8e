//! The command line of `stampede webhooks`.

use std::time::Duration;

use clap::{Args, Subcommand};
use stampede_model::{DeliveryId, EventId, WebhookId};

use super::ServerArgs;
use super::token::duration;

/// Options of `webhooks`.
#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,
}

/// Commands of `webhooks`.
#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// List webhooks with their states
    List,
    /// Make a webhook and print its secret, which cannot be shown again
    Create(WebhookCreate),
    /// Show one webhook
    Show(WhichWebhook),
    /// Send a test message
    Test(WhichWebhook),
    /// List what was sent to a webhook; with --delivery, show every attempt of one message
    Deliveries {
        #[command(flatten)]
        which: WhichWebhook,
        /// Only those that are pending, delivered, failed or cancelled
        #[arg(long)]
        state: Option<String>,
        /// Only this kind, such as batch.completed
        #[arg(long)]
        kind: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Show this delivery with its body, attempts and answers
        #[arg(long, value_name = "ID")]
        delivery: Option<DeliveryId>,
    },
    /// Send a message once more, or everything that failed lately
    Redeliver {
        #[command(flatten)]
        which: WhichWebhook,
        /// The delivery
        #[arg(required_unless_present = "last")]
        delivery: Option<DeliveryId>,
        /// Everything that failed or was cancelled in this time, such as 2h or 3d
        #[arg(long, value_parser = duration, conflicts_with = "delivery")]
        last: Option<Duration>,
    },
    /// Give a webhook another secret and print it
    Rotate {
        #[command(flatten)]
        which: WhichWebhook,
        /// How long messages are signed with the former secret, too, such as 24h; at most 7d
        #[arg(long, value_parser = duration, default_value = "0s")]
        grace: Duration,
    },
    /// Stop sending; what is pending is cancelled
    Disable(WhichWebhook),
    /// Send again what happens from now on
    Enable(WhichWebhook),
    /// Delete a webhook with the log of its deliveries
    Delete(WhichWebhook),
}

/// Options of `webhooks create`.
#[derive(Debug, Args)]
pub(crate) struct WebhookCreate {
    /// Where messages are sent
    #[arg(value_name = "URL")]
    pub(crate) target: String,
    /// Words for people
    #[arg(long, default_value = "")]
    pub(crate) description: String,
    /// A kind of messages to send; may be repeated [default: all kinds]
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only messages about this event
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<EventId>,
}

/// One webhook.
#[derive(Debug, Args)]
pub(crate) struct WhichWebhook {
    /// The webhook's id
    #[arg(value_name = "WEBHOOK")]
    pub(crate) webhook: WebhookId,
}
