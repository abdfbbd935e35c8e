//! A whole server to be measured: the running program as `serve`, in a temporary folder, with the
//! embedded engine and SQLite.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use stampede_broker::Broker;
use stampede_client::Client;
use tokio::process::{Child, Command};

use crate::local::{free_port, without_settings};

const POLL: Duration = Duration::from_millis(20);
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// Worker processes; `None`: one per core.
    pub(crate) workers: Option<u32>,
    /// Jobs that a worker runs at a time; `None`: the server's default.
    pub(crate) slots: Option<u32>,
}

/// A running server. Dropping it kills it and removes its folder.
pub(crate) struct Server {
    child: Child,
    /// A client with an administrator's key.
    pub(crate) client: Client,
    /// The port of its API.
    pub(crate) port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub(crate) async fn start(size: Size) -> Result<Self> {
        Self::start_with(size, &[]).await
    }

    /// Starts a server with further settings and waits until it is ready.
    pub(crate) async fn start_with(size: Size, settings: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-bench-").tempdir()?;
        let (port, key) = (free_port()?, hex::encode(rand::random::<[u8; 16]>()));
        let mut command = Command::new(std::env::current_exe()?);
        without_settings(&mut command);
        command
            .arg("serve")
            .env("DATA_DIR", folder.path())
            .env("PORT", port.to_string())
            .env("ADMIN_KEY", &key)
            .env("LOG_LEVEL", "warn")
            .stdout(Stdio::null())
            .kill_on_drop(true);
        // Always set: the number of workers must not change during the measurement.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = size.workers.map_or(cores, |workers| workers as usize);
        command.env("WORKER_COUNT", workers.to_string());
        if let Some(slots) = size.slots {
            command.env("JOB_CONCURRENCY", slots.to_string());
        }
        command.envs(settings.iter().copied());
        let child = command.spawn()?;
        let client = Client::new(&format!("http://127.0.0.1:{port}"), &key)?;
        let mut server = Self { child, client, port, folder };
        server.ready().await?;
        Ok(server)
    }

    async fn ready(&mut self) -> Result<()> {
        let give_up = Instant::now() + START_PATIENCE;
        while self.client.readiness().await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server to be measured ended at once: {status}");
            }
            if Instant::now() > give_up {
                bail!("the server to be measured is not ready after {START_PATIENCE:?}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// A connection to the server's engine.
    pub(crate) async fn broker(&self) -> Result<Broker> {
        let file = self.folder.path().join("engine.url");
        let url =
            std::fs::read_to_string(file).context("the engine has not written its address")?;
        Ok(Broker::connect(&stampede_broker::Config::new(url)).await?)
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// The process id; worker processes are below it.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.child.id().context("the server to be measured has ended")
    }

    /// Ends the server with SIGTERM.
    pub(crate) async fn stop(mut self) {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait().await;
    }
}
