//! The writer's thread: syncs by policy, rotates, retries after errors, and writes what no event loop has written.
//!
//! Under `always` it writes every record. Under `everysec` and `never` the event loops write before they reply
//! (`output.rs`); it writes what they leave: records after an error, behind a rotation, or that no reply waits for.
//!
//! ```text
//!              ┌────────── ok ──────────┐
//!              ▼                        │
//!          ┌────────┐   cannot write, sync or replace the manifest   ┌──────────┐
//!          │ Ready  │ ─────────────────────────────────────────────▶ │ Refusing │◀─┐ retry after 10 ms,
//!          └────────┘ ◀────── everything pending is on disk ──────── └──────────┘──┘ doubling up to 1 s
//!              │                                                          │
//!              └───────── data lost that has no other copy ───────────────┤
//!                                                                         ▼
//!                                                                    ┌────────┐
//!                                                                    │ Failed │  permanent
//!                                                                    └────────┘
//! ```
//!
//! When it syncs: `always` after every batch (all records appended during the last sync are the next
//! batch: group commit); `everysec` when the oldest unsynced record is half a second old, which leaves
//! half a second for the sync itself; `never` only on request, at rotation and at the end. The first two
//! also sync when a quarter of the memory limit is unsynced.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    Fsync, State,
    log::{Chunk, LogError},
    output::Output,
    shared::{Shared, Wait, Work},
};

/// The age of the oldest unsynced record at which `everysec` syncs.
const SYNC_AGE: Duration = Duration::from_millis(500);
/// The idle time after which the writer writes a mark.
const MARK_AFTER: Duration = Duration::from_millis(200);
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(10);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The state of the writer's thread.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    fsync: Fsync,
    sync_wanted: bool,
    retry_delay: Option<Duration>,
}

/// The locked output.
type Guard<'a> = parking_lot::MutexGuard<'a, Output>;

impl Writer {
    pub(super) fn spawn(shared: Arc<Shared>) -> std::io::Result<thread::JoinHandle<()>> {
        let fsync = shared.fsync();
        let mut writer = Self { shared, fsync, sync_wanted: false, retry_delay: None };
        thread::Builder::new().name("journal".to_owned()).spawn(move || {
            let _report = PanicReport(writer.shared.clone());
            writer.run();
        })
    }

    fn run(&mut self) {
        let shared = self.shared.clone();
        loop {
            let wait = if self.retry_delay.is_some() { Wait::ForRetry } else { Wait::ForWork };
            let calls = shared.wait(self.deadline(), wait);
            self.sync_wanted |= calls.sync_wanted || calls.stop;
            let mut output = shared.output.lock();
            shared.disk_begins();
            let (work, fsync) = shared.take();
            let idle = work.is_empty() && output.todo.is_empty();
            output.todo.extend(work);
            self.fsync = fsync;
            let (mut output, outcome) = self.work(&shared, output);
            // Not while an event loop has left a chunk that is written in part: a mark would take its place.
            let may_mark = idle && output.todo.is_empty() && !calls.stop;
            if outcome.is_ok() && may_mark && output.log.wants_mark() {
                output.log.mark();
            }
            let (written, durable) = (output.log.written(), output.log.durable());
            shared.disk_ends();
            drop(output);
            shared.set_written(written);
            shared.set_durable(durable);
            match outcome {
                Ok(()) => {
                    self.retry_delay = None;
                    shared.set_state(State::Ready);
                }
                Err(LogError::Retry(reason) | LogError::Declined(reason)) => {
                    if self.retry_delay.is_none() {
                        tracing::error!(%reason, "the journal refuses writes");
                    }
                    let delay = self
                        .retry_delay
                        .map_or(FIRST_RETRY_DELAY, |delay| (delay * 2).min(MAX_RETRY_DELAY));
                    self.retry_delay = Some(delay);
                    shared.set_state(State::Refusing(reason.into()));
                }
                Err(LogError::Fatal(reason)) => {
                    tracing::error!(%reason, "the journal has stopped");
                    return self.end(&reason);
                }
            }
            if calls.stop {
                let reason = shared.state().reason();
                shared.output.lock().log.mark_end();
                return self.end(&reason.unwrap_or_else(|| "it was closed".into()));
            }
        }
    }

    /// When to wake up without work.
    fn deadline(&self) -> Option<Instant> {
        if let Some(delay) = self.retry_delay {
            return Some(Instant::now() + delay);
        }
        let output = self.shared.output.lock();
        let sync = match self.fsync {
            Fsync::EverySec => output.log.oldest_unsynced().map(|since| since + SYNC_AGE),
            Fsync::Always | Fsync::Never => None,
        };
        sync.or_else(|| output.log.wants_mark().then(|| Instant::now() + MARK_AFTER))
    }

