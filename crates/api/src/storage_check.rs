//! Whether records and PDFs can be written, for `GET /ready`.
//!
//! The check writes, because a full disk can still be read. Anybody may ask `/ready`, so one check serves all
//! requests of a second, and no second check begins while one runs: a mount that hangs holds one thread, not
//! one for each request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_store::Store;
use stampede_ticketing::Ticketing;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// How long a result is used.
const FRESH: Duration = Duration::from_secs(1);

/// What cannot be written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorageState {
    pub(crate) database: Result<(), String>,
    pub(crate) files: Result<(), String>,
}

/// The last check. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub struct StorageCheck(Arc<Mutex<Option<(Instant, StorageState)>>>);

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
        && at.elapsed() < FRESH
    {
        return state.clone();
    }
    let (database, files) = tokio::join!(store.ping(), ticketing.probe_files());
    let state = StorageState { database: database.map_err(|error| error.to_string()), files };
    *last = Some((Instant::now(), state.clone()));
    state
}
