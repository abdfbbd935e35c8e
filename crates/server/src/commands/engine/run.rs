//! `stampede engine run`: runs the engine until SIGTERM, SIGINT or SHUTDOWN.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use stampede_engine::server::{Config, Server};
use tokio_util::sync::CancellationToken;

use crate::cli::EngineRun;
use crate::commands::signals::stop_on_signal;
use crate::local_engine::Running;
use crate::settings::Log;
use crate::{local_engine, logging};

const DEFAULT_PORT: u16 = 6379;

pub(super) async fn run(log: &Log, default_dir: PathBuf, options: EngineRun) -> Result<()> {
    logging::start(log);
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let config = config(default_dir, &options)?;
    for address in &config.tcp {
        must_be_free(*address)?;
    }
    let dir = config.dir.clone();
    let running = tokio::select! {
        running = Running::start(config, stop.clone()) => running.map_err(|error| anyhow!("{error}"))?,
        () = stop.cancelled() => return Ok(()),
    };
    greet(&running.server, &options, dir.as_deref());
    stop.cancelled().await;
    tracing::info!("stopping: clients are disconnected, the journal is synced");
    running.stop().await?;
    tracing::info!("stopped");
    Ok(())
}

fn config(default_dir: PathBuf, options: &EngineRun) -> Result<Config> {
    let bind = options.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let only_socket =
        options.port.is_none() && options.bind.is_none() && options.unixsocket.is_some();
    let password = options.password.clone().filter(|password| !password.is_empty());
    if !only_socket && !bind.is_loopback() && password.is_none() {
        bail!(
            "on {bind} everybody who reaches this machine could read and change all jobs. Set a password \
             (variable ENGINE_PASSWORD), or listen on --bind 127.0.0.1"
        );
    }
    let port = options.port.unwrap_or(DEFAULT_PORT);
    let choice = if options.bind.is_none() { Choice::Ours } else { Choice::Theirs };
    Ok(Config {
        tcp: if only_socket { Vec::new() } else { addresses(bind, port, choice) },
        unix: options.unixsocket.clone(),
        password,
        dir: (!options.in_memory).then(|| options.dir.clone().unwrap_or(default_dir)),
        journal: local_engine::journal_config(options.fsync),
        max_clients: options.maxclients,
        ..Config::default()
    })
}

/// Checks the addresses before the journal is opened, so that a mistyped port changes nothing on disk.
fn must_be_free(address: SocketAddr) -> Result<()> {
    let Err(error) = std::net::TcpListener::bind(address) else { return Ok(()) };
    match error.kind() {
        std::io::ErrorKind::AddrInUse => bail!(
            "port {} on {} is in use by another program (a Redis?). Stop it, or choose another --port",
            address.port(),
            address.ip()
        ),
        _ => bail!("cannot listen on {address}: {error}. Check --bind and --port"),
    }
}

/// Whether the operator has chosen the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Ours,
    Theirs,
}

/// The addresses to listen on. The default is loopback of IPv4 and, where it exists, of IPv6: `localhost` may
/// mean either.
fn addresses(bind: IpAddr, port: u16, choice: Choice) -> Vec<SocketAddr> {
    let second = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
    let both = choice == Choice::Ours && port != 0 && std::net::TcpListener::bind(second).is_ok();
    [SocketAddr::new(bind, port)].into_iter().chain(both.then_some(second)).collect()
}

/// Prints that clients can connect, and the addresses.
fn greet(server: &Server, options: &EngineRun, dir: Option<&Path>) {
    let text = banner(server, options, dir);
    // One write; that nobody reads it is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn banner(server: &Server, options: &EngineRun, dir: Option<&Path>) -> String {
    let password = if options.password.is_some() { " (with the password)" } else { "" };
    let mut lines = vec![format!("The Stampede engine {} is running", env!("CARGO_PKG_VERSION"))];
    if let Some(address) = server.tcp_addr() {
        lines.push(format!("Listens     redis://{address}{password}"));
    }
    if let Some(socket) = server.unix_path() {
        lines.push(format!("Socket      unix://{}{password}", socket.display()));
    }
    match dir {
        Some(dir) => {
            let found = server.opened().map_or("empty".to_owned(), local_engine::describe);
            let (dir, fsync) = (dir.display(), options.fsync.as_str());
            lines.push(format!("Journal     {dir}, synced {fsync}"));
            lines.push(format!("            {found}, read in {:.2?}", server.replay_time()));
        }
        None => lines.push("Journal     none: everything is gone at the end".to_owned()),
    }
    lines.push("Stop        Ctrl-C or SIGTERM".to_owned());
    format!("\n  {}\n\n", lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bind: Option<&str>, port: Option<u16>, socket: Option<&str>) -> EngineRun {
        EngineRun {
            port,
            bind: bind.map(|bind| bind.parse().unwrap()),
            unixsocket: socket.map(PathBuf::from),
            dir: None,
            in_memory: false,
            fsync: Default::default(),
            password: None,
            maxclients: 100,
        }
    }

    #[test]
    fn it_listens_on_loopback_unless_told_otherwise() {
        for (port, socket, wanted) in [
            (None, None, Some("127.0.0.1:6379")),
            (Some(7000), None, Some("127.0.0.1:7000")),
            (None, Some("/tmp/s"), None),
            (Some(7000), Some("/tmp/s"), Some("127.0.0.1:7000")),
        ] {
            let config = config("d".into(), &options(None, port, socket)).unwrap();
            let listens = config.tcp.first().map(ToString::to_string);
            assert_eq!(listens.as_deref(), wanted);
            assert_eq!(config.dir.as_deref(), Some(Path::new("d")));
        }
    }

    #[test]
    fn an_open_port_needs_a_password() {
        let mut options = options(Some("0.0.0.0"), Some(7000), None);
        let refused = config("d".into(), &options).map(drop).unwrap_err().to_string();
        assert!(refused.contains("ENGINE_PASSWORD"), "{refused}");
        options.password = Some("secret".into());
        assert!(config("d".into(), &options).is_ok());
    }
}
