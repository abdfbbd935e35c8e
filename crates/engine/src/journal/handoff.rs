//! The hand-off of a compaction between the executor, the snapshot's thread and the writer's thread.
//!
//! ```text
//!              abort (executor, disk full, journal refusing)
//!            ┌────────────────────────────────────────────▶ Failed, the file is removed
//!  Feeding ──┴─▶ Finishing ── claim ──▶ claimed ──────────▶ Done
//!                               │           └─ journal ends ─▶ Failed, the file stays: the next open decides
//!                               └ aborted before ──▶ Failed
//! ```
//!
//! The claim is the point of no return. The writer claims just before it replaces the manifest. From
//! then on the new manifest may be on disk, so the snapshot file must not be removed.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::{Error, compaction::Progress, snapshot::Counts};

/// The state of one compaction, shared by three threads.
#[derive(Debug, Default)]
pub(super) struct Handoff {
    inner: Mutex<HandoffInner>,
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) struct HandoffInner {
    blocks: VecDeque<Vec<u8>>,
    /// Bytes of the queued blocks.
    pub(super) queued: usize,
    /// The number of all items and keys, once the feed has ended.
    pub(super) finish: Option<Counts>,
    pub(super) abort: Option<Arc<str>>,
    /// Whether the writer has begun to install; from then on the compaction cannot be aborted.
    claimed: bool,
    outcome: Option<Outcome>,
    pub(super) progress: Progress,
}

impl Default for HandoffInner {
    fn default() -> Self {
        let (blocks, queued, finish, abort) = (VecDeque::new(), 0, None, None);
        Self {
            blocks,
            queued,
            finish,
            abort,
            claimed: false,
            outcome: None,
            progress: Progress::Feeding,
        }
    }
}

/// The result of the installation.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The new manifest is in force; these files are obsolete.
    Installed(Vec<String>),
    /// The old manifest is in force.
    Declined(Arc<str>),
    /// The journal ended in between; the manifest that the next open finds decides.
    Unknown(Arc<str>),
}

impl Handoff {
    pub(super) fn lock(&self) -> MutexGuard<'_, HandoffInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.lock().progress, Progress::Feeding | Progress::Finishing)
    }

    /// Aborts the compaction, unless the writer has claimed it.
    pub(super) fn abort(&self, reason: Arc<str>) {
        let mut inner = self.lock();
        if !inner.claimed {
            inner.abort.get_or_insert(reason);
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Claims the compaction for installation; fails if it was aborted before.
    pub(super) fn claim(&self) -> Result<(), Arc<str>> {
        let mut inner = self.lock();
        match &inner.abort {
            Some(reason) => Err(reason.clone()),
            None => {
                inner.claimed = true;
                Ok(())
            }
        }
    }

    /// Reports the installation; these files are obsolete now.
    pub(super) fn installed(&self, names: Vec<String>) {
        self.decide(Outcome::Installed(names));
    }

    /// Reports that the installation did not happen and will not.
    pub(super) fn declined(&self, reason: Arc<str>) {
        self.decide(Outcome::Declined(reason));
    }

    /// Reports that the writer ended before the installation was complete.
    pub(super) fn unknown(&self, reason: Arc<str>) {
        let claimed = self.lock().claimed;
        self.decide(if claimed { Outcome::Unknown(reason) } else { Outcome::Declined(reason) });
    }

    fn decide(&self, outcome: Outcome) {
        self.lock().outcome = Some(outcome);
        self.changed.notify_all();
    }

    pub(super) fn settle(&self, progress: Progress) {
        let mut inner = self.lock();
        inner.progress = progress;
        inner.blocks.clear();
        drop(inner);
        self.changed.notify_all();
    }

    pub(super) fn put(&self, block: Vec<u8>) -> Result<(), Error> {
        let mut inner = self.lock();
        if let Some(reason) = &inner.abort {
            return Err(Error::Aborted(reason.clone()));
        }
        inner.queued += block.len();
        inner.blocks.push_back(block);
        drop(inner);
        self.changed.notify_all();
        Ok(())
    }

    /// The next block; `Ok(Err(counts))` at the end, `Err` after an abort.
    pub(super) fn next(&self) -> Result<Result<Vec<u8>, Counts>, Arc<str>> {
        let mut inner = self.lock();
        loop {
            if let Some(reason) = &inner.abort {
                return Err(reason.clone());
            }
            if let Some(block) = inner.blocks.pop_front() {
                inner.queued -= block.len();
                return Ok(Ok(block));
            }
            if let Some(counts) = inner.finish {
                return Ok(Err(counts));
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn wait_outcome(&self) -> Outcome {
        let mut inner = self.lock();
        loop {
            if let Some(outcome) = inner.outcome.take() {
                return outcome;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
