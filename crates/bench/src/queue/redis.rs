//! A redis-server of our own, with or without an append-only file.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};

/// Whether Redis writes an append-only file, every second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Aof {
    On,
    Off,
}

impl Aof {
    pub(super) fn name(self) -> &'static str {
        if self == Self::On { "on" } else { "off" }
    }
}

/// A redis-server of our own.
pub(super) struct Redis {
    _child: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Redis {
    pub(super) async fn start(aof: Aof) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-bench-").tempdir()?;
        let socket = folder.path().join("socket");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--maxmemory-policy", "noeviction"])
            .args([
                "--auto-aof-rewrite-percentage",
                "0",
                "--appendfsync",
                "everysec",
                "--appendonly",
            ])
            .arg(if aof == Aof::On { "yes" } else { "no" })
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("redis-server is not installed: apt-get install redis-server")?;
        let give_up = Instant::now() + Duration::from_secs(10);
        // The socket file exists a moment before the server listens.
        while tokio::net::UnixStream::connect(&socket).await.is_err() {
            if Instant::now() > give_up {
                bail!("redis-server does not start");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(Self { _child: child, socket, _folder: folder })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}
