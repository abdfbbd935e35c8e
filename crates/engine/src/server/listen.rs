//! Where the server listens, and that it does not listen where strangers reach it.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};

use super::Config;
use super::event_loop::Listener;

/// Files that are not clients: journal, polls, listeners, whatever else the process has open.
const OTHER_FILES: usize = 128;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// There would be no way to reach it.
    #[error("the engine needs an address or a socket file to listen on, and at most 32 addresses")]
    Nowhere,
    /// Other machines could reach it without a password.
    #[error(
        "the engine does not listen on {0} without a password: other machines may reach it; set a \
         password, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The system refused.
    #[error("the engine cannot listen on {place}: {source}")]
    Refused {
        /// The address or file.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody answers on the socket file.
    #[error("the engine cannot listen on {0}: another process does")]
    Taken(String),
}

/// More listeners than anybody needs; event loops number them.
const MAX_ADDRESSES: usize = 32;

/// Where to listen, checked but not begun.
pub(super) struct Plan {
    tcp: Vec<SocketAddr>,
    unix: Option<PathBuf>,
}

impl Plan {
    pub(super) fn new(config: &Config) -> Result<Self, ListenError> {
        if (config.tcp.is_empty() && config.unix.is_none()) || config.tcp.len() > MAX_ADDRESSES {
            return Err(ListenError::Nowhere);
        }
        let open = config.tcp.iter().find(|address| !address.ip().is_loopback());
        match open {
            Some(address) if config.password.is_none() => Err(ListenError::Open(*address)),
            _ => Ok(Self { tcp: config.tcp.clone(), unix: config.unix.clone() }),
        }
    }

    pub(super) fn bind(self) -> Result<Bound, ListenError> {
        let refused = |place: String| move |source| ListenError::Refused { place, source };
        let mut bound = Bound { tcp: Vec::new(), unix: None };
        for address in self.tcp {
            let listen = || {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok((listener.local_addr()?, listener))
            };
            bound.tcp.push(listen().map_err(refused(address.to_string()))?);
        }
        if let Some(path) = self.unix {
            let place = path.display().to_string();
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                return Err(ListenError::Taken(place));
            }
            let listener = bind_file(&path).map_err(refused(place))?;
            bound.unix = Some((path, listener));
        }
        Ok(bound)
    }
}

fn bind_file(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    // Nobody answers there: it is left over from a process that was killed.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Where the server listens; the socket file is removed with it.
#[derive(Debug)]
pub(super) struct Bound {
    tcp: Vec<(SocketAddr, std::net::TcpListener)>,
    unix: Option<(PathBuf, std::os::unix::net::UnixListener)>,
}

impl Bound {
    pub(super) fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp.first().map(|(address, _)| *address)
    }

    pub(super) fn unix_path(&self) -> Option<&Path> {
        self.unix.as_ref().map(|(path, _)| path.as_path())
    }

    /// The listeners, for an event loop.
    pub(super) fn listeners(&self) -> io::Result<Vec<Listener>> {
        let mut listeners = Vec::new();
        for (_, listener) in &self.tcp {
            listeners.push(Listener::Tcp(mio::net::TcpListener::from_std(listener.try_clone()?)));
        }
        if let Some((_, listener)) = &self.unix {
            listeners.push(Listener::Unix(mio::net::UnixListener::from_std(listener.try_clone()?)));
        }
        Ok(listeners)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.unix {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes room for so many clients; returns how many there is room for.
pub(super) fn raise_file_limit(clients: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = (clients + OTHER_FILES) as u64;
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(current).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES).max(1);
    if most < clients {
        tracing::warn!(most, wanted = clients, "there are not enough files for so many clients");
    }
    clients.min(most)
}
