//! The state of each worker process, for the registry, the API and the supervisor itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use stampede_wire::cluster::WorkerState;
use tokio::sync::watch;

/// A worker as its supervisor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The worker's name.
    pub id: String,
    /// The phase of its life.
    pub state: WorkerState,
    /// The id of its process.
    pub pid: Option<u32>,
    /// Jobs it runs.
    pub busy: usize,
    /// Jobs it could run at a time.
    pub slots: usize,
    /// Memory of its process in bytes.
    pub memory: u64,
    /// Deaths in a row, each soon after a start.
    pub deaths: u32,
    /// The last thing that went wrong.
    pub problem: Option<String>,
}

/// The state of all workers of a node. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    workers: Arc<Mutex<BTreeMap<usize, WorkerStatus>>>,
    /// Counts changes of state.
    changes: watch::Sender<u64>,
}

impl Board {
    /// Changes a worker's entry, if there is one.
    pub(super) fn note(&self, number: usize, change: impl FnOnce(&mut WorkerStatus)) {
        let mut workers = self.lock();
        if let Some(status) = workers.get_mut(&number) {
            let before = status.state;
            change(status);
            let important = status.state != before;
            drop(workers);
            if important {
                self.changed();
            }
        }
    }

    pub(super) fn put_up(&self, number: usize, id: &str) {
        let status = WorkerStatus {
            id: id.to_owned(),
            state: WorkerState::Starting,
            pid: None,
            busy: 0,
            slots: 0,
            memory: 0,
            deaths: 0,
            problem: None,
        };
        self.lock().insert(number, status);
    }

    pub(super) fn take_down(&self, number: usize) {
        self.lock().remove(&number);
        self.changed();
    }

    pub(super) fn state(&self, number: usize) -> Option<WorkerStatus> {
        self.lock().get(&number).cloned()
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes when a worker changes its state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// All workers, by number.
    pub(crate) fn all(&self) -> Vec<WorkerStatus> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, WorkerStatus>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
