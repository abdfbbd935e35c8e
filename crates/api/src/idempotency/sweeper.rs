//! Forgets requests whose answers are not kept any more.

use std::time::Duration;

use stampede_store::Store;
use tokio_util::sync::CancellationToken;

use crate::app::now;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Records that are removed in one transaction: others write meanwhile.
const PORTION: u32 = 500;
/// Between two portions.
const PAUSE: Duration = Duration::from_millis(50);

/// Forgets requests whose time is over, until `stop`. Any number of nodes may do so at the same time.
pub async fn forget_old_requests(store: Store, stop: CancellationToken) {
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        pause = match store.forget_requests(PORTION, now()).await {
            Ok(forgotten) if forgotten == u64::from(PORTION) => PAUSE,
            Ok(_) => INTERVAL,
            Err(error) => {
                tracing::debug!(%error, "old requests are forgotten later");
                INTERVAL
            }
        };
    }
}
