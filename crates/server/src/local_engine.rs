//! The embedded engine in the server's own process, used when no Redis is set.
//!
//! ```text
//!  DATA_DIR/stampede.lock   locked by the server that uses this data directory
//!           engine/         the journal (its own lock is inside)
//!           engine.sock     where the API and the worker processes connect
//!           engine.url      the address for other programs, with the password; private to the user
//! ```
//!
//! `local_engine/address.rs` says which address that is.
//!
//! The engine starts before and stops after everything that uses it. When the process is killed, the
//! kernel frees the lock, and the next start replays the journal.

mod address;
mod private_file;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use stampede_engine::{
    Config, Fsync, JournalConfig, ListenError, Opened, Server, StartError, create_dir_durably,
};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::address::Address;
use crate::cli::FsyncArg;
use crate::settings::EngineAddress;

/// The file in a data directory with the engine's address for other programs.
const URL_FILE: &str = "engine.url";

/// Longest path of a unix socket in bytes, with the zero at its end.
const SOCKET_PATH: usize = 108;

/// The journal's folder in a data directory.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("engine")
}

/// The journal's settings for a policy.
pub(crate) fn journal_config(fsync: FsyncArg) -> JournalConfig {
    let fsync = match fsync {
        FsyncArg::Always => Fsync::Always,
        FsyncArg::Everysec => Fsync::EverySec,
        FsyncArg::Never => Fsync::Never,
    };
    JournalConfig { fsync, ..JournalConfig::default() }
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
        wanted: &EngineAddress,
        fsync: FsyncArg,
        stop: CancellationToken,
    ) -> Result<Self> {
        make_data_dir(data_dir)?;
        let lock = lock(data_dir)?;
        let url_file = data_dir.join(URL_FILE);
        let address = Address::decide(wanted, &url_file)?;
        let password = &address.password;
        let socket = std::path::absolute(data_dir.join("engine.sock"))?;
        let socket = Some(socket).filter(|path| path.as_os_str().len() < SOCKET_PATH);
        let config = Config {
            tcp: vec![address.socket],
            unix: socket.clone(),
            password: Some(password.clone()),
            dir: Some(folder(data_dir)),
            journal: journal_config(fsync),
            ..Config::default()
        };
        let running = Running::start(config, stop).await.map_err(|error| match &error {
            StartError::Listen(ListenError::Refused { address: place, source })
                if *place == address.socket.to_string() =>
            {
                address.cannot_listen(source)
            }
            _ => anyhow!("the embedded engine does not start: {error}"),
        })?;
        if let Some(opened) = running.server.opened() {
            tracing::info!("the engine's journal: {}", describe(opened));
        }
        let listens = running.server.tcp_addr().context("the engine does not listen")?;
        if let Some(former) = address.former_port {
            let port = listens.port();
            tracing::warn!(
                "the engine listens on port {port} now, not {former}: programs with the old address need the one in {}",
                url_file.display()
            );
        }
        let public_url = address::url(listens, password);
        private_file::write(&url_file, &public_url)
            .with_context(|| format!("cannot write {}", url_file.display()))?;
        let url = match &socket {
            Some(socket) => socket_url(socket, Some(password))?,
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
        std::fs::read_to_string(data_dir.join(URL_FILE)).ok()
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

/// Makes the data directory; it survives a power cut.
pub(crate) fn make_data_dir(data_dir: &Path) -> Result<()> {
    create_dir_durably(data_dir).with_context(|| {
        format!("cannot make the folder {}. Check DATA_DIR and its permissions", data_dir.display())
    })
}

/// Fails if the engine could not listen where the settings and earlier starts want it.
pub(crate) fn check_address(data_dir: &Path, wanted: &EngineAddress) -> Result<()> {
    Address::decide(wanted, &data_dir.join(URL_FILE)).map(drop)
}

/// Locks the data directory for this process.
fn lock(data_dir: &Path) -> Result<File> {
    let path = data_dir.join("stampede.lock");
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {
            let noted = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            noted.with_context(|| format!("cannot write {}", path.display()))?;
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
