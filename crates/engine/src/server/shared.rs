//! State shared by all threads of a server: the executor behind its lock, the event loops, and
//! atomic counters that need no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event_loop::{Driver, LoopState};
use super::executor::Executor;
use super::loop_queue::{ClientId, LoopQueue};
use super::{OnFailure, OnShutdown};
use crate::journal::{self, Position};
use crate::lua::Interrupt;

/// Counters used by both the loops and the executor.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) clients: AtomicUsize,
    pub(super) max_clients: AtomicUsize,
    pub(super) rejected: AtomicU64,
    /// After this many milliseconds of one script, other clients are answered `BUSY`.
    pub(super) busy_threshold_ms: AtomicU64,
    /// Whether replies wait until the journal has synced (`appendfsync always`), not only written.
    pub(super) waits_for_sync: AtomicBool,
    /// Whether the journal is being closed and rightly refuses writes.
    pub(super) closing: AtomicBool,
    disconnected: Mutex<Vec<ClientId>>,
    any_disconnected: AtomicBool,
}

impl Counters {
    /// Notes a client that disconnected while the executor was busy.
    pub(super) fn note_disconnected(&self, client: ClientId) {
        self.disconnected.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        self.any_disconnected.store(true, Ordering::Release);
    }

    /// Takes the clients that disconnected while the executor was busy.
    pub(super) fn take_disconnected(&self) -> Vec<ClientId> {
        if !self.any_disconnected.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.disconnected.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The journal positions that a reply depends on.
///
/// Normally both must be safe before the reply is sent: durable under `always`, else written to the kernel. While the
/// journal refuses writes, reads go on: then only the client's own writes hold its replies back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DependsOn {
    /// The last record that the client itself has written.
    pub(super) written: Position,
    /// The last record that the reply may reveal.
    pub(super) seen: Position,
}

/// Whether the journal refuses writes, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    None,
    /// The writer retries; held replies may still leave.
    Temporary,
    /// Held replies will never leave.
    Permanent,
}

/// The locked executor.
pub(super) type ExecutorGuard<'a> = parking_lot::MutexGuard<'a, Executor>;

/// An event loop, as other threads see it.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) state: Mutex<LoopState>,
    pub(super) loop_queue: Arc<LoopQueue>,
    /// Whether the loop's own thread hands records to the kernel, and may wait for the disk.
    pub(super) writes_out: AtomicBool,
}

impl Loop {
    pub(super) fn lock(&self) -> MutexGuard<'_, LoopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Shared {
    /// `parking_lot`: its lock can be waited for with a timeout, and it is fair under contention.
    pub(super) executor: parking_lot::Mutex<Executor>,
    pub(super) loops: Vec<Loop>,
    pub(super) counters: Arc<Counters>,
    pub(super) password: Option<String>,
    pub(super) interrupt: Interrupt,
    pub(super) journal: Option<journal::Watch>,
    pub(super) on_shutdown: Option<OnShutdown>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) stopping: AtomicBool,
    pub(super) last_client: AtomicU64,
    pub(super) next_loop_index: AtomicUsize,
}

impl Shared {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Asks all threads to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.loops.iter().for_each(|one| one.loop_queue.wake());
    }

    /// Stops the server because one of its threads failed.
    pub(super) fn fail(&self, reason: &str) {
        tracing::error!(reason, "the engine has stopped");
        self.stop();
        if let Some(tell) = &self.on_failure {
            tell(reason);
        }
    }

    /// The loop that gets the next client, round robin.
    pub(super) fn next_loop(&self) -> usize {
        self.next_loop_index.fetch_add(1, Ordering::Relaxed) % self.loops.len()
    }

    pub(super) fn next_client(&self) -> ClientId {
        self.last_client.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last record that is safe by the journal's policy: replies may reveal it.
    pub(super) fn safe(&self) -> Position {
        match &self.journal {
            None => Position(u64::MAX),
            Some(journal) if self.waits_for_sync() => journal.durable(),
            Some(journal) => journal.written(),
        }
    }

    fn waits_for_sync(&self) -> bool {
        self.counters.waits_for_sync.load(Ordering::Relaxed)
    }

    /// Makes records safe before replies leave: hands them to the kernel, on this thread. Under `always` the journal's
    /// own thread writes and syncs. Only a loop's own thread may wait for the disk: the watchdog takes its place then.
    pub(super) fn write_out(&self, index: usize, driver: Driver) {
        let Some(journal) = &self.journal else { return };
        if self.waits_for_sync() {
            return;
        }
        if driver != Driver::Own {
            return journal.leave_to_writer();
        }
        let writes_out = &self.loops[index].writes_out;
        writes_out.store(true, Ordering::SeqCst);
        journal.write_out();
        writes_out.store(false, Ordering::SeqCst);
    }

    /// Whether there are records that an event loop should hand to the kernel.
    pub(super) fn has_unwritten(&self) -> bool {
        let journal = self.journal.as_ref().filter(|_| !self.waits_for_sync());
        journal.is_some_and(journal::Watch::has_unwritten)
    }

    /// Whether the thread of a loop has waited for the disk for longer than `limit`.
    pub(super) fn is_stuck(&self, index: usize, limit: Duration) -> bool {
        self.loops[index].writes_out.load(Ordering::SeqCst)
            && self.journal.as_ref().and_then(journal::Watch::disk_busy_for) > Some(limit)
    }

    /// Whether the records that a reply depends on are safe, or will not be while reads go on.
    pub(super) fn may_send(&self, depends_on: DependsOn) -> bool {
        let safe = self.safe();
        depends_on.seen <= safe || (depends_on.written <= safe && self.refusal() != Refusal::None)
    }

    /// Whether the journal refuses writes.
    pub(super) fn refusal(&self) -> Refusal {
        match self.journal.as_ref().map(journal::Watch::state) {
            None | Some(journal::State::Ready | journal::State::Busy) => Refusal::None,
            Some(journal::State::Refusing(_)) => Refusal::Temporary,
            Some(journal::State::Failed(_)) => Refusal::Permanent,
        }
    }

    /// Why writes are refused, if that is because the disk does not answer.
    pub(super) fn stall(&self) -> Option<Arc<str>> {
        let journal = self.journal.as_ref()?;
        journal.disk_busy_for()?;
        journal.state().reason()
    }

    /// Locks the executor for a thread of loop `index`. `None` while a script runs too long, and
    /// always for the watchdog.
    pub(super) fn executor_for(
        &self,
        index: usize,
        driver: Driver,
        pause: Duration,
    ) -> Option<ExecutorGuard<'_>> {
        if driver == Driver::Watchdog {
            return None;
        }
        let mut timeout = Duration::ZERO;
        loop {
            if let Some(mut executor) = self.executor.try_lock_for(timeout) {
                executor.lock_holder = Some(index);
                return Some(executor);
            }
            if self.is_busy() {
                return None;
            }
            timeout = pause;
        }
    }

    /// Whether the running script has exceeded the busy threshold.
    pub(super) fn is_busy(&self) -> bool {
        let threshold = self.counters.busy_threshold_ms.load(Ordering::Relaxed);
        let threshold = Duration::from_millis(threshold);
        self.interrupt.running_for().is_some_and(|spent| spent > threshold)
    }
}
