//! State shared by the appender, the writer's thread and threads that read the status.
//!
//! The appender copies a record into `tail` under a short lock. Whoever writes takes the whole queue at once
//! (a swap, no copy) and works without that lock. The queue keeps its order: a rotation stays between the
//! records before and after it.
//!
//! ```text
//!  append ──▶ tail ──full──▶ queue: [chunk][chunk][rotate][chunk][install] ──▶ output (output.rs)
//!                                                                               │ by an event loop's thread at the
//!  observer, watch ◀── written, durable, state ◀────────────────────────────────┘ end of its round, or the writer's
//! ```
//!
//! Lock order: `output` before `inner`. The observer may be called with `output` held, never with `inner`.
//!
//! `memory` counts every byte from its append until its copy is no longer needed (synced; or written,
//! under policy never). At the limit [`State`] says `Busy`. An append is never refused for it, because
//! its effects have already happened; so the peak is the limit plus one record.
//!
//! A disk may never answer. `disk_since` tells since when a thread waits for it; after `stall_limit` the state is
//! `Refusing`, whatever the memory. That thread may be an event loop's: `server/watchdog.rs` says who serves its clients.

mod disk_wait;
mod queue;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Error, Event, Fsync, Position, State,
    frame::{FRAME_HEADER, push_record},
    handoff::Handoff,
    log::{Chunk, Log},
    output::Output,
};

use self::queue::Inner;

pub(super) use self::queue::{Calls, Wait, Work};

/// A tail of this size is closed and queued; a larger buffer would be reallocated too often.
const CHUNK: usize = 256 << 10;
/// Under policies other than `always`, the writer leaves records for this time to the event loops, which write
/// before they reply. Only records that no reply depends on, such as expiry, stay that long.
const LINGER: Duration = Duration::from_millis(20);
/// With this many bytes queued, it writes at once.
const LINGER_BYTES: usize = 256 << 10;
/// [`Shared::disk_since`] while no reply waits for the disk.
const AT_REST: u64 = 0;
/// The number of buffers kept for reuse.
const SPARE: usize = 16;

/// The shared state; the header describes it.
pub(super) struct Shared {
    inner: Mutex<Inner>,
    wake: Condvar,
    /// The log; `parking_lot`, because its lock can be waited for with a time limit.
    pub(super) output: parking_lot::Mutex<Output>,
    appended: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    /// The number of unsynced bytes at which a sync is due.
    pub(super) sync_bytes: usize,
    memory: AtomicUsize,
    memory_limit: usize,
    stall_limit: Duration,
    not_ready: AtomicBool,
    /// Since when the disk works on what replies wait for, in milliseconds after `epoch`; or [`AT_REST`].
    disk_since: AtomicU64,
    epoch: Instant,
    /// The sequence of a record whose append fails.
    #[cfg(test)]
    pub(super) failing_append: AtomicU64,
    pub(super) log_bytes: AtomicU64,
    pub(super) snapshot_bytes: AtomicU64,
    pub(super) syncs: AtomicU64,
    observer: Option<super::Observer>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("written", &self.written)
            .field("durable", &self.durable)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(config: &super::Config, log: Log, observer: Option<super::Observer>) -> Self {
        let last = log.durable();
        Self {
            inner: Mutex::new(Inner::new(config.fsync, last)),
            wake: Condvar::new(),
            output: parking_lot::Mutex::new(Output::new(log)),
            appended: AtomicU64::new(last),
            written: AtomicU64::new(last),
            sync_bytes: config.memory_limit / 4,
            durable: AtomicU64::new(last),
            memory: AtomicUsize::new(0),
            memory_limit: config.memory_limit,
            stall_limit: config.stall_limit,
            not_ready: AtomicBool::new(false),
            disk_since: AtomicU64::new(AT_REST),
            epoch: Instant::now(),
            #[cfg(test)]
            failing_append: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            snapshot_bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            observer,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- used by the appender

    pub(super) fn append(&self, record: &[u8]) -> Result<Position, Error> {
        let mut inner = self.lock();
        if let State::Failed(reason) = &inner.state {
            return Err(Error::Stopped(reason.clone()));
        }
        #[cfg(test)]
        if self.failing_append.load(Ordering::SeqCst) == inner.last + 1 {
            return Err(Error::Stopped("injected".into()));
        }
        inner.last += 1;
        if inner.tail.is_empty() {
            inner.tail_since = Instant::now();
            if inner.tail.capacity() == 0 {
                inner.tail =
                    inner.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK + (CHUNK >> 3)));
            }
        }
        let sequence = inner.last;
        push_record(&mut inner.tail, sequence, record);
        self.appended.store(sequence, Ordering::Release);
        let size = FRAME_HEADER + record.len();
        inner.queued += size;
        let before = self.memory.fetch_add(size, Ordering::Relaxed);
        if before < self.memory_limit && before + size >= self.memory_limit {
            // A stall counts from here, not from the end of the last work.
            inner.progress = Instant::now();
        }
        self.log_bytes.fetch_add(size as u64, Ordering::Relaxed);
        if inner.tail.len() >= CHUNK {
            inner.close_tail();
        }
        if inner.queued >= inner.wake_at {
            inner.wake_at = usize::MAX;
            self.wake.notify_one();
        }
        Ok(Position(sequence))
    }

