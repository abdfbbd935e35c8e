//! The embedded engine in the server's own process, used when no Redis is set.
//!
//! ```text
//!  DATA_DIR/stampede.lock   locked by the server that uses this data directory
//!           engine/         the journal (its own lock is inside)
//!           engine.sock     where the API and the worker processes connect
//!           engine.url      the loopback address for other programs, with the password; private to the user
//! ```
//!
//! The engine starts before and stops after everything that uses it. When the process is killed, the
//! kernel frees the lock, and the next start replays the journal.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use stampede_engine::journal::{self, Fsync, Opened};
use stampede_engine::server::{Config, Server, StartError};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cli::FsyncArg;

/// Longest path of a unix socket in bytes, with the zero at its end.
const SOCKET_PATH: usize = 108;

/// The journal's folder in a data directory.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("engine")
}

/// The journal's settings for a policy.
pub(crate) fn journal_config(fsync: FsyncArg) -> journal::Config {
    let fsync = match fsync {
        FsyncArg::Always => Fsync::Always,
        FsyncArg::Everysec => Fsync::EverySec,
        FsyncArg::Never => Fsync::Never,
    };
    journal::Config { fsync, ..journal::Config::default() }
}

/// A running engine, and the reason if it failed.
pub(crate) struct Running {
    pub(crate) server: Server,
    failure: Arc<OnceLock<String>>,
}

impl Running {
    /// Starts an engine, which has threads of its own; reading the journal may take a while. `stop` is
    /// cancelled when it fails later, or when a client tells it to shut down.
    pub(crate) async fn start(
        mut config: Config,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        let failure = Arc::new(OnceLock::new());
        let (noted, stopped) = (failure.clone(), stop.clone());
        config.on_shutdown = Some(Arc::new(move || stop.cancel()));
        config.on_failure = Some(Arc::new(move |reason: &str| {
            tracing::error!("the engine has ended by itself: {reason}");
            let _ = noted.set(reason.to_owned());
            stopped.cancel();
        }));
        let started = tokio::task::spawn_blocking(|| Server::start(config)).await;
        let server = started.map_err(std::io::Error::other)??;
        Ok(Self { server, failure })
    }

    /// Stops the engine; everything is on disk afterwards.
    pub(crate) async fn stop(self) -> Result<()> {
        let stopped = tokio::task::spawn_blocking(|| self.server.stop()).await?;
        if let Some(reason) = self.failure.get() {
            bail!("the engine had ended by itself: {reason}");
        }
        stopped.context("the engine's journal")
    }
}

/// The address of a unix socket as a URL.
pub(crate) fn socket_url(socket: &Path, password: Option<&str>) -> Result<String> {
    let file = Url::from_file_path(std::path::absolute(socket)?)
        .map_err(|()| anyhow!("{} is not a path for a socket", socket.display()))?;
    let mut url = format!("unix://{}", file.path());
    if let Some(password) = password {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("pass", password)
            .finish();
        url = format!("{url}?{query}");
    }
    Ok(url)
}

/// A running embedded engine of a data directory.
pub(crate) struct LocalEngine {
    running: Running,
    url: String,
    _lock: File,
}

impl LocalEngine {
    /// Takes the data directory and starts the engine in it.
    ///
    /// `stop` is cancelled when the engine fails later on.
    pub(crate) async fn start(
        data_dir: &Path,
        fsync: FsyncArg,
        stop: CancellationToken,
    ) -> Result<Self> {
        std::fs::create_dir_all(data_dir).with_context(|| {
            format!(
                "cannot make the folder {}. Check DATA_DIR and its permissions",
                data_dir.display()
            )
        })?;
        let lock = lock(data_dir)?;
        // Port and password stay the same if the port is free: other programs may have noted the address.
        let former = Self::known_url(data_dir).and_then(|url| Url::parse(&url).ok());
        let password = match former.as_ref().and_then(Url::password) {
            Some(password) => password.to_owned(),
            None => hex::encode(rand::random::<[u8; 24]>()),
        };
        let port = former.and_then(|url| url.port()).filter(|port| is_free(*port)).unwrap_or(0);
        let socket = std::path::absolute(data_dir.join("engine.sock"))?;
        let socket = Some(socket).filter(|path| path.as_os_str().len() < SOCKET_PATH);
        let config = Config {
            tcp: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))],
            unix: socket.clone(),
            password: Some(password.clone()),
            dir: Some(folder(data_dir)),
            journal: journal_config(fsync),
            ..Config::default()
        };
        let running = Running::start(config, stop)
            .await
            .map_err(|error| anyhow!("the embedded engine does not start: {error}"))?;
        if let Some(opened) = running.server.opened() {
            tracing::info!("the engine's journal: {}", describe(opened));
        }
        let address = running.server.tcp_addr().context("the engine does not listen")?;
        let public_url = format!("redis://default:{password}@{address}/0");
        write_private(&data_dir.join("engine.url"), &public_url)?;
        let url = match &socket {
            Some(socket) => socket_url(socket, Some(&password))?,
            None => public_url,
        };
        Ok(Self { running, url, _lock: lock })
    }

    /// The address for our own processes, with the password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The address for other programs, if an engine was ever started in the data directory.
    pub(crate) fn known_url(data_dir: &Path) -> Option<String> {
        std::fs::read_to_string(data_dir.join("engine.url")).ok()
    }

    /// Stops the engine; everything is on disk afterwards.
    pub(crate) async fn stop(self) -> Result<()> {
        self.running.stop().await
    }
}

/// The content of a journal in words.
pub(crate) fn describe(opened: &Opened) -> String {
    let contents = &opened.contents;
    let mut text = match (contents.items, contents.records) {
        (0, 0) => "empty".to_owned(),
        (0, records) => format!("{records} records"),
        (items, records) => format!("a snapshot of {items} items and {records} records after it"),
    };
    if let Some(torn) = &contents.torn {
        text.push_str(&format!(
            "; a crash had left {} bytes half written at the end of {}, which were cut",
            torn.bytes, torn.file
        ));
        if torn.records > 0 {
            text.push_str(&format!(" with {} whole records behind them", torn.records));
        }
    }
    if !opened.set_aside.is_empty() {
        text.push_str(&format!("; kept aside: {}", opened.set_aside.join(", ")));
    }
    text
}

/// Locks the data directory for this process.
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

/// Writes a file that only the user can read: it holds the password.
fn write_private(path: &Path, content: &str) -> Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_with_odd_characters_and_a_password_becomes_a_url() {
        let url = socket_url(Path::new("/tmp/my data/50%.sock"), Some("a&b=c d")).unwrap();
        assert_eq!(url, "unix:///tmp/my%20data/50%25.sock?pass=a%26b%3Dc+d");
        assert_eq!(socket_url(Path::new("/run/x.sock"), None).unwrap(), "unix:///run/x.sock");
    }
}
