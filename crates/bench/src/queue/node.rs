//! Node's BullMQ on the other side: processes that run `node.mjs` beside npm's package.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The versions we compare with; the interoperability tests use the same.
const PACKAGES: [&str; 2] = ["bullmq@6.7.0", "ioredis@6.0.0"];

/// Where npm's package is, installed at the first use.
pub(super) struct Node {
    folder: PathBuf,
}

impl Node {
    /// Installs the package into the cache folder unless it is there.
    pub(super) async fn install() -> Result<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
        let folder = cache
            .context("neither HOME nor XDG_CACHE_HOME is set: nowhere to install npm's bullmq")?
            .join("stampede")
            .join("bench")
            .join(PACKAGES.join("-").replace('@', "-"));
        // npm writes this file last.
        if !folder.join("node_modules/.package-lock.json").exists() {
            eprintln!("Installing {} from npm into {}", PACKAGES.join(" and "), folder.display());
            std::fs::create_dir_all(&folder)?;
            let install = Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
                .args(PACKAGES)
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()
                .await
                .context("this compares with Node's BullMQ, and npm is not installed: apt-get install nodejs npm")?;
            if !install.status.success() {
                bail!("npm cannot install them: {}", String::from_utf8_lossy(&install.stderr));
            }
        }
        std::fs::write(folder.join("bench.mjs"), include_str!("node.mjs"))?;
        Ok(Self { folder })
    }

    /// Starts a process that is connected to the Redis behind a unix socket.
    pub(super) fn start(&self, socket: &Path, payload: &Value) -> Result<Process> {
        let mut child = Command::new("node")
            .arg("bench.mjs")
            .arg(socket)
            .arg(payload.to_string())
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("this compares with Node's BullMQ, and node is not installed: apt-get install nodejs")?;
        let requests = child.stdin.take().context("node has no input")?;
        let answers = BufReader::new(child.stdout.take().context("node has no output")?).lines();
        Ok(Process { child, requests, answers })
    }
}

/// One Node process.
pub(super) struct Process {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Sends a request.
    pub(super) async fn send(&mut self, request: Value) -> Result<()> {
        Ok(self.requests.write_all(format!("{request}\n").as_bytes()).await?)
    }

    /// The next answer.
    pub(super) async fn answer(&mut self) -> Result<Value> {
        let line = self.answers.next_line().await?;
        let line = line.context("node has ended; it says why above")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn ask(&mut self, request: Value) -> Result<Value> {
        self.send(request).await?;
        self.answer().await
    }

    /// Ends it in good order.
    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.requests);
        self.child.wait().await?;
        Ok(())
    }
}
