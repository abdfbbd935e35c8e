//! Errors of a journal, with messages for people.

use std::{fmt, io, path::PathBuf, sync::Arc};

use super::salvage::Missing;

/// An error of the caller's replay callback.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

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
        /// The pid of the owner, if known.
        pid: Option<u32>,
    },
    /// Written bytes are missing or changed.
    #[error("{0}")]
    Damaged(Damage),
    /// The files hold the state of no moment, so a repair would need leave to lose a part of it.
    #[error("{0}")]
    Unrepairable(Box<Unrepairable>),
    /// A file was written by a newer version of this program.
    #[error("{} has format version {found}, this program reads up to {known}; use a newer one", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed operation, as a verb.
        action: &'static str,
        /// The file it failed on.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The replay callback failed on a record or an item.
    #[error("cannot replay {what}: {source}")]
    Replay {
        /// The record or item.
        what: String,
        /// The callback's error.
        source: BoxError,
    },
    /// A record or an item is larger than 1 GiB.
    #[error("a record of {0} bytes is too large for the journal")]
    TooLarge(usize),
    /// The journal has stopped permanently; it must be opened again.
    #[error("the journal has stopped: {0}")]
    Stopped(Arc<str>),
    /// The compaction was aborted; the journal is unchanged.
    #[error("the compaction was aborted: {0}")]
    Aborted(Arc<str>),
    /// A compaction is already running.
    #[error("a compaction is already running")]
    Compacting,
}

/// The place and kind of damage in a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The journal's directory.
    pub dir: PathBuf,
    /// The damaged file.
    pub file: String,
    /// The offset in the file where the damage begins.
    pub offset: u64,
    /// A description of the damage.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is damaged at byte {}: {}. Nothing was changed. To see what can be restored, run: \
             stampede engine check --dir {dir}. To restore it, run: stampede engine repair --dir {dir}",
            self.dir.join(&self.file).display(),
            self.offset,
            self.what,
            dir = self.dir.display()
        )
    }
}

/// Why a repair was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrepairable {
    /// The journal's directory.
    pub dir: PathBuf,
    /// The damage, in the order found.
    pub damage: Vec<Damage>,
    /// The number of keys that a salvage can read from the damaged snapshot.
    pub readable: u64,
    /// The part of the snapshot that a salvage cannot read; `None` if there is nothing to salvage.
    pub missing: Option<Missing>,
}

impl fmt::Display for Unrepairable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Damage { dir, file, offset, what } in &self.damage {
            write!(f, "{} is damaged at byte {offset}: {what}. ", dir.join(file).display())?;
        }
        write!(
            f,
            "No older snapshot with its log is left, so no state of any moment can be restored. \
             Nothing was changed. Restore a backup of {}",
            self.dir.display()
        )?;
        if self.missing.is_some() {
            write!(
                f,
                ". Without a backup, keep the {} readable keys with: stampede engine repair --salvage --dir {}",
                self.readable,
                self.dir.display()
            )?;
        }
        Ok(())
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
