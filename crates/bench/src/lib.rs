//! `stampede bench …`: everything that is measured.
//!
//! | file | measures |
//! |---|---|
//! | `tickets.rs` | from order to ready PDFs, through a whole server |
//! | `upload.rs` | a large guest list: uploaded, made, downloaded; the memory of the server |
//! | `campaigns.rs` | a campaign through the webhook channel, and that each recipient gets one message; the import of a large list |
//! | `redeem.rs` | tickets redeemed at the door, over HTTP |
//! | `stickers.rs` | what a sticker costs, five at once, a node under load |
//! | `idle.rs` | CPU and memory of a node that has nothing to do |
//! | `render.rs` | CPU for one ticket: stamped, typeset, and made by other programs |
//! | `engine.rs` | the embedded engine beside redis-server |
//! | `queue.rs` | our queues beside Node's BullMQ |
//!
//! A benchmark never touches data of the person who runs it: servers are child processes, started from
//! the running program with an empty environment, in temporary folders (`server.rs`, `engine/servers.rs`).
//! So the program must be the `stampede` binary: it is started again as `serve` and as `engine run`.

// The figures are for the person at the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod campaigns;
mod engine;
mod figures;
mod idle;
mod local;
mod processes;
mod queue;
mod redeem;
mod render;
mod server;
mod stickers;
mod tickets;
mod upload;

use std::pin::Pin;

use anyhow::Result;
use clap::Subcommand;

pub use self::campaigns::BenchCampaigns;
pub use self::engine::{BenchEngine, Fsync};
pub use self::idle::BenchIdle;
pub use self::queue::BenchQueue;
pub use self::redeem::BenchRedeem;
pub use self::render::BenchRender;
pub use self::stickers::BenchStickers;
pub use self::tickets::BenchTickets;
pub use self::upload::BenchUpload;

/// Commands of `bench`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// From order to ready PDFs, through a server that it starts in a temporary folder
    Tickets(BenchTickets),
    /// A large guest list uploaded, made and downloaded as a ZIP: time, the server's memory, how long others wait
    Upload(BenchUpload),
    /// A campaign through the webhook channel: messages a second, and that each recipient gets one
    Campaigns(BenchCampaigns),
    /// Tickets redeemed at the door over HTTP: redeems a second, latency, and what limits them
    Redeem(BenchRedeem),
    /// CPU time of a sticker, five at once, and a node under a steady load
    Stickers(BenchStickers),
    /// CPU time and memory of a node that has nothing to do
    Idle(BenchIdle),
    /// CPU time of one ticket: stamped, typeset, and made by other programs that are installed
    Render(BenchRender),
    /// The embedded engine beside redis-server: jobs a second, latency, memory, restart
    Engine(BenchEngine),
    /// Our queues beside Node's BullMQ on the same redis-server: jobs a second, latency
    Queue(BenchQueue),
}

impl Bench {
    /// Measures, and prints the figures.
    pub fn run(self) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
        // Boxed: compiled here, and not in the crate of the command line.
        match self {
            Self::Tickets(options) => Box::pin(tickets::run(options)),
            Self::Upload(options) => Box::pin(upload::run(options)),
            Self::Campaigns(options) => Box::pin(campaigns::run(options)),
            Self::Redeem(options) => Box::pin(redeem::run(options)),
            Self::Stickers(options) => Box::pin(stickers::run(options)),
            Self::Idle(options) => Box::pin(idle::run(options)),
            Self::Render(options) => Box::pin(render::run(options)),
            Self::Engine(options) => Box::pin(engine::run(options)),
            Self::Queue(options) => Box::pin(queue::run(options)),
        }
    }
}
