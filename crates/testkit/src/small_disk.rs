//! A file system of its own: a test fills it and makes room again.
//!
//! The file system is a tmpfs in a mount namespace, so that no rights on the machine are needed. A process that
//! waits for the end of the test holds the namespace; programs that use the disk are started inside of it.
//!
//! Full means that the size of the file system is set to what is used: nothing has to be written to fill it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::temp_dir;

/// `$0` is the mount point, `$1` the size in megabytes, `$2` a file that tells that the disk is there.
const MOUNT: &str = r#"
mount -t tmpfs -o "size=$1m" none "$0"
echo mounted > "$2"
exec sleep infinity
"#;

/// A small disk; it is gone when the value is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    // Declared before the folder: the namespace must be gone when the folder is removed.
    holder: Guarded,
    folder: TempDir,
    megabytes: u64,
}

impl SmallDisk {
    /// Mounts a disk of this size.
    pub async fn mount(megabytes: u64) -> Self {
        Self::try_mount(megabytes).await.unwrap_or_else(|log| {
            panic!("this test needs namespaces (`unshare --map-root-user --mount true`): {log}")
        })
    }

    /// Mounts a disk of this size; the error says why that is not possible, such as missing rights.
    pub async fn try_mount(megabytes: u64) -> Result<Self, String> {
        let folder = temp_dir();
        let (disk, mounted) = (folder.path().join("disk"), folder.path().join("mounted"));
        fs::create_dir(&disk).unwrap_or_else(|error| panic!("{}: {error}", disk.display()));
        let mut command: Vec<String> =
            ["unshare", "--map-root-user", "--mount", "sh", "-ec", MOUNT].map(str::to_owned).into();
        command.extend([
            disk.display().to_string(),
            megabytes.to_string(),
            mounted.display().to_string(),
        ]);
        let mut holder = Guarded::spawn(folder.path(), Signal::KILL, &command);
        let ready = holder.ready(|_| {
            let is_mounted = mounted.exists();
            async move { is_mounted.then_some(()).ok_or_else(|| "not mounted yet".to_owned()) }
        });
        ready.await?;
        Ok(Self { holder, folder, megabytes })
    }

    /// The mount point, for programs that are started on the disk.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// The words before the command line of a program that is started on the disk.
    pub fn enter(&self) -> Vec<String> {
        let target = self.holder.pid().to_string();
        ["nsenter", "--target", &target, "--user", "--mount", "--preserve-credentials"]
            .map(str::to_owned)
            .into()
    }

    /// From now on there is no room.
    pub fn fill(&self) {
        // Processes go on writing between the question and the change.
        let filled = (0..100)
            .any(|_| self.used_kb().is_some_and(|used| self.resize(&format!("{used}k")).is_ok()));
        assert!(filled, "cannot fill {}", self.path().display());
    }

    /// From now on there is room.
    pub fn make_room(&self) {
        let size = format!("{}m", self.megabytes);
        self.resize(&size).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The path of a file on the disk for this process, which is outside.
    pub fn from_outside(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.pid()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn resize(&self, size: &str) -> Result<(), String> {
        let words = self.enter();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(["mount", "-o", &format!("remount,size={size}")])
            .arg(self.path())
            .output()
            .map_err(|error| format!("{}: {error}", words[0]))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(format!("mount: {said}")) }
    }

    fn used_kb(&self) -> Option<u64> {
        let words = self.enter();
        let mut df = Command::new(&words[0]);
        let output = df.args(&words[1..]).args(["df", "-k", "--output=used"]).arg(self.path());
        let output = output.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let used: u64 = text.lines().nth(1)?.trim().parse().ok()?;
        // 0 would mean "no limit".
        Some(used.max(4))
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn a_full_disk_takes_nothing_until_there_is_room() {
        let disk = SmallDisk::mount(16).await;
        let [first, second] =
            ["first", "second"].map(|name| disk.from_outside(&disk.path().join(name)));
        fs::write(&first, vec![1; 100_000]).unwrap();
        disk.fill();
        let refused = fs::write(&second, vec![2; 100_000]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::StorageFull);
        disk.make_room();
        fs::write(&second, vec![2; 100_000]).unwrap();
        let folder = disk.folder.path().to_owned();
        drop(disk);
        assert!(!folder.exists());
    }
}
