//! Runs the bot until Ctrl-C:
//!
//! ```sh
//! TELEGRAM_TOKEN=123:abc STAMPEDE_KEY=… cargo run -p stampede-example-sticker-bot
//! ```

use anyhow::Result;
use clap::Parser;
use stampede_example_sticker_bot::Options;

/// A Telegram bot that answers a text with a set of stickers
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().init();
    let stop = async {
        // Without a handler the bot runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    stampede_example_sticker_bot::run(Cli::parse().options, stop).await
}
