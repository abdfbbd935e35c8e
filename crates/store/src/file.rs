//! The file of a SQLite database and its folder, made for their owner only: the file holds the names
//! and addresses of ticket holders. SQLite gives the files beside it (`-wal`, `-shm`) the same rights.
//!
//! What exists already keeps the rights somebody gave it.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Makes what is missing of the folder.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Makes an empty file, which is an empty database, unless there is one.
///
/// It is never opened under its own name: a process that closes a file loses all locks it has on it,
/// those of its SQLite connections included. It gets its name when it is closed.
pub(crate) fn make_file(file: &Path) -> Result<()> {
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().display();
    let draft = file.with_file_name(format!(".{name}.{}", uuid::Uuid::now_v7()));
    create_new(&draft)?;
    let named = match fs::hard_link(&draft, file) {
        // Where there are no hard links, a process that opens a new file twice at once is out of luck.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => create_new(file),
        result => result,
    };
    fs::remove_file(&draft)?;
    match named {
        // Another process was faster; its file is as good as ours.
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
