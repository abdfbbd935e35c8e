//! The ledger as the history of limits: for a limit that is new, whose window became longer, or whose Redis has lost its data.
//!
//! ```text
//!   permits ─▶ Forgotten ─▶ the messages of the window, from the ledger ─▶ Limits::remember ─▶ permits
//! ```
//!
//! Ages are measured by the clocks of the processes that sent and that read, once. From then on Redis' clock counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_broker::{Ask, History, PastOperation, Rate};
use stampede_model::Timestamp;
use stampede_store::PastSend;

use crate::snapshot::Snapshot;
use crate::{Campaigns, Error, asks, now};

/// Most messages of a window that are read: a limit above it counts the newest ones.
const MOST_READ: u32 = 100_000;
/// A permit from before Redis lost its data may be used for 50 ms. After this pause, whoever used one has claimed its recipient.
const PAUSE: Duration = Duration::from_millis(100);
/// Limits whose last reading is noted; then those are forgotten that nobody is reading.
const MOST_NOTED: usize = 1_000;

/// When this process last told the history of each limit; locked while it does.
#[derive(Default)]
pub(crate) struct Told {
    limits: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<Instant>>>>>,
}

impl Told {
    fn of(&self, limit: &str) -> Arc<tokio::sync::Mutex<Option<Instant>>> {
        let mut limits = self.limits.lock();
        if limits.len() >= MOST_NOTED {
            limits.retain(|_, told| Arc::strong_count(told) > 1);
        }
        limits.entry(limit.to_owned()).or_default().clone()
    }
}

impl Campaigns {
    /// Tells a limit which messages have left within its window. Messages of this process that ask at the same time do so once.
    pub(crate) async fn recall(
        &self,
        snapshot: &Snapshot,
        ask: &Ask,
        rate: Rate,
    ) -> Result<(), Error> {
        let asked = Instant::now();
        let told = self.shared.told.of(&ask.limit);
        let mut told = told.lock().await;
        if told.is_some_and(|at| at > asked) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
        let window = Duration::from_millis(rate.per_ms);
        let (read, present) = (Instant::now(), now());
        let filter = asks::sends_of(snapshot, ask, window, present);
        let most = rate.max.min(MOST_READ);
        let sends = self.shared.store.past_sends(&filter, present, most).await?;
        let is_cut = sends.len() >= most as usize && most == rate.max;
        let history = history(&sends, window, is_cut, present, read);
        let added = self.shared.broker.limits().remember(&ask.limit, &history).await?;
        if added > 0 {
            tracing::info!(
                limit = ask.limit,
                added,
                "messages of the ledger count for a limit that did not know them"
            );
        }
        *told = Some(Instant::now());
        Ok(())
    }
}

/// The history of a limit; `is_cut`: there may be older messages than these.
fn history(
    sends: &[PastSend],
    window: Duration,
    is_cut: bool,
    present: Timestamp,
    read: Instant,
) -> History {
    let age = |at: Timestamp| Duration::try_from(present.duration_since(at)).unwrap_or_default();
    let operation = |send: &PastSend| PastOperation {
        key: send.key.clone(),
        most: age(send.earliest),
        least: age(send.latest),
    };
    let operations: Vec<PastOperation> = sends.iter().map(operation).collect();
    let oldest = operations.last().filter(|_| is_cut);
    let complete_for = oldest.map_or(window, |oldest| oldest.least.min(window));
    History { window, operations, complete_for, read }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_complete_unless_it_was_cut() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let seconds = Duration::from_secs;
        let send = |key: &str, earliest, latest| PastSend {
            key: key.to_owned(),
            earliest: at(earliest),
            latest: at(latest),
        };
        // A clock that is ahead: it has just left.
        let sends = [send("a", 101, 101), send("b", 90, 100), send("c", 70, 70)];
        let made = |is_cut| history(&sends, seconds(60), is_cut, at(100), Instant::now());
        let all = made(false);
        let ages: Vec<(u64, u64)> =
            all.operations.iter().map(|it| (it.most.as_secs(), it.least.as_secs())).collect();
        assert_eq!(ages, [(0, 0), (10, 0), (30, 30)]);
        assert_eq!(all.complete_for, seconds(60));
        assert_eq!(made(true).complete_for, seconds(30));
        let none = history(&[], seconds(60), true, at(100), Instant::now());
        assert_eq!(none.complete_for, seconds(60));
    }
}
