//! The two servers that are compared: separate processes with settings as alike as possible.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use stampede_broker::Broker;
use tokio::process::{Child, Command};

use super::wire::{Address, Wire};
use super::{BenchEngine, Fsync};
use crate::local::{free_port, socket_url, without_settings};
use crate::processes::read_stat;

/// How long a server may take to read its data or to end.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(5);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `stampede engine run`.
    Engine,
    /// redis-server from the search path.
    Redis,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Redis => "redis-server",
        }
    }
}

/// How both are run.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// The measured server, and the one it is compared with.
    pub(super) sides: [Kind; 2],
    fsync: Fsync,
    tcp: bool,
}

impl Setup {
    pub(super) fn new(options: &BenchEngine) -> Result<Self> {
        let version = std::process::Command::new("redis-server").arg("--version").output();
        version.context(
            "this compares the engine with redis-server, which is not installed: apt-get install redis-server",
        )?;
        let measured = if options.self_check { Kind::Redis } else { Kind::Engine };
        Ok(Self { sides: [measured, Kind::Redis], fsync: options.fsync, tcp: options.tcp })
    }
}

/// A running server in a temporary folder.
pub(super) struct Server {
    kind: Kind,
    setup: Setup,
    child: Child,
    address: Address,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts an empty server and waits until it answers.
    pub(super) async fn start(setup: &Setup, kind: Kind) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-bench-").tempdir()?;
        let address = if setup.tcp {
            Address::Tcp(free_port()?)
        } else {
            Address::Unix(folder.path().join("socket"))
        };
        let child = spawn(setup, kind, &address, &folder.path().join("data"))?;
        let mut server = Self { kind, setup: setup.clone(), child, address, folder };
        server.answers().await?;
        Ok(server)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// A connection for commands that the broker does not have.
    pub(super) fn connect(&self) -> Result<Wire> {
        Ok(Wire::connect(&self.address)?)
    }

    /// A connection as our workers and the API have it.
    pub(super) async fn broker(&self) -> Result<Broker> {
        let url = match &self.address {
            Address::Tcp(port) => format!("redis://127.0.0.1:{port}"),
            Address::Unix(path) => socket_url(path)?,
        };
        Ok(Broker::connect(&stampede_broker::Config::new(url)).await?)
    }

    /// Memory that is really there, in bytes.
    pub(super) fn resident_bytes(&self) -> Result<u64> {
        let pid = self.child.id().context("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        kilobytes.map(|kilobytes: u64| kilobytes * 1024).context("no VmRSS in /proc")
    }

    /// CPU time it has used so far, all threads.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let pid = self.child.id().context("the server has ended")?;
        Ok(read_stat(pid).context("the server has ended")?.1)
    }

    /// What its journal takes on disk, in bytes.
    pub(super) fn disk_bytes(&self) -> u64 {
        bytes_below(self.folder.path().join("data"))
    }

    /// Ends it with SIGTERM.
    pub(super) async fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM);
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .with_context(|| format!("{} does not end", self.kind.name()))??;
        Ok(())
    }

    /// Kills it as a crash would, and starts it on the same data; returns how long the start took.
    pub(super) async fn crash_and_start(&mut self) -> Result<Duration> {
        self.signal(Signal::KILL);
        self.child.wait().await?;
        let data = self.folder.path().join("data");
        let started = Instant::now();
        self.child = spawn(&self.setup, self.kind, &self.address, &data)?;
        self.answers().await?;
        Ok(started.elapsed())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until it has read its data and answers.
    async fn answers(&mut self) -> Result<()> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let pong = Wire::connect(&self.address).and_then(|mut wire| wire.ask(&["GET", "x"]));
            // While it reads its data it answers with an error.
            if pong.is_ok_and(|answer| !answer.is_error()) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at once: {status}", self.kind.name());
            }
            if Instant::now() > give_up {
                bail!("{} does not answer after {PATIENCE:?}", self.kind.name());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn spawn(setup: &Setup, kind: Kind, address: &Address, data: &std::path::Path) -> Result<Child> {
    std::fs::create_dir_all(data)?;
    let mut command = match kind {
        Kind::Engine => Command::new(std::env::current_exe()?),
        Kind::Redis => Command::new("redis-server"),
    };
    without_settings(&mut command);
    if kind == Kind::Engine {
        command.args(["engine", "run", "--fsync", setup.fsync.as_str()]).env("LOG_LEVEL", "error");
    } else {
        let fsync = if setup.fsync == Fsync::Never { "no" } else { setup.fsync.as_str() };
        command.args(["--appendonly", "yes", "--appendfsync", fsync, "--save", ""]);
        command.args(["--maxmemory-policy", "noeviction", "--daemonize", "no"]);
    }
    match (address, kind) {
        (Address::Tcp(port), _) => {
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        }
        (Address::Unix(path), Kind::Engine) => {
            command.arg("--unixsocket").arg(path);
        }
        (Address::Unix(path), Kind::Redis) => {
            command.args(["--port", "0", "--unixsocket"]).arg(path);
        }
    }
    command.arg("--dir").arg(data).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command.spawn().with_context(|| format!("cannot start {}", kind.name()))
}

fn bytes_below(folder: PathBuf) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_below(entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}
