//! Listening addresses, and the rule that only loopback may do without a password.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Config;
use super::event_loop::Listener;

/// File descriptors reserved for the journal, polls, listeners and the embedding program.
const OTHER_FILES: usize = 128;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// No address is given, or more than 32.
    #[error("the engine needs an address or a socket file to listen on, and at most 32 addresses")]
    Nowhere,
    /// The address is reachable from other machines and no password is set.
    #[error(
        "the engine does not listen on {0} without a password: other machines may reach it; set a \
         password, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The operating system refused to bind.
    #[error("the engine cannot listen on {address}: {source}")]
    Refused {
        /// The address or socket file.
        address: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another process listens on the socket file.
    #[error("the engine cannot listen on {0}: another process does")]
    Taken(String),
}

/// Connections that may wait to be accepted on the socket file; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// The limit of listening addresses: poll tokens are reserved for them.
const MAX_ADDRESSES: usize = 32;

/// Addresses that are checked and not bound yet.
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
        let refused = |address: String| move |source| ListenError::Refused { address, source };
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
            let address = path.display().to_string();
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                return Err(ListenError::Taken(address));
            }
            let listener = bind_file(&path).map_err(refused(address))?;
            bound.unix = Some((path, listener));
        }
        Ok(bound)
    }
}

fn bind_file(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    // No process answers on the socket file: a killed process left it behind.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = bind_private(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Binds a socket file that only its owner may ever connect to: a socket that gets its permissions
/// after the bind is open to others in between.
fn bind_private(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Linux gives the file the permissions of the socket.
    let file = std::fs::File::from(OwnedFd::from(socket));
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The bound addresses; dropping them removes the socket file.
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

    /// Clones of the listeners, for an event loop.
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

/// Raises the limit of open files for `clients` clients; returns how many clients it allows.
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
        tracing::warn!(
            most,
            wanted = clients,
            "the limit of open files allows fewer clients; raise it (ulimit -n)"
        );
    }
    clients.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_file_is_private_from_the_moment_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private.sock");
        let listener = bind_private(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
        drop(client);
    }
}
