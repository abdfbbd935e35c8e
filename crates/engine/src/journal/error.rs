//! What can go wrong with a journal, in words for a person.

use std::{fmt, io, path::PathBuf, sync::Arc};

/// An error of the caller's own, carried through a replay.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a journal could not be opened, written or compacted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process owns the directory.
    #[error(
        "the data directory {} is in use by {}; stop that process first or choose another directory",
        dir.display(),
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The owner, if it left its pid.
        pid: Option<u32>,
    },
    /// Bytes that were written are not there any more, or not as they were written.
    #[error("{0}")]
    Damaged(Damage),
    /// A file was written by a newer version of this program.
    #[error("{} has format version {found}, this program reads up to {known}; use a newer one", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version it says.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The operating system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The caller could not take a record or an item.
    #[error("cannot replay {what}: {source}")]
    Replay {
        /// Which record or item.
        what: String,
        /// Why.
        source: BoxError,
    },
    /// A record or an item is larger than [`super::MAX_RECORD`].
    #[error("a record of {0} bytes is too large for the journal")]
    TooLarge(usize),
    /// The journal has stopped for good; only opening it again helps.
    #[error("the journal has stopped: {0}")]
    Stopped(Arc<str>),
    /// It did not become durable in the time given.
    #[error("not durable in time ({0})")]
    Late(Arc<str>),
    /// A compaction was given up; the journal is as it was.
    #[error("the compaction was given up: {0}")]
    Aborted(Arc<str>),
    /// One compaction at a time.
    #[error("a compaction is already running")]
    Compacting,
}

/// Where a journal is damaged and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The directory of the journal.
    pub dir: PathBuf,
    /// The file in it.
    pub file: String,
    /// Where in the file the damage begins.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is damaged at byte {}: {}. Nothing was changed. To keep everything before the damage and move the \
             rest aside, run: stampede engine repair --dir {}",
            self.dir.join(&self.file).display(),
            self.offset,
            self.what,
            self.dir.display()
        )
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// Turns an [`io::Error`] into an [`Error::Io`] that names the file.
pub(super) fn io_error(action: &'static str, path: PathBuf) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, path, source }
}
