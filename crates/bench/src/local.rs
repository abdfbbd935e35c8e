//! What all measurements need on this machine: a free port, socket addresses, an environment without
//! settings, and signals.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Result, anyhow};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

/// A port of this machine that no program uses at this moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The address of a unix socket as a URL.
pub(crate) fn socket_url(socket: &Path) -> Result<String> {
    let file = Url::from_file_path(socket)
        .map_err(|()| anyhow!("{} is not a path for a socket", socket.display()))?;
    Ok(format!("unix://{}", file.path()))
}

/// Removes the settings of the caller: a benchmark must not touch the caller's database.
pub(crate) fn without_settings(command: &mut Command) {
    command.env_clear();
    for name in ["PATH", "HOME", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// Returns at SIGTERM or SIGINT.
pub(crate) async fn interrupted() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
