//! A small file system of its own: a test fills it and makes room again.
//!
//! The file system is a tmpfs in a mount namespace, so that no rights on the machine are needed. A process that
//! waits for the end of the test holds the namespace; programs that use the disk are started inside of it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

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
}

impl SmallDisk {
    /// Mounts a disk of this size.
    pub async fn mount(megabytes: u64) -> Self {
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
        if let Err(log) = ready.await {
            panic!("this test needs namespaces (`unshare --map-root-user --mount true`): {log}");
        }
        Self { holder, folder }
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

    /// Fills the disk to its last byte.
    pub fn fill(&self) {
        let ballast = self.ballast();
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&ballast)
            .unwrap_or_else(|error| panic!("{}: {error}", ballast.display()));
        for size in [1 << 20, 4 << 10, 1] {
            let block = vec![b'x'; size];
            loop {
                match file.write(&block) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("cannot fill the disk: {error}"),
                }
            }
        }
    }

    /// Removes what fills the disk.
    pub fn make_room(&self) {
        let ballast = self.ballast();
        fs::remove_file(&ballast).unwrap_or_else(|error| panic!("{}: {error}", ballast.display()));
    }

    /// The path of a file on the disk for this process, which is outside.
    pub fn from_outside(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.pid()));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn ballast(&self) -> PathBuf {
        self.from_outside(&self.path().join("ballast"))
    }
}
