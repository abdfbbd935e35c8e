//! A private redis-server in the data directory, for running without any setting.
//!
//! It listens on loopback with a random password, keeps an append-only file, and is restarted when
//! it dies. It ends with the server in whatever way that ends: a small shell beside it reads a pipe
//! that only the server holds, and when the pipe closes, tells Redis to end. A lock on the data
//! directory keeps two servers from sharing it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use stampede_broker::{Broker, Error};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How long Redis may take to start (it reads its data first) or to end.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// Becomes Redis, after starting a watcher that ends it when our end of the pipe closes. A word on
/// the pipe means that Redis has ended by itself, and that its process id may be somebody else's.
const SCRIPT: &str = r#"
exec 3<&0
{ read -r word <&3 || kill -TERM $$; } &
exec redis-server redis.conf 3<&- </dev/null
"#;

/// A running private Redis.
pub(crate) struct LocalRedis {
    folder: PathBuf,
    url: String,
    process: Process,
    _lock: File,
}

/// The process, and the pipe that keeps it alive.
struct Process {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl LocalRedis {
    /// Starts Redis in `data_dir/redis` and waits until it answers.
    pub(crate) async fn start(data_dir: &Path) -> Result<Self> {
        let folder = data_dir.join("redis");
        std::fs::create_dir_all(&folder).with_context(|| {
            format!(
                "cannot make the folder {}. Check DATA_DIR and its permissions",
                folder.display()
            )
        })?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        let lock = lock(data_dir)?;
        end_leftover(&folder).await?;
        let former = Self::known_url(data_dir).and_then(|url| Url::parse(&url).ok());
        let password = match former.as_ref().and_then(Url::password) {
            Some(password) => password.to_owned(),
            None => hex::encode(rand::random::<[u8; 24]>()),
        };
        // The same address as last time, if it can be had: others may have noted it.
        let port = former.and_then(|url| url.port()).filter(|port| is_free(*port));
        let port = port.map_or_else(free_port, Ok)?;
        write_config(&folder, port, &password)?;
        let url = format!("redis://:{password}@127.0.0.1:{port}/0");
        write_private(&folder.join("url"), &url)?;
        let process = launch(&folder, &url).await?;
        Ok(Self { folder, url, process, _lock: lock })
    }

    /// How to reach it, password included.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where a private Redis of this data directory listens, if one was ever started.
    pub(crate) fn known_url(data_dir: &Path) -> Option<String> {
        std::fs::read_to_string(data_dir.join("redis/url")).ok()
    }

    /// Restarts Redis whenever it dies; ends it when `stop` is cancelled.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                status = self.process.child.wait() => {
                    self.process.dismiss_watcher().await;
                    tracing::error!(?status, "the private Redis ended by itself and is started again");
                }
                () = stop.cancelled() => return self.process.end().await,
            }
            while !stop.is_cancelled() {
                tokio::time::sleep(RESTART_PAUSE).await;
                match launch(&self.folder, &self.url).await {
                    Ok(process) => {
                        self.process = process;
                        break;
                    }
                    Err(error) => tracing::error!("{error:#}"),
                }
            }
        }
    }
}

/// Takes the data directory for this process alone.
fn lock(data_dir: &Path) -> Result<File> {
    let path = data_dir.join("stampede.lock");
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            bail!(
                "the data directory {} is in use by another stampede (process {pid}). \
                 Stop that one, or set DATA_DIR to another folder",
                data_dir.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).context(format!("cannot lock {}", path.display()))
        }
    }
}

/// Ends the Redis of a server that was killed. We hold the lock, so nobody else uses it.
async fn end_leftover(folder: &Path) -> Result<()> {
    let pid = std::fs::read_to_string(folder.join("redis.pid"))
        .ok()
        .and_then(|text| Pid::from_raw(text.trim().parse().ok()?));
    let Some(pid) = pid.filter(|pid| is_redis(*pid)) else { return Ok(()) };
    tracing::info!(pid = pid.as_raw_nonzero(), "ending the Redis that a killed server left behind");
    let _ = kill_process(pid, Signal::TERM);
    let give_up = Instant::now() + PATIENCE;
    while test_kill_process(pid).is_ok() {
        if Instant::now() > give_up {
            bail!("the Redis left behind (process {}) does not end; kill it", pid.as_raw_nonzero());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// A process id may have been given to somebody else since.
fn is_redis(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
        .is_ok_and(|command| command.contains("redis-server"))
}

async fn launch(folder: &Path, url: &str) -> Result<Process> {
    let missing = "no REDIS_URL is set, and redis-server cannot be started. \
                   Install it (apt-get install redis-server), or set REDIS_URL";
    std::process::Command::new("redis-server").arg("--version").output().context(missing)?;
    let mut child = Command::new("sh")
        .args(["-c", SCRIPT])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in the terminal is for us; Redis goes last, when the workers have drained.
        .process_group(0)
        .spawn()
        .context("cannot start a shell")?;
    let pipe = child.stdin.take();
    let config = stampede_broker::Config { url: url.to_owned() };
    let mut give_up = Instant::now() + PATIENCE;
    loop {
        match Broker::connect(&config).await {
            Ok(_) => return Ok(Process { child, pipe }),
            // It answers; how long it reads depends on how much there is.
            Err(Error::Loading { .. }) => give_up = Instant::now() + PATIENCE,
            Err(error) => {
                let log = folder.join("redis.log");
                if let Some(status) = child.try_wait()? {
                    bail!("the private Redis ended at once ({status}); see {}", log.display());
                }
                if Instant::now() > give_up {
                    bail!("the private Redis does not answer ({error}); see {}", log.display());
                }
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Process {
    /// Ends Redis in good order: closing the pipe is the sign.
    async fn end(&mut self) {
        self.pipe = None;
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    /// Redis is gone; its watcher must not signal whoever has its process id by now.
    async fn dismiss_watcher(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(b"ended\n").await;
        }
    }
}

fn write_config(folder: &Path, port: u16, password: &str) -> Result<()> {
    let config = format!(
        "# Written by stampede at every start.\n\
         bind 127.0.0.1\nport {port}\nrequirepass {password}\n\
         dir .\nappendonly yes\nappendfsync everysec\nsave \"\"\n\
         maxmemory-policy noeviction\ndaemonize no\npidfile redis.pid\nlogfile redis.log\n"
    );
    write_private(&folder.join("redis.conf"), &config)
}

/// Writes a file that only we can read: it holds the password.
fn write_private(path: &Path, content: &str) -> Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())?;
    Ok(())
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// A port that nobody uses at this moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
