//! The file-system seam: the operations the journal needs of a disk, and the real disk.
//!
//! A [`Disk`] is one flat directory. The journal needs files written at explicit offsets, an atomic
//! rename, and a lock. It syncs two things separately: the bytes of a file ([`DiskFile::sync`]) and the
//! names in the directory ([`Disk::sync_dir`]). Tests put a faulty disk in memory behind the same trait
//! (`tests/faulty_disk.rs`).
//!
//! Writes carry their offset so that a failed write can be continued or overwritten at the same offset:
//! no torn record stays in the middle of a file.

use std::{
    fmt, fs,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
};

/// A flat directory of files, as the journal uses it.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// The directory's path, for messages.
    fn path(&self) -> PathBuf;
    /// Creates an empty file, or truncates an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file that must exist.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file atomically, replacing any file of the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals survive a power cut.
    fn sync_dir(&self) -> io::Result<()>;
    /// Locks the directory for this process until the lock is dropped.
    fn lock(&self) -> Result<Lock, LockError>;
}

/// An open file, read and written at explicit offsets. Threads may write while another one syncs: a sync covers the
/// writes that ended before it began.
pub(crate) trait DiskFile: fmt::Debug + Send + Sync {
    /// Reads some bytes; a short read is allowed, 0 means end of file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes some bytes; a short write is allowed.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates the file to a length.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Makes the file's bytes and length survive a power cut (`fdatasync`).
    fn sync(&self) -> io::Result<()>;
    /// The file's length in bytes.
    fn length(&self) -> io::Result<u64>;
}

impl dyn DiskFile {
    /// Writes all bytes; after an error the bytes at and after `offset` are undefined.
    pub(super) fn write_all_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(offset, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    offset += n as u64;
                    bytes = &bytes[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until the buffer is full or the file ends; returns the number of bytes read.
    pub(super) fn read_full_at(&self, mut offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.read_at(offset, &mut into[done..]) {
                Ok(0) => break,
                Ok(n) => {
                    offset += n as u64;
                    done += n;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Holds the lock of a directory while it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    // Dropping the file releases the lock; the tests' disk in memory has none.
    _file: Option<fs::File>,
}

impl Lock {
    /// A lock without a file, for the tests' disk in memory.
    #[cfg(test)]
    pub(super) fn pretend() -> Self {
        Self { _file: None }
    }
}

/// Why a directory could not be locked.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds the lock; its pid, if it wrote one.
    Held(Option<u32>),
    /// The lock file could not be opened or locked.
    Io(io::Error),
}

/// A directory of the operating system.
#[derive(Debug, Clone)]
pub(crate) struct RealDisk {
    dir: PathBuf,
}

impl RealDisk {
    /// Uses a directory; creates it durably if it is missing.
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        create_dir_durably(dir)?;
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// Uses a directory that must exist.
    pub(crate) fn existing(dir: &Path) -> io::Result<Self> {
        if fs::metadata(dir)?.is_dir() {
            Ok(Self { dir: dir.to_path_buf() })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }
}

/// Creates a directory and all missing ones above it, for this user alone, so that they survive a power cut.
pub fn create_dir_durably(dir: &Path) -> io::Result<()> {
    let dir = std::path::absolute(dir)?;
    let parents = parents_of_missing(&dir);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    // From the top: a directory survives only if the one above it does.
    parents.iter().rev().try_for_each(|parent| fs::File::open(parent)?.sync_all())
}

/// The directories that get a new name when a directory is created, the lowest first.
fn parents_of_missing(dir: &Path) -> Vec<&Path> {
    let levels = dir.ancestors().zip(dir.ancestors().skip(1));
    levels.take_while(|(level, _)| !level.exists()).map(|(_, parent)| parent).collect()
}

/// The name of the lock file.
const LOCK: &str = "lock";

impl Disk for RealDisk {
    fn path(&self) -> PathBuf {
        self.dir.clone()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Box::new(RealFile(options.open(self.dir.join(name))?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.dir.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            // A name that is not UTF-8 is not a file of the journal.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        fs::File::open(&self.dir)?.sync_all()
    }

    fn lock(&self) -> Result<Lock, LockError> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(self.dir.join(LOCK)).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(32).read_to_string(&mut text);
                return Err(LockError::Held(text.trim().parse().ok()));
            }
            Err(fs::TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        // The pid only serves the error message, so a full disk must not prevent locking.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        Ok(Lock { _file: Some(file) })
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        FileExt::write_at(&self.0, bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_that_gets_a_new_name_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        let deep = top.join("a/b/c");
        let parents = [top.join("a/b"), top.join("a"), top.to_path_buf()];
        assert_eq!(parents_of_missing(&deep), parents);
        create_dir_durably(&deep).unwrap();
        assert!(deep.is_dir() && parents_of_missing(&deep).is_empty());
        create_dir_durably(&deep).unwrap();
    }

    #[test]
    fn a_second_owner_is_told_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(dir.path()).unwrap();
        let first = disk.lock().unwrap();
        match disk.lock() {
            Err(LockError::Held(pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        disk.lock().unwrap();
    }
}
