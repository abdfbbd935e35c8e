//! Our engine as a process, for tests that run on it instead of redis-server: `test_server <port> <folder>`.
//!
//! It keeps a journal in the folder, ends in good order on SIGTERM and like a power cut on SIGKILL
//! (`crates/testkit/src/redis.rs`).

use stampede_engine::{Config, Server};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or("no port")?.parse()?;
    let folder = arguments.next().ok_or("no folder")?;
    let server = Server::start(Config {
        tcp: vec![([127, 0, 0, 1], port).into()],
        dir: Some(folder.into()),
        ..Config::default()
    })?;
    signal(SignalKind::terminate())?.recv().await;
    server.stop()?;
    Ok(())
}
