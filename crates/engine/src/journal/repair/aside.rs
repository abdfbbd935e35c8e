//! Setting files aside: a repair renames or copies, and deletes nothing.

use std::io;

use super::super::{
    disk::Disk,
    error::{Error, io_error},
};

/// The end of the name of a file that was set aside.
pub(super) const ASIDE: &str = ".damaged";

/// How a file is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The original stays, and a copy gets the new name.
    Copy,
    /// The original is renamed.
    Move,
}

/// Sets a file aside; returns its new name, or `None` if the file does not exist.
pub(super) fn set_aside(disk: &dyn Disk, name: &str, keep: Keep) -> Result<Option<String>, Error> {
    let names = disk.list().map_err(io_error("list", disk.path()))?;
    if !names.iter().any(|existing| existing == name) {
        return Ok(None);
    }
    let free = |n: u32| match n {
        0 => format!("{name}{ASIDE}"),
        n => format!("{name}.{n}{ASIDE}"),
    };
    let aside = (0..).map(free).find(|aside| !names.contains(aside)).unwrap_or_default();
    let moved = match keep {
        Keep::Move => disk.rename(name, &aside),
        Keep::Copy => copy(disk, name, &aside),
    };
    moved.and_then(|()| disk.sync_dir()).map_err(io_error("move aside", disk.path().join(name)))?;
    Ok(Some(aside))
}

/// The length of a file; 0 if there is none.
pub(super) fn length(disk: &dyn Disk, name: &str) -> Result<u64, Error> {
    match disk.open(name).and_then(|file| file.length()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => found.map_err(io_error("read", disk.path().join(name))),
    }
}

fn copy(disk: &dyn Disk, from: &str, to: &str) -> io::Result<()> {
    let from = disk.open(from)?;
    let to = disk.create(to)?;
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let n = from.read_full_at(at, &mut piece)?;
        if n == 0 {
            return to.sync();
        }
        to.write_all_at(at, &piece[..n])?;
        at += n as u64;
    }
}
