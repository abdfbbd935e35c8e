//! The output of the journal: the log, and the work that was taken from the queue and is not done.
//!
//! It is behind one lock. The writer's thread takes the lock for everything; an event loop takes it to hand the
//! records of its round to the kernel before its replies leave ([`Shared::write_out`](super::shared::Shared)).
//! Work is taken from the queue only under this lock, so records reach the file in the order of their appends.
//!
//! ```text
//!  event loop       ─▶ write chunks ──────────────────────────────▶ write(2)
//!  writer's thread  ─▶ write chunks · rotate · install · rewrite ─▶ write(2), fsync, rename
//!                      fdatasync of the log: without the lock
//! ```
//!
//! An event loop writes only if everything before is written. After an error, and while a rotation or an
//! installation is pending, it leaves its records to the writer's thread and holds its replies.

use std::collections::VecDeque;

use super::{
    Fsync, State,
    log::{Copies, Log, LogError},
    shared::{Shared, Work},
};

/// The log and the work that is not done; the header describes it.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) log: Log,
    pub(super) todo: VecDeque<Work>,
    /// Whether the writer's thread has ended: nothing is written any more.
    pub(super) ended: bool,
}

impl Output {
    pub(super) fn new(log: Log) -> Self {
        Self { log, todo: VecDeque::new(), ended: false }
    }

    /// Whether records may be written by a thread other than the writer's: nothing comes before them.
    pub(super) fn is_free(&self) -> bool {
        self.todo.is_empty() && !self.log.is_suspect() && !self.ended
    }

    /// Writes the chunks at the front of the work, up to the next work of another kind.
    pub(super) fn write_chunks(&mut self, shared: &Shared, fsync: Fsync) -> Result<(), LogError> {
        let copies = match fsync {
            Fsync::Always | Fsync::EverySec => Copies::Keep,
            Fsync::Never => Copies::Drop,
        };
        while let Some(Work::Write(chunk)) = self.todo.front_mut() {
            self.log.write(chunk)?;
            // The disk has answered: a stall counts from here.
            if self.todo.len() > 1 {
                shared.disk_begins();
            }
            let Some(Work::Write(chunk)) = self.todo.pop_front() else { break };
            let Some(unused) = self.log.retain(chunk, copies) else { continue };
            match copies {
                Copies::Keep => shared.recycle(vec![unused]),
                Copies::Drop => shared.release(vec![unused]),
            }
        }
        Ok(())
    }
}

/// What an event loop has to report after it has written.
#[derive(Debug)]
pub(super) struct WrittenOut {
    /// The last record that the kernel has.
    pub(super) written: u64,
    /// The state to report: a failed write refuses further writes.
    pub(super) state: Option<State>,
    /// Whether the writer's thread has something to do: a retry, a sync in half a second, or work of its own.
    pub(super) calls_writer: bool,
}

impl Output {
    /// Writes the records of an event loop's round, on that loop's thread.
    pub(super) fn write_for_loop(&mut self, shared: &Shared) -> WrittenOut {
        let mut state = None;
        let mut calls_writer = !self.is_free();
        if !calls_writer {
            let was_dirty = self.log.is_dirty();
            let (work, fsync) = shared.take();
            self.todo = work;
            match self.write_chunks(shared, fsync) {
                Ok(()) => {}
                Err(
                    LogError::Retry(reason) | LogError::Declined(reason) | LogError::Fatal(reason),
                ) => {
                    state = Some(State::Refusing(reason.into()));
                }
            }
            let sync_age_begins = fsync == Fsync::EverySec && !was_dirty && self.log.is_dirty();
            let much_is_unsynced = self.log.unsynced_bytes() >= shared.sync_bytes;
            // The policy may have become `always` since the loop decided to write.
            let waits_for_sync = fsync == Fsync::Always && self.log.is_dirty();
            calls_writer =
                !self.todo.is_empty() || sync_age_begins || much_is_unsynced || waits_for_sync;
        }
        WrittenOut { written: self.log.written(), state, calls_writer }
    }
}
