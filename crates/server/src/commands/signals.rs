//! SIGTERM and SIGINT start a graceful stop.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Signals within this time count as one: some tools send a signal to the process and to its group.
const ONE_SIGNAL: Duration = Duration::from_secs(1);

/// Cancels `stop` at the first SIGTERM or SIGINT; a later one ends the process at once.
pub(crate) fn stop_on_signal(stop: CancellationToken) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let mut first = None;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            let first = *first.get_or_insert_with(Instant::now);
            if first.elapsed() >= ONE_SIGNAL {
                tracing::warn!("told to stop again: ending at once");
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(())
}
