//! SIGTERM and SIGINT mean: stop, in good order.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Some tools send a signal to the process and to its group: within this time it is the same wish.
const SAME_WISH: Duration = Duration::from_secs(1);

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
            if first.elapsed() >= SAME_WISH {
                tracing::warn!("told to stop again: ending at once");
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(())
}
