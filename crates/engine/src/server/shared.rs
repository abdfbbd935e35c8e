//! State shared by all threads of a server: the executor behind its lock, the event loops, and
//! atomic counters that need no lock.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::client_command::same;
use super::connection::Connection;
use super::event_loop::{Driver, LoopState};
use super::executor::{Executor, Next};
use super::loop_queue::{ClientId, LoopQueue};
use super::request::AuthState;
use super::{OnFailure, OnShutdown};
use crate::journal::{self, Position};
use crate::lua::{BUSY, Interrupt};
use crate::reply::Reply;

/// Counters used by both the loops and the executor.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) clients: AtomicUsize,
    pub(super) max_clients: AtomicUsize,
    pub(super) rejected: AtomicU64,
    /// After this many milliseconds of one script, other clients are answered `BUSY`.
    pub(super) busy_threshold_ms: AtomicU64,
    /// Whether replies wait until the journal has synced (`appendfsync always`).
    pub(super) holds_replies: AtomicBool,
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
/// Normally both must be durable before the reply is sent. While the journal refuses writes, reads
/// go on: then only the client's own writes hold its replies back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DependsOn {
    /// The last record that the client itself has written.
    pub(super) written: Position,
    /// The last record that the reply may reveal.
    pub(super) seen: Position,
}

/// The locked executor.
pub(super) type ExecutorGuard<'a> = parking_lot::MutexGuard<'a, Executor>;

/// An event loop, as other threads see it.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) state: Mutex<LoopState>,
    pub(super) loop_queue: Arc<LoopQueue>,
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

    /// The last record that survives a power cut.
    pub(super) fn durable(&self) -> Position {
        self.journal.as_ref().map_or(Position(u64::MAX), journal::Watch::durable)
    }

    /// Whether a reply must wait for the journal.
    pub(super) fn must_hold(&self, depends_on: DependsOn) -> bool {
        self.counters.holds_replies.load(Ordering::Relaxed) && !self.may_send(depends_on)
    }

    /// Whether the records that a reply depends on are durable, or will not be while reads go on.
    pub(super) fn may_send(&self, depends_on: DependsOn) -> bool {
        let durable = self.durable();
        depends_on.seen <= durable || (depends_on.written <= durable && self.refuses_writes())
    }

    fn refuses_writes(&self) -> bool {
        let state = self.journal.as_ref().map(journal::Watch::state);
        matches!(state, Some(journal::State::Refusing(_) | journal::State::Failed(_)))
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

    /// Answers a request while a script runs too long: few commands work, all others get `BUSY`.
    pub(super) fn reply_busy(
        &self,
        connection: &mut Connection,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        let words: Vec<Vec<u8>> = args.iter().take(2).map(|arg| arg.to_ascii_lowercase()).collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        match (words.as_slice(), &self.password) {
            ([b"quit", ..], _) => {
                reply.ok();
                return Next::Close;
            }
            ([b"auth", user], Some(password)) if args.len() == 2 || args.len() == 3 => {
                let known = args.len() == 2 || *user == b"default";
                if known && same(password.as_bytes(), &args[args.len() - 1]) {
                    // The session is created again as authenticated; an unauthenticated session has
                    // no state to keep.
                    connection.has_session = connection.auth_state == AuthState::Authenticated;
                    connection.auth_state = AuthState::Authenticated;
                    reply.ok();
                } else {
                    reply.error("WRONGPASS invalid username-password pair or user is disabled.");
                }
            }
            _ if connection.auth_state == AuthState::Unauthenticated => {
                reply.error("NOAUTH Authentication required.");
            }
            ([b"script", b"kill"], _) => match self.interrupt.kill() {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(&error.to_string()),
            },
            ([b"shutdown", b"nosave"], _) if self.on_shutdown.is_some() => {
                // The script cannot be stopped and holds the lock, so the process exits as
                // requested.
                tracing::error!("SHUTDOWN NOSAVE while a script runs: the process ends at once");
                std::process::exit(1);
            }
            _ => {
                connection.got_busy = true;
                reply.error(BUSY);
            }
        }
        Next::Go
    }
}
