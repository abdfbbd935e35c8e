//! A progress bar of a batch, until its tickets are made.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use stampede_client::Client;
use stampede_model::BatchId;
use stampede_wire::ticketing::batches::{BatchState, BatchStatus};

const POLL: Duration = Duration::from_millis(100);
/// Without progress for this long, no worker seems to run.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Shows a progress bar until the batch has ended.
pub(crate) async fn watch(client: &Client, batch_id: BatchId, total: u64) -> Result<BatchStatus> {
    let bar = ProgressBar::new(total);
    let style = "{bar:40.cyan/blue} {pos}/{len} tickets  {per_sec}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?);
    let mut last = (0, Instant::now());
    loop {
        let batch = client.batch(batch_id).await?;
        let done = batch.counters.completed + batch.counters.failed;
        bar.set_position(done);
        if batch.counters.status != BatchState::Processing {
            bar.finish();
            return Ok(batch);
        }
        if done != last.0 {
            last = (done, Instant::now());
        }
        if last.1.elapsed() > STUCK_AFTER {
            bar.abandon();
            bail!(
                "no ticket was made for {STUCK_AFTER:?}; are workers running? The server's log tells"
            );
        }
        tokio::time::sleep(POLL).await;
    }
}