    /// Queues work other than a record; `None` if the writer has stopped.
    pub(super) fn push(&self, work: Work) -> Option<Position> {
        let mut inner = self.lock();
        if inner.stop || matches!(inner.state, State::Failed(_)) {
            return None;
        }
        inner.close_tail();
        inner.queue.push_back(work);
        // Replies that depend on records after a rotation wait for it.
        inner.called = true;
        self.wake.notify_one();
        Some(Position(inner.last))
    }

    pub(super) fn state(&self) -> State {
        let busy = self.memory.load(Ordering::Relaxed) >= self.memory_limit;
        let stuck = self.disk_busy_for().filter(|spent| *spent > self.stall_limit);
        if !busy && stuck.is_none() && !self.not_ready.load(Ordering::Acquire) {
            return State::Ready;
        }
        let inner = self.lock();
        match (&inner.state, stuck) {
            (State::Ready, Some(spent)) => {
                let seconds = spent.as_secs();
                State::Refusing(format!("the disk has not answered for {seconds} s").into())
            }
            (state, _) => self.state_by_memory(state, busy, inner.progress),
        }
    }

    fn state_by_memory(&self, state: &State, busy: bool, progress: Instant) -> State {
        match state {
            State::Ready if busy && progress.elapsed() > self.stall_limit => {
                let seconds = progress.elapsed().as_secs();
                State::Refusing(format!("the disk has taken nothing for {seconds} s").into())
            }
            State::Ready if busy => State::Busy,
            state => state.clone(),
        }
    }

    pub(super) fn fsync(&self) -> Fsync {
        self.lock().fsync
    }

    pub(super) fn set_fsync(&self, fsync: Fsync) {
        let mut inner = self.lock();
        inner.fsync = fsync;
        // Records that wait under the old policy are synced at once.
        inner.sync_wanted = true;
        self.wake.notify_one();
    }

    pub(super) fn appended(&self) -> Position {
        Position(self.appended.load(Ordering::Acquire))
    }

    #[cfg(test)]
    pub(super) fn request_sync(&self) -> Position {
        let mut inner = self.lock();
        inner.sync_wanted = true;
        self.wake.notify_one();
        Position(inner.last)
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }

    /// Registers a compaction as the running one; fails if one is running.
    pub(super) fn begin(&self, handoff: &Arc<Handoff>) -> Result<(), Error> {
        let mut inner = self.lock();
        match &inner.state {
            State::Failed(reason) => return Err(Error::Stopped(reason.clone())),
            State::Refusing(reason) => return Err(Error::Aborted(reason.clone())),
            State::Ready | State::Busy => {}
        }
        if inner.handoff.as_ref().is_some_and(|handoff| handoff.is_running()) {
            return Err(Error::Compacting);
        }
        inner.handoff = Some(handoff.clone());
        Ok(())
    }

    // ---- used by threads that read the status

    pub(super) fn durable(&self) -> Position {
        Position(self.durable.load(Ordering::Acquire))
    }

    pub(super) fn written(&self) -> Position {
        Position(self.written.load(Ordering::Acquire))
    }

    pub(super) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    // ---- used by the writer

