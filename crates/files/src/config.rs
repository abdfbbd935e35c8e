//! Settings of a folder of files.

use std::path::PathBuf;

/// Whether a file is forced to disk before it counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Every file is synced before its `put` returns.
    SyncEach,
    /// The operating system writes in its own time; a power cut may lose files that can be made again.
    Relaxed,
}

/// A folder that files are kept in.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder; created if it does not exist.
    pub root: PathBuf,
    /// Whether to sync each file.
    pub durability: Durability,
}
