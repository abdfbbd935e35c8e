//! The watchdog: serves clients whose event loop is stuck, in a script or at the disk.
//!
//! A script runs on the thread of the loop that read it, under the executor's lock. A script that
//! does not end blocks that loop and all others. Past the busy threshold the watchdog drives the
//! loops whose threads are stuck. It answers `BUSY` and lets `SCRIPT KILL` through.
//!
//! A loop's thread hands records to the kernel before it replies, and `write(2)` can wait for the disk: for
//! milliseconds while the system throttles writers, for ever on a dead one. That blocks the clients of one loop only,
//! and no lock that others need. The watchdog then starts a *stand-in*, a thread that drives the loop until its own
//! thread comes back. Replies that depend on the records wait; everything else goes on.

use std::sync::Arc;
use std::sync::TryLockError;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Registry;

use super::event_loop::{Driver, EventLoop};
use super::shared::Shared;
use super::{PanicReport, STACK_BYTES};

/// The interval of checks for a stuck loop.
const PERIOD: Duration = Duration::from_millis(50);
/// The poll timeout for one stuck loop.
const LISTEN: Duration = Duration::from_millis(5);
/// A loop whose thread waits for the disk for longer than this gets a stand-in.
const DISK_PATIENCE: Duration = Duration::from_millis(50);

/// Runs until the server stops.
pub(super) fn run(shared: &Arc<Shared>, registries: Vec<Registry>) {
    let mut stand_ins = StandIns::new(shared, &registries);
    let mut loops: Vec<EventLoop> = registries
        .into_iter()
        .enumerate()
        .map(|(index, registry)| EventLoop::new(shared.clone(), index, Driver::Watchdog, registry))
        .collect();
    let (mut warned, mut stalled) = (false, false);
    while !shared.is_stopping() {
        stand_ins.start_where_needed();
        let stall = shared.stall();
        match (&stall, stalled) {
            (Some(reason), false) => tracing::error!(%reason, "the journal refuses writes"),
            (None, true) => tracing::info!("the disk answers again"),
            _ => {}
        }
        stalled = stall.is_some();
        if !shared.is_busy() {
            warned = false;
            thread::park_timeout(PERIOD);
            continue;
        }
        if !warned {
            tracing::warn!("a script runs too long; clients get BUSY until it ends or is killed");
            warned = true;
        }
        let mut stuck = false;
        for (index, event_loop) in loops.iter_mut().enumerate() {
            let state = match shared.loops[index].state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                // Its own thread drives it.
                Err(TryLockError::WouldBlock) => continue,
            };
            stuck = true;
            if let Err(error) = event_loop.serve_as_watchdog(shared, state, LISTEN) {
                tracing::error!(%error, "the watchdog could not listen");
            }
        }
        if !stuck {
            thread::park_timeout(PERIOD);
        }
    }
    stand_ins.join();
}

/// The stand-ins of loops whose threads wait for the disk.
struct StandIns<'a> {
    shared: &'a Arc<Shared>,
    /// One for each loop; `None` if it could not be copied, so that the loop gets no stand-in.
    registries: Vec<Option<Registry>>,
    running: Vec<Option<JoinHandle<()>>>,
}

impl<'a> StandIns<'a> {
    fn new(shared: &'a Arc<Shared>, registries: &[Registry]) -> Self {
        let running = registries.iter().map(|_| None).collect();
        let registries = registries.iter().map(|one| one.try_clone().ok()).collect();
        Self { shared, registries, running }
    }

    /// Starts a stand-in for each loop that needs one and has none.
    fn start_where_needed(&mut self) {
        for index in 0..self.running.len() {
            if self.running[index].as_ref().is_some_and(|thread| !thread.is_finished())
                || !self.shared.is_stuck(index, DISK_PATIENCE)
            {
                continue;
            }
            match self.start(index) {
                Ok(thread) => self.running[index] = Some(thread),
                Err(error) => {
                    tracing::error!(%error, "no thread for clients of a loop that waits for the disk")
                }
            }
        }
    }

    fn start(&self, index: usize) -> std::io::Result<JoinHandle<()>> {
        let registry = self.registries[index].as_ref().map(Registry::try_clone);
        let registry = registry.unwrap_or_else(|| Err(std::io::ErrorKind::Unsupported.into()))?;
        let shared = self.shared.clone();
        let name = format!("engine-{index}-stand-in");
        thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            let _report = PanicReport(shared.clone());
            let event_loop = EventLoop::new(shared.clone(), index, Driver::StandIn, registry);
            if let Err(error) = event_loop.stand_in(&shared) {
                shared.fail(&format!("an event loop failed: {error}"));
            }
        })
    }

    fn join(self) {
        for thread in self.running.into_iter().flatten() {
            // A panic was reported by `PanicReport`.
            let _ = thread.join();
        }
    }
}
