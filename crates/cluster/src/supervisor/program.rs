//! The file that workers run, held open: it can be started again even when it was replaced or removed on disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program to start workers with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its path, where a newer program would be, too.
    path: PathBuf,
    file: Option<Arc<File>>,
}

impl Program {
    /// The program that this process runs.
    pub fn own() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        // The file of this process, even when it was replaced on disk since.
        let running = Path::new("/proc/self/exe");
        let file = File::open(if running.exists() { running } else { &path }).ok();
        Ok(Self { path, file: file.map(Arc::new) })
    }

    /// The program in this file.
    pub fn at(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = File::open(&path)?;
        Ok(Self { path, file: Some(Arc::new(file)) })
    }

    /// The program that is at its path now.
    pub(crate) fn renewed(&self) -> io::Result<Self> {
        Self::at(&self.path)
    }

    /// Whether both programs are the same file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let identity = |program: &Self| {
            let metadata = program.file.as_ref()?.metadata().ok()?;
            Some((metadata.dev(), metadata.ino(), metadata.mtime_nsec(), metadata.len()))
        };
        identity(self).is_some() && identity(self) == identity(other)
    }

    /// The path to execute.
    pub(crate) fn executable(&self) -> PathBuf {
        let held = self.file.as_ref().map(|file| {
            // Resolved in the child before its descriptors are closed.
            PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
        });
        match held {
            // The interpreter of a script opens it again, when the descriptor is closed already.
            Some(held) if held.exists() && !self.is_script() => held,
            _ => self.path.clone(),
        }
    }

    fn is_script(&self) -> bool {
        use std::os::unix::fs::FileExt;
        let mut start = [0; 2];
        let read = self.file.as_ref().map(|file| file.read_exact_at(&mut start, 0));
        matches!(read, Some(Ok(()))) && &start == b"#!"
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_another_program_and_the_old_one_can_still_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/bin/true", &path).unwrap();
        let program = Program::at(&path).unwrap();
        assert!(program.is(&program.renewed().unwrap()));
        std::fs::copy("/bin/false", folder.path().join("new")).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        let newer = program.renewed().unwrap();
        assert!(!program.is(&newer));
        let run = |program: &Program| {
            std::process::Command::new(program.executable()).status().unwrap().success()
        };
        assert_eq!((run(&program), run(&newer)), (true, false));
    }
}
