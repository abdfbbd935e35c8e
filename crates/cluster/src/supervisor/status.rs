//! What is known about each worker process, for the registry, the API and the supervisor itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerState {
    /// Its process runs, but has not said yet that it takes jobs.
    Starting,
    /// It takes jobs.
    Running,
    /// It ends its last jobs.
    Draining,
    /// It died, and is started again in a moment.
    Restarting,
    /// It dies again and again soon after its start, and is started more and more seldom.
    CrashLooping,
    /// Its process cannot be started at all, as when the process table is full.
    CannotStart,
}

/// What is known about one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Its name.
    pub id: String,
    /// Where it is in its life.
    pub state: WorkerState,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Jobs it works on.
    pub busy: usize,
    /// Jobs it could work on at a time.
    pub slots: usize,
    /// Memory of its process in bytes.
    pub memory: u64,
    /// Deaths in a row, each soon after its start.
    pub deaths: u32,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What is known about all workers of a node. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    workers: Arc<Mutex<BTreeMap<usize, WorkerStatus>>>,
    /// How often a worker has changed its state.
    changes: watch::Sender<u64>,
}

impl Board {
    /// Puts up or changes what is known about a worker.
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

    /// What is known about all of them.
    pub(crate) fn all(&self) -> Vec<WorkerStatus> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, WorkerStatus>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