    /// Waits until `deadline`, or until there is something to do.
    pub(super) fn wait(&self, deadline: Option<Instant>, wait: Wait) -> Calls {
        let mut inner = self.lock();
        let mut lingering: Option<Instant> = None;
        loop {
            let now = Instant::now();
            let until = match (deadline, lingering) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let called = inner.sync_wanted || inner.called;
            let urgent = inner.stop || (wait == Wait::ForWork && called);
            if urgent || until.is_some_and(|until| until <= now) {
                break;
            }
            inner.wake_at = usize::MAX;
            if wait == Wait::ForWork {
                let is_work = inner.queued > 0 || !inner.queue.is_empty();
                if is_work && (inner.fsync == Fsync::Always || inner.queued >= LINGER_BYTES) {
                    break;
                }
                if is_work && lingering.is_none() {
                    lingering = Some(now + LINGER);
                    continue;
                }
                inner.wake_at = if is_work { LINGER_BYTES } else { 1 };
            }
            inner = match until {
                Some(until) => {
                    self.wake
                        .wait_timeout(inner, until - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner),
            };
        }
        inner.wake_at = usize::MAX;
        inner.called = false;
        let sync_wanted = std::mem::take(&mut inner.sync_wanted);
        Calls { sync_wanted, stop: inner.stop }
    }

    /// Takes the queue, for the holder of the output's lock; also returns the policy in force.
    pub(super) fn take(&self) -> (VecDeque<Work>, Fsync) {
        let mut inner = self.lock();
        inner.close_tail();
        inner.queued = 0;
        (std::mem::take(&mut inner.queue), inner.fsync)
    }

    /// Frees the memory of chunks whose copies are no longer needed, and reuses their buffers.
    pub(super) fn release(&self, chunks: Vec<Chunk>) {
        let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let before = self.memory.fetch_sub(bytes, Ordering::Relaxed);
        if before >= self.memory_limit && before - bytes < self.memory_limit {
            self.notify(Event::Room);
        }
        self.recycle(chunks);
    }

    /// Reuses the buffers of chunks.
    pub(super) fn recycle(&self, chunks: Vec<Chunk>) {
        let mut buffers: Vec<Vec<u8>> = chunks.into_iter().map(|chunk| chunk.bytes).collect();
        let mut inner = self.lock();
        inner.progress = Instant::now();
        while inner.spare.len() < SPARE
            && let Some(mut buffer) = buffers.pop()
        {
            if buffer.capacity() <= 2 * CHUNK {
                buffer.clear();
                inner.spare.push(buffer);
            }
        }
        // Other buffers are freed after the lock is released, so that an append does not wait for
        // it.
        drop(inner);
    }

    /// Reports that the kernel has the records up to a sequence.
    pub(super) fn set_written(&self, sequence: u64) {
        if self.written.fetch_max(sequence, Ordering::AcqRel) < sequence {
            self.notify(Event::Written(Position(sequence)));
        }
    }

    /// Reports that records are durable up to a sequence.
    pub(super) fn set_durable(&self, sequence: u64) {
        if self.durable.load(Ordering::Relaxed) < sequence {
            self.durable.store(sequence, Ordering::Release);
            self.notify(Event::Durable(Position(sequence)));
        }
    }

    pub(super) fn set_state(&self, state: State) {
        let mut inner = self.lock();
        // A failure is permanent, whatever another thread reports later.
        if inner.state == state || matches!(inner.state, State::Failed(_)) {
            return;
        }
        self.not_ready.store(state != State::Ready, Ordering::Release);
        inner.state = state.clone();
        // A running snapshot competes for the disk space that the log needs.
        if let (Some(reason), Some(handoff)) = (state.reason(), &inner.handoff) {
            handoff.abort(reason);
        }
        drop(inner);
        self.notify(Event::State(state));
    }

    /// Takes work that will not be done.
    pub(super) fn drain(&self) -> VecDeque<Work> {
        std::mem::take(&mut self.lock().queue)
    }

    /// Reports that the writer has died, so that no compaction waits for it.
    pub(super) fn abandon(&self, reason: Arc<str>) {
        if let Some(handoff) = &self.lock().handoff {
            handoff.unknown(reason);
        }
    }

    pub(super) fn notify(&self, event: Event) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}
