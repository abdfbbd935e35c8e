//! Stopping a script from another thread: `SCRIPT KILL` and the time limit.
//!
//! The thread that runs a script is busy, so the other threads hold an [`Interrupt`]. It says whether a
//! script runs and since when (other clients get `BUSY` past a threshold), and asks it to stop. The VM
//! checks it every hundred thousand instructions.
//!
//! ```text
//!   idle ──begin──▶ running ──first write──▶ running, unkillable ──end──▶ idle
//!                      └── kill, or past the limit ──▶ the script fails ──end──▶ idle
//! ```
//!
//! A script that has written is stopped only when the server stops; its effects stay, as after an error.
//!
//! A stop request names the run it is for, so that it cannot stop the next script.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Why a script was not stopped; `Display` is the error reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KillError {
    /// No script is running.
    #[error("NOTBUSY No scripts in execution right now.")]
    NotBusy,
    /// The script has written; stopping it would leave half of its effects.
    #[error(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
         either wait the script termination or kill the server in a hard way using the SHUTDOWN \
         NOSAVE command."
    )]
    Unkillable,
}

/// A handle to watch and stop the running script, for any thread.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    /// The number of the running script; 0 when idle.
    running: AtomicU64,
    /// The start of the running script, in microseconds since `epoch`.
    began_us: AtomicU64,
    /// The number of the script that must stop.
    kill: AtomicU64,
    wrote: AtomicBool,
    /// Whether the server is stopping, so that every script must stop.
    closing: AtomicBool,
}

impl Interrupt {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            epoch: Instant::now(),
            running: AtomicU64::new(0),
            began_us: AtomicU64::new(0),
            kill: AtomicU64::new(0),
            wrote: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        }))
    }

    /// How long the current script has been running.
    pub(crate) fn running_for(&self) -> Option<Duration> {
        let number = self.0.running.load(Relaxed);
        let began = Duration::from_micros(self.0.began_us.load(Relaxed));
        // If the number has changed in between, the time belongs to another script.
        (number != 0 && number == self.0.running.load(Relaxed))
            .then(|| self.0.epoch.elapsed().saturating_sub(began))
    }

    /// `SCRIPT KILL`: asks the running script to stop, unless it has written.
    pub(crate) fn kill(&self) -> Result<(), KillError> {
        match self.0.running.load(Relaxed) {
            0 => Err(KillError::NotBusy),
            _ if self.0.wrote.load(Relaxed) => Err(KillError::Unkillable),
            number => {
                self.0.kill.store(number, Relaxed);
                Ok(())
            }
        }
    }

    /// Stops the running script and every later one, even if they have written: the server is
    /// stopping.
    pub(crate) fn close(&self) {
        self.0.closing.store(true, Relaxed);
    }

    pub(super) fn begin(&self, number: u64) {
        self.0.wrote.store(false, Relaxed);
        self.0.began_us.store(self.0.epoch.elapsed().as_micros() as u64, Relaxed);
        self.0.running.store(number, Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.running.store(0, Relaxed);
    }

    pub(super) fn note_write(&self) {
        self.0.wrote.store(true, Relaxed);
    }

    /// Whether the running script was asked to stop; a cheap check.
    pub(super) fn is_asked(&self) -> bool {
        self.0.kill.load(Relaxed) == self.0.running.load(Relaxed) || self.0.closing.load(Relaxed)
    }

    /// Whether the running script must stop now: asked to, or past its limit, and not written.
    pub(super) fn must_stop(&self, limit: Option<Duration>) -> bool {
        if self.0.closing.load(Relaxed) {
            return true;
        }
        if self.0.wrote.load(Relaxed) {
            return false;
        }
        self.is_asked()
            || limit.is_some_and(|limit| self.running_for().is_some_and(|spent| spent > limit))
    }
}
