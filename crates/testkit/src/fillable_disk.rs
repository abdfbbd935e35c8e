//! A disk of its own that can be full: a tmpfs, mounted by root and unmounted when the test ends in whatever way.
//!
//! Full means that the file system's size is set to what is used. So nothing has to be written to fill it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::temp_dir;

/// Waits for the end of its input, then unmounts and removes the folder.
const WATCHER: &str = r#"read -r word; umount -l "$0"; rmdir "$0""#;
/// The size of a disk that is not full.
const SIZE: &str = "8g";

/// A mounted tmpfs.
#[derive(Debug)]
pub struct FillableDisk {
    folder: PathBuf,
    watcher: Child,
    // The watcher reads the end of file when this process is gone.
    pipe: Option<ChildStdin>,
}

impl FillableDisk {
    /// Mounts an empty disk; the error says why that is not possible, such as missing rights.
    pub fn mount() -> Result<Self, String> {
        let folder = temp_dir().keep();
        let path = folder.display().to_string();
        if let Err(error) =
            run("mount", &["-t", "tmpfs", "-o", &format!("size={SIZE},mode=755"), "tmpfs", &path])
        {
            std::fs::remove_dir(&folder).ok();
            return Err(error);
        }
        let mut watcher = Command::new("sh")
            .args(["-c", WATCHER, &path])
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start sh: {error}"));
        Ok(Self { pipe: watcher.stdin.take(), watcher, folder })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// From now on there is no room.
    pub fn fill(&self) {
        // Processes go on writing between the question and the change.
        let filled = (0..100)
            .any(|_| self.used_kb().is_some_and(|used| self.resize(&format!("{used}k")).is_ok()));
        assert!(filled, "cannot fill {}", self.folder.display());
    }

    /// From now on there is room.
    pub fn free(&self) {
        self.resize(SIZE).unwrap_or_else(|error| panic!("{error}"));
    }

    fn resize(&self, size: &str) -> Result<(), String> {
        run("mount", &["-o", &format!("remount,size={size}"), &self.folder.display().to_string()])
    }

    fn used_kb(&self) -> Option<u64> {
        let output =
            Command::new("df").args(["-k", "--output=used"]).arg(&self.folder).output().ok()?;
        // 0 would mean "no limit".
        let used: u64 =
            String::from_utf8_lossy(&output.stdout).lines().nth(1)?.trim().parse().ok()?;
        Some(used.max(4))
    }
}

impl Drop for FillableDisk {
    fn drop(&mut self) {
        self.pipe.take();
        self.watcher.wait().ok();
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_full_disk_takes_nothing_until_there_is_room() {
        let disk = match FillableDisk::mount() {
            Ok(disk) => disk,
            // Only root may mount; the fault campaign says the same in its report.
            Err(reason) => return assert!(!rustix::process::geteuid().is_root(), "{reason}"),
        };
        let (first, second) = (disk.path().join("first"), disk.path().join("second"));
        std::fs::write(&first, vec![1; 100_000]).unwrap();
        disk.fill();
        let refused = std::fs::write(&second, vec![2; 100_000]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::StorageFull);
        disk.free();
        std::fs::write(&second, vec![2; 100_000]).unwrap();
        let folder = disk.path().to_owned();
        drop(disk);
        assert!(!folder.exists());
    }
}
