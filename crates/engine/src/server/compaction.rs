//! Compaction: replays the journal into a second keyspace and writes that as the new snapshot.
//!
//! ```text
//!   executor         compactor's thread                                    journal's threads
//!   begin ─▶ cut ──▶ old snapshot + log up to the cut ─▶ a second keyspace
//!   goes on          its keys, as commands ──────────────────────────────▶ new snapshot ─▶ installed
//! ```
//!
//! ```text
//!   states:  idle ──log outgrew snapshot, or BGREWRITEAOF──▶ running ──installed──▶ idle
//!              ▲                                               │ failed, or too little memory
//!              └──── 30 s later, at the earliest ◀── paused ◀──┘
//! ```
//!
//! The live keyspace is not touched: no command waits for compaction, writes need no copy-on-write, and
//! large values need no slicing. Every compaction also proves that the journal can be replayed. The cost
//! is memory for a second keyspace, and CPU time of one replay on another core, each time the log has
//! outgrown the snapshot. Compaction is postponed while that much memory is not free.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::executor::Executor;
use super::info::kilobytes;
use crate::command;
use crate::db::{DATABASES, Db};
use crate::dump::items;
use crate::journal::{self, BoxError, Compaction, Replayed, should_compact};
use crate::reply::Reply;

/// After a failed compaction, the earliest time of the next automatic attempt.
const PAUSE: Duration = Duration::from_secs(30);
/// The `nice` value of the compactor's thread: threads that serve clients come first.
const NICE: i32 = 15;

/// The running compaction, and the result of the last one.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    running: Option<JoinHandle<Result<(), String>>>,
    failed: bool,
    not_before: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Compactor {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Cancels the running compaction and waits for its thread.
    pub(super) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.running.take() {
            let _ = thread.join();
        }
    }
}

impl Executor {
    /// Starts a compaction if the log has outgrown the snapshot.
    pub(super) fn compact_if_due(&mut self) {
        self.reap_compaction();
        let early = self.compactor.not_before.is_some_and(|at| Instant::now() < at);
        let Some(journal) = &self.journal else { return };
        if self.compactor.is_running() || early {
            return;
        }
        let status = journal.watch().status();
        if should_compact(status.log_bytes, status.snapshot_bytes)
            && let Err(reason) = self.start_compaction()
        {
            tracing::warn!(reason, "the compaction was postponed");
        }
    }

    /// `BGREWRITEAOF`: starts a compaction now.
    pub(super) fn compact_now(&mut self, reply: &mut Reply) {
        self.reap_compaction();
        if self.compactor.is_running() {
            return reply.error("ERR Background append only file rewriting already in progress");
        }
        match self.start_compaction() {
            Ok(()) => reply.status("Background append only file rewriting started"),
            Err(reason) => reply.error(&format!("ERR {reason}")),
        }
    }

    fn start_compaction(&mut self) -> Result<(), String> {
        self.compactor.not_before = Some(Instant::now() + PAUSE);
        let journal = self.journal.as_mut().ok_or("there is no journal to compact")?;
        check_memory()?;
        let compaction = journal.begin_compaction().map_err(|error| error.to_string())?;
        self.memory.compaction_begins();
        let stop = self.compactor.stop.clone();
        let thread = thread::Builder::new()
            .name("engine-compactor".to_owned())
            .spawn(move || {
                // Clients come first. Linux keeps priorities per thread, so this affects only this
                // thread. If the system refuses, the compaction competes with clients.
                let _ = rustix::process::setpriority_process(None, NICE);
                run(compaction, &stop)
            })
            .map_err(|error| format!("no thread for a compaction: {error}"));
        if thread.is_err() {
            self.memory.compaction_ends();
        }
        self.compactor.running = Some(thread?);
        Ok(())
    }

    fn reap_compaction(&mut self) {
        let Some(thread) = self.compactor.running.take_if(|thread| thread.is_finished()) else {
            return;
        };
        self.memory.compaction_ends();
        let result = thread.join().unwrap_or_else(|_| Err("it panicked".to_owned()));
        self.compactor.failed = result.is_err();
        match result {
            Ok(()) => {
                self.compactor.not_before = None;
                self.stats.saved();
            }
            Err(reason) => tracing::warn!(reason, "a compaction failed; the journal is unchanged"),
        }
    }
}

/// Applies one item of a replay to a keyspace whose clock is 0 and whose effects are paused.
pub(super) fn apply(db: &mut Db, replayed: Replayed<'_>) -> Result<(), BoxError> {
    let (Replayed::Item(bytes) | Replayed::Record(_, bytes)) = replayed;
    Ok(command::replay(db, &Bytes::copy_from_slice(bytes))?)
}

fn run(mut compaction: Compaction, stop: &AtomicBool) -> Result<(), String> {
    let began = Instant::now();
    let mut db = Db::new();
    db.effects().pause();
    let text = |error: journal::Error| error.to_string();
    compaction
        .replay(&mut |replayed| {
            if stop.load(Ordering::Relaxed) {
                return Err("the server stops".into());
            }
            apply(&mut db, replayed)
        })
        .map_err(text)?;
    let replayed = began.elapsed();
    let mut failure = None;
    for index in 0..DATABASES {
        db.select(index);
        let mut cursor = 0;
        loop {
            cursor = db.scan(cursor, |key, value, expiry| {
                compaction.begin_key();
                items(index, key, value, expiry, |item| {
                    if failure.is_none() {
                        failure = compaction.feed(item).err();
                    }
                });
            });
            while failure.is_none() && !compaction.has_room() && !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            if cursor == 0 || failure.is_some() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    if let Some(error) = failure {
        return Err(text(error));
    }
    if stop.load(Ordering::Relaxed) {
        return Err("the server stops".to_owned());
    }
    // The second keyspace is freed before waiting for the disk.
    drop(db);
    let watch = compaction.finish();
    loop {
        match watch.wait(Duration::from_secs(1)) {
            journal::Progress::Done(done) => {
                tracing::info!(
                    keys = done.keys,
                    snapshot_bytes = done.snapshot_bytes,
                    log_bytes = done.log_bytes,
                    replay_ms = replayed.as_millis() as u64,
                    took_ms = began.elapsed().as_millis() as u64,
                    "the journal was compacted"
                );
                return Ok(());
            }
            journal::Progress::Failed(reason) => return Err(reason.to_string()),
            _ => {}
        }
    }
}

/// Checks that a second keyspace fits into free memory: the process is at least as large as the
/// first.
fn check_memory() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let system = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let (needed, free) = (kilobytes(&status, "VmRSS:"), kilobytes(&system, "MemAvailable:"));
    if free != 0 && free < needed {
        return Err(format!(
            "a compaction needs up to {} MB of free memory, and there are {} MB",
            needed >> 20,
            free >> 20
        ));
    }
    Ok(())
}