    /// Does all pending work; after an error it is called again. The lock is free during a sync of the log, so it is
    /// taken and returned.
    fn work<'s>(
        &mut self,
        shared: &'s Shared,
        mut output: Guard<'s>,
    ) -> (Guard<'s>, Result<(), LogError>) {
        if output.log.is_suspect()
            && let Err(error) = self.rewrite(&mut output)
        {
            return (output, Err(error));
        }
        loop {
            if let Err(error) = output.write_chunks(shared, self.fsync) {
                return self.sync_before(error, shared, output);
            }
            shared.set_written(output.log.written());
            if output.todo.is_empty() {
                break;
            }
            // Before the rotation, and not in it: the lock is free meanwhile.
            if matches!(output.todo.front(), Some(Work::Rotate(_))) {
                let (locked, synced) = self.sync(shared, output);
                output = locked;
                if synced.is_err() {
                    return (output, synced);
                }
            }
            if let Err(error) = self.other_work(&mut output) {
                return self.sync_before(error, shared, output);
            }
        }
        if self.is_sync_due(&output) {
            let (locked, synced) = self.sync(shared, output);
            output = locked;
            if synced.is_err() {
                return (output, synced);
            }
        }
        self.sync_wanted = false;
        (output, Ok(()))
    }

    /// Rotates, or installs a snapshot. A failed compaction is no error of the log.
    fn other_work(&self, output: &mut Output) -> Result<(), LogError> {
        match output.todo.pop_front() {
            Some(Work::Rotate(handoff)) => match output.log.rotate() {
                Ok(synced) => self.release(synced),
                Err(LogError::Declined(reason)) => handoff.abort(reason.into()),
                Err(error) => {
                    output.todo.push_front(Work::Rotate(handoff));
                    return Err(error);
                }
            },
            Some(Work::Install(entry, handoff)) => {
                let claimed =
                    handoff.claim().map_err(|reason| LogError::Declined(reason.to_string()));
                match claimed.and_then(|()| output.log.install(entry)) {
                    Ok(names) => handoff.installed(names),
                    Err(LogError::Declined(reason)) => handoff.declined(reason.into()),
                    Err(error) => {
                        output.todo.push_front(Work::Install(entry, handoff));
                        return Err(error);
                    }
                }
            }
            Some(Work::Write(chunk)) => output.todo.push_front(Work::Write(chunk)),
            None => {}
        }
        Ok(())
    }

    /// Syncs on time what was written before an error, and returns the error.
    fn sync_before<'s>(
        &mut self,
        error: LogError,
        shared: &'s Shared,
        mut output: Guard<'s>,
    ) -> (Guard<'s>, Result<(), LogError>) {
        if !matches!(error, LogError::Fatal(_))
            && !output.log.is_suspect()
            && self.is_sync_due(&output)
        {
            let (locked, synced) = self.sync(shared, output);
            output = locked;
            if synced.is_err() {
                return (output, synced);
            }
        }
        (output, Err(error))
    }

    fn is_sync_due(&self, output: &Output) -> bool {
        output.log.is_dirty()
            && (self.sync_wanted
                || output.log.unsynced_bytes() >= self.shared.sync_bytes
                || match self.fsync {
                    Fsync::Always => true,
                    Fsync::EverySec => {
                        output.log.oldest_unsynced().is_none_or(|since| since.elapsed() >= SYNC_AGE)
                    }
                    Fsync::Never => false,
                })
    }

    /// Syncs the log; the lock is free while the disk works.
    fn sync<'s>(
        &mut self,
        shared: &'s Shared,
        mut output: Guard<'s>,
    ) -> (Guard<'s>, Result<(), LogError>) {
        if let Some(sync) = output.log.begin_sync() {
            // Under the other policies nobody waits for a sync, and event loops write meanwhile.
            if self.fsync != Fsync::Always {
                shared.disk_ends();
            }
            drop(output);
            let synced = sync.file.sync();
            output = shared.output.lock();
            shared.disk_begins();
            let done = output.log.end_sync(&sync, synced);
            self.release(done);
        }
        let rewritten = if output.log.is_suspect() { self.rewrite(&mut output) } else { Ok(()) };
        if rewritten.is_ok() {
            shared.syncs.fetch_add(1, Ordering::Relaxed);
            shared.set_durable(output.log.durable());
        }
        (output, rewritten)
    }

    fn rewrite(&self, output: &mut Output) -> Result<(), LogError> {
        self.release(output.log.rewrite_unsynced()?);
        Ok(())
    }

    fn release(&self, chunks: Vec<Chunk>) {
        if !chunks.is_empty() {
            self.shared.release(chunks);
        }
    }

    /// Ends the thread: reports the reason to all waiting threads.
    fn end(&mut self, reason: &str) {
        self.shared.set_state(State::Failed(reason.into()));
        let mut output = self.shared.output.lock();
        output.ended = true;
        let left: Vec<Work> = output.todo.drain(..).chain(self.shared.drain()).collect();
        drop(output);
        for work in left {
            match work {
                Work::Write(_) => {}
                Work::Rotate(handoff) => handoff.abort(reason.into()),
                Work::Install(_, handoff) => handoff.unknown(reason.into()),
            }
        }
    }
}

/// Reports a panic of the thread: the appender must not go on.
struct PanicReport(Arc<Shared>);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if thread::panicking() {
            let reason: Arc<str> = "the journal's thread has panicked; this is a bug".into();
            self.0.set_state(State::Failed(reason.clone()));
            // The panic has released the lock on its way here.
            self.0.output.lock().ended = true;
            self.0.abandon(reason);
        }
    }
}
