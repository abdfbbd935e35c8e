//! Creates the file of a SQLite database and its folder, readable by their owner only: the file holds
//! the names and addresses of ticket holders. SQLite gives the files beside it (`-wal`, `-shm`) the same
//! rights.
//!
//! Files and folders that exist keep their rights.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Creates the folder and its parents if they are missing.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Creates an empty file, which is an empty database, unless the file exists.
///
/// The file is created under a temporary name and gets its own name when it is closed. A process that
/// closes a file loses all locks it holds on that file, those of its SQLite connections included.
pub(crate) fn make_file(file: &Path) -> Result<()> {
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().display();
    let draft = file.with_file_name(format!(".{name}.{}", uuid::Uuid::now_v7()));
    create_new(&draft)?;
    let named = match fs::hard_link(&draft, file) {
        // A file system without hard links: a process that opens a new file twice at once may lose a lock.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => create_new(file),
        result => result,
    };
    fs::remove_file(&draft)?;
    match named {
        // Another process created the file first; it is an empty database too.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

fn create_new(file: &Path) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(file).map(drop)
}
