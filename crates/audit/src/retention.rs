//! Old entries are removed, a portion at a time, so that nobody waits long for the database.

use std::time::Duration;

use stampede_model::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{Audit, Error, now};

/// Entries that are removed in one transaction.
const PORTION: u32 = 500;
/// Between two portions.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at the log.
const INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Refusals that are kept, however young they are.
const MOST_REFUSALS: u32 = 100_000;

/// How long entries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// For ever.
    Forever,
    /// For this time.
    For(Duration),
}

impl Retention {
    /// Days; 0 is for ever.
    pub fn days(days: u32) -> Self {
        match days {
            0 => Self::Forever,
            days => Self::For(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        }
    }

    /// The moment before which entries are removed.
    fn end(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Forever => None,
            Self::For(time) => now.checked_sub(time).ok(),
        }
    }
}

impl Audit {
    /// Removes old entries until `stop`. Any number of nodes may do so at the same time.
    pub async fn run(self, retention: Retention, stop: CancellationToken) {
        loop {
            let sweeping = self.sweep(retention);
            tokio::select! {
                swept = sweeping => {
                    if let Err(error) = swept {
                        tracing::warn!(%error, "old entries of the audit log were not removed; tried again later");
                    }
                }
                () = stop.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn sweep(&self, retention: Retention) -> Result<(), Error> {
        let store = &self.shared.store;
        let mut removed = 0;
        if let Some(end) = retention.end(now()) {
            loop {
                let portion = store.remove_audit_before(end, PORTION).await?;
                removed += portion;
                if portion < u64::from(PORTION) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        while store.remove_refusals_beyond(MOST_REFUSALS, PORTION).await? >= u64::from(PORTION) {
            tokio::time::sleep(PAUSE).await;
        }
        if removed > 0 {
            tracing::info!(removed, "old entries of the audit log removed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_days_are_for_ever() {
        let now = now();
        assert_eq!(Retention::days(0).end(now), None);
        assert_eq!(Retention::days(u32::MAX).end(now), None, "before the beginning of time");
        let day = Retention::days(1).end(now).unwrap();
        assert_eq!(now.as_millisecond() - day.as_millisecond(), 24 * 60 * 60 * 1000);
    }
}
