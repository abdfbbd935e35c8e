//! Whether records and PDFs can be written, for `GET /ready`.
//!
//! The check writes, because a full disk can still be read. Anybody may ask `/ready`, so one check serves all
//! requests of five seconds, and no second check begins while one runs: a mount that hangs holds one thread, not
//! one for each request. A failure is looked at again after a second, so that balancers soon see its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_store::Store;
use stampede_ticketing::Ticketing;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// How long it is believed that all can be written.
const FRESH: Duration = Duration::from_secs(5);
/// How long a failure is believed.
const FAILURE_STANDS: Duration = Duration::from_secs(1);

/// What cannot be written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorageState {
    pub(crate) database: Result<(), String>,
    pub(crate) files: Result<(), String>,
}

/// The last check. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub struct StorageCheck(Arc<Mutex<Option<(Instant, StorageState)>>>);

impl StorageState {
    /// Whether the state of so long ago is still used.
    fn is_fresh(&self, age: Duration) -> bool {
        let is_well = self.database.is_ok() && self.files.is_ok();
        age < if is_well { FRESH } else { FAILURE_STANDS }
    }
}

impl StorageCheck {
    /// The state of a moment ago. A storage that does not answer within `patience` is down.
    pub(crate) async fn state(
        &self,
        store: &Store,
        ticketing: &Ticketing,
        patience: Duration,
    ) -> StorageState {
        let (store, ticketing) = (store.clone(), ticketing.clone());
        let looked = async {
            match self.0.clone().try_lock_owned() {
                // A task of its own: it ends with its answer, also when the request was given up.
                Ok(last) => tokio::spawn(look(last, store, ticketing)).await.ok(),
                Err(_) => self.0.lock().await.as_ref().map(|(_, state)| state.clone()),
            }
        };
        let silent = || Err(format!("no answer within {patience:?}"));
        let looked = timeout(patience, looked).await.ok().flatten();
        looked.unwrap_or_else(|| StorageState { database: silent(), files: silent() })
    }
}

async fn look(
    mut last: OwnedMutexGuard<Option<(Instant, StorageState)>>,
    store: Store,
    ticketing: Ticketing,
) -> StorageState {
    if let Some((at, state)) = &*last
        && state.is_fresh(at.elapsed())
    {
        return state.clone();
    }
    let (database, files) = tokio::join!(store.ping(), ticketing.probe_files());
    let state = StorageState { database: database.map_err(|error| error.to_string()), files };
    *last = Some((Instant::now(), state.clone()));
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_is_believed_for_some_seconds_and_a_failure_for_one() {
        let full = || Err("the disk is full".to_owned());
        for (database, files, seconds) in
            [(Ok(()), Ok(()), 4), (full(), Ok(()), 0), (Ok(()), full(), 0)]
        {
            let state = StorageState { database, files };
            assert!(state.is_fresh(Duration::from_secs(seconds)), "{state:?}");
            assert!(!state.is_fresh(Duration::from_secs(seconds + 1)), "{state:?}");
        }
    }
}
