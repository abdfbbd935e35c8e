//! A Telegram bot that answers a text with a set of stickers.
//!
//! ```text
//! Telegram ── getUpdates ──▶ inbox ──▶ queue, VIPs first ──▶ desk ──▶ Stampede draws ──▶ Telegram keeps the set ──▶ link
//!                                        │
//!                                        └── notices: "You are number 7 in the queue"
//! ```
//!
//! | file | holds |
//! |---|---|
//! | this one | the options, and the loop that reads updates |
//! | `inbox.rs` | what an update means |
//! | `queue.rs` | who waits, and who is next |
//! | `notices.rs` | tells people their place in the queue |
//! | `desk.rs` | one order after the other: draw, make a set, answer |
//! | `stampede.rs`, `telegram.rs` | the two services |
//! | `http.rs` | HTTP and HTTPS with few dependencies |

mod desk;
mod http;
mod inbox;
mod notices;
mod queue;
mod stampede;
mod telegram;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::task::JoinSet;

use crate::desk::Desk;
use crate::inbox::Inbox;
use crate::queue::Queue;
use crate::stampede::Stampede;
use crate::telegram::Telegram;

/// Longest time without an attempt to reach Telegram after it could not be reached.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Settings of the bot.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The bot's token, from @BotFather
    #[arg(long, env = "TELEGRAM_TOKEN", hide_env_values = true)]
    pub telegram_token: String,
    /// Telegram's Bot API, or a server of your own that speaks it
    #[arg(long, env = "TELEGRAM_API_URL", default_value = "https://api.telegram.org")]
    pub telegram_api_url: String,
    /// Where Stampede listens
    #[arg(long, env = "STAMPEDE_URL", default_value = "http://127.0.0.1:3000")]
    pub stampede_url: String,
    /// A key of Stampede that may write
    #[arg(long, env = "STAMPEDE_KEY", hide_env_values = true)]
    pub stampede_key: String,
    /// Ids of the users who are served first, with commas between them
    #[arg(long, env = "BOT_VIPS", value_delimiter = ',')]
    pub vips: Vec<i64>,
    /// Names of the variants in a set, with commas between them [default: all that ship]
    #[arg(long, env = "BOT_VARIANTS", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Orders that are worked on at the same time
    #[arg(long, env = "BOT_DESKS", default_value_t = 4)]
    pub desks: usize,
    /// Orders that may wait; people whose orders are more are asked to come back later
    #[arg(long, env = "BOT_QUEUE", default_value_t = 1_000)]
    pub queue: usize,
}

/// Serves users until `stop` is ready; then finishes the orders that wait.
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<()> {
    let telegram = Telegram::new(&options.telegram_api_url, &options.telegram_token)?;
    let stampede = Stampede::new(&options.stampede_url, &options.stampede_key)?;
    let me = telegram.me().await.context("Telegram does not know this bot")?;
    let variants = if options.variants.is_empty() {
        stampede.variants().await.context("Stampede does not list its variants")?
    } else {
        options.variants.clone()
    };
    tracing::info!(bot = me.username, variants = variants.len(), "the bot runs");

    let queue = Arc::new(Queue::new(options.queue));
    let (telegram, stampede) = (Arc::new(telegram), Arc::new(stampede));
    let desk = Desk { bot: me.username, variants, stampede, telegram: telegram.clone() };
    let desk = Arc::new(desk);
    let mut desks = JoinSet::new();
    for _ in 0..options.desks.max(1) {
        desks.spawn(desk.clone().serve(queue.clone()));
    }
    let notices = tokio::spawn(notices::tell(queue.clone(), telegram.clone(), options.desks));

    let inbox = Inbox::new(queue.clone(), telegram.clone(), options.vips);
    read_updates(&telegram, &inbox, stop).await;
    inbox.close().await;
    queue.close();
    while desks.join_next().await.is_some() {}
    notices.abort();
    Ok(())
}

/// Reads updates by long polling. An update is confirmed by the next call, so a bot that is killed gets the last ones again.
async fn read_updates(telegram: &Telegram, inbox: &Inbox, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let (mut next, mut pause) = (0, Duration::from_secs(1));
    loop {
        let updates = tokio::select! {
            () = &mut stop => break,
            updates = telegram.updates(next) => updates,
        };
        match updates {
            Ok(updates) => {
                pause = Duration::from_secs(1);
                for update in updates {
                    next = next.max(update.update_id + 1);
                    inbox.take(update).await;
                }
            }
            Err(error) => {
                tracing::warn!("no updates: {error}");
                tokio::select! {
                    () = &mut stop => break,
                    () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                }
            }
        }
    }
    if let Err(error) = telegram.confirm(next).await {
        tracing::warn!("the last updates are not confirmed and will come again: {error}");
    }
}
