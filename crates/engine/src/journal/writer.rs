//! The writer's thread: takes work, writes it, syncs by policy, and retries after errors.
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
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    Fsync, State,
    log::{Chunk, Copies, Log, LogError},
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
    log: Log,
    shared: Arc<Shared>,
    todo: VecDeque<Work>,
    fsync: Fsync,
    sync_wanted: bool,
    sync_bytes: usize,
    retry_delay: Option<Duration>,
}

impl Writer {
    pub(super) fn spawn(
        log: Log,
        shared: Arc<Shared>,
        config: &super::Config,
    ) -> std::io::Result<thread::JoinHandle<()>> {
        let mut writer = Self {
            log,
            shared,
            todo: VecDeque::new(),
            fsync: config.fsync,
            sync_wanted: false,
            sync_bytes: config.memory_limit / 4,
            retry_delay: None,
        };
        thread::Builder::new().name("journal".to_owned()).spawn(move || {
            let _report = PanicReport(writer.shared.clone());
            writer.run();
        })
    }

    fn run(&mut self) {
        loop {
            let wait = if self.retry_delay.is_some() { Wait::ForRetry } else { Wait::ForWork };
            let batch = self.shared.take(self.deadline(), wait);
            let idle = batch.work.is_empty() && self.todo.is_empty();
            self.todo.extend(batch.work);
            self.fsync = batch.fsync;
            self.sync_wanted |= batch.sync_wanted || batch.stop;
            let outcome = self.work();
            self.shared.set_durable(self.log.durable());
            match outcome {
                Ok(()) => {
                    self.retry_delay = None;
                    self.shared.set_state(State::Ready);
                    if idle && !batch.stop && self.log.wants_mark() {
                        self.log.mark();
                    }
                }
                Err(LogError::Retry(reason) | LogError::Declined(reason)) => {
                    if self.retry_delay.is_none() {
                        tracing::error!(%reason, "the journal refuses writes");
                    }
                    let delay = self
                        .retry_delay
                        .map_or(FIRST_RETRY_DELAY, |delay| (delay * 2).min(MAX_RETRY_DELAY));
                    self.retry_delay = Some(delay);
                    self.shared.set_state(State::Refusing(reason.into()));
                }
                Err(LogError::Fatal(reason)) => {
                    tracing::error!(%reason, "the journal has stopped");
                    return self.end(&reason);
                }
            }
            if batch.stop {
                let reason = self.shared.state().reason();
                self.log.mark_end();
                return self.end(&reason.unwrap_or_else(|| "it was closed".into()));
            }
        }
    }

    /// When to wake up without work.
    fn deadline(&self) -> Option<Instant> {
        if let Some(delay) = self.retry_delay {
            return Some(Instant::now() + delay);
        }
        let sync = match self.fsync {
            Fsync::EverySec => self.log.oldest_unsynced().map(|since| since + SYNC_AGE),
            Fsync::Always | Fsync::Never => None,
        };
        sync.or_else(|| self.log.wants_mark().then(|| Instant::now() + MARK_AFTER))
    }

    /// Does all pending work; after an error it is called again.
    fn work(&mut self) -> Result<(), LogError> {
        if self.log.is_suspect() {
            self.sync()?;
        }
        while let Some(work) = self.todo.front_mut() {
            let done = match work {
                Work::Write(chunk) => self.log.write(chunk).map(|()| Vec::new()),
                Work::Rotate(_) => self.log.rotate(),
                Work::Install(entry, handoff) => match handoff.claim() {
                    Err(reason) => Err(LogError::Declined(reason.to_string())),
                    Ok(()) => self.log.install(*entry).map(|names| {
                        handoff.installed(names);
                        Vec::new()
                    }),
                },
            };
            match (done, self.todo.pop_front()) {
                (Ok(synced), Some(Work::Write(chunk))) => {
                    self.release(synced);
                    let dropped = self.log.retain(chunk, self.copies());
                    self.release(dropped.into_iter().collect());
                    if self.log.unsynced_bytes() >= self.sync_bytes {
                        self.sync()?;
                    }
                }
                (Ok(synced), _) => self.release(synced),
                // A failed compaction is no error of the log.
                (Err(LogError::Declined(reason)), Some(Work::Rotate(handoff))) => {
                    handoff.abort(reason.into())
                }
                (Err(LogError::Declined(reason)), Some(Work::Install(_, handoff))) => {
                    handoff.declined(reason.into())
                }
                (Err(error), work) => {
                    work.into_iter().for_each(|work| self.todo.push_front(work));
                    // Records written before the error are still synced on time.
                    if !matches!(error, LogError::Fatal(_))
                        && !self.log.is_suspect()
                        && self.is_sync_due()
                    {
                        self.sync()?;
                    }
                    return Err(error);
                }
            }
        }
        if self.is_sync_due() {
            self.sync()?;
        }
        self.sync_wanted = false;
        Ok(())
    }

    fn copies(&self) -> Copies {
        match self.fsync {
            Fsync::Always | Fsync::EverySec => Copies::Keep,
            Fsync::Never => Copies::Drop,
        }
    }

    fn is_sync_due(&self) -> bool {
        self.log.is_dirty()
            && (self.sync_wanted
                || match self.fsync {
                    Fsync::Always => true,
                    Fsync::EverySec => {
                        self.log.oldest_unsynced().is_none_or(|since| since.elapsed() >= SYNC_AGE)
                    }
                    Fsync::Never => false,
                })
    }

    fn sync(&mut self) -> Result<(), LogError> {
        let synced = self.log.sync()?;
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.release(synced);
        self.shared.set_durable(self.log.durable());
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
        for work in self.todo.drain(..).chain(self.shared.drain()) {
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
            self.0.abandon(reason);
        }
    }
}
