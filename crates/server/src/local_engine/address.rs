//! The address of the embedded engine: kept from start to start, because other programs have noted it.
//!
//! ```text
//!  ENGINE_PORT set ──────────────────────────────▶ that port ──┐
//!  else engine.url has one (of an earlier start) ▶ that port ──┼─ free? ──▶ listen, write engine.url
//!  else ─────────────────────────────────────────▶ a free one ─┘    └ no ─▶ the start fails with the reason
//! ```
//!
//! The engine never moves to another port by itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::settings::EngineAddress;

/// The first port that the system gives to outgoing connections, if it does not tell.
const FIRST_OUTGOING: u16 = 32_768;
/// A free port is looked for among so many below that one.
const PORTS: u16 = 12_000;
const TRIES: usize = 100;

/// Where the port comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Setting,
    EarlierStart,
    New,
}

/// The address and password of an engine that is about to start.
pub(super) struct Address {
    pub(super) socket: SocketAddr,
    pub(super) password: String,
    origin: Origin,
    /// The port of the last start, if it was another one.
    pub(super) former_port: Option<u16>,
    file: PathBuf,
}

/// The port and the password in `engine.url`.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    port: u16,
    password: Option<String>,
}

impl Address {
    /// Decides the address from the settings and from `file`, the `engine.url` of earlier starts. Fails
    /// if the port is in use.
    pub(super) fn decide(wanted: &EngineAddress, file: &Path) -> Result<Self> {
        let known = match read(file) {
            Ok(known) => known,
            // Nothing in the file is needed.
            Err(_) if wanted.port.is_some() && wanted.password.is_some() => None,
            Err(error) => return Err(error),
        };
        let known_port = known.as_ref().map(|known| known.port);
        let (origin, port) = match (wanted.port, known_port) {
            (Some(port), _) => (Origin::Setting, port),
            (None, Some(port)) => (Origin::EarlierStart, port),
            (None, None) => (Origin::New, free_port(wanted.host)),
        };
        let known_password = known.and_then(|known| known.password);
        let password = wanted.password.clone().or(known_password);
        let address = Self {
            socket: SocketAddr::new(wanted.host, port),
            password: password.unwrap_or_else(|| hex::encode(rand::random::<[u8; 24]>())),
            origin,
            former_port: known_port.filter(|known| *known != port),
            file: file.to_path_buf(),
        };
        // Before the journal is opened, so that a port in use changes nothing on disk.
        TcpListener::bind(address.socket).map_err(|error| address.cannot_listen(&error))?;
        Ok(address)
    }

    /// Why the engine cannot listen there, and what to do.
    pub(super) fn cannot_listen(&self, error: &io::Error) -> anyhow::Error {
        let (ip, port) = (self.socket.ip(), self.socket.port());
        if error.kind() != io::ErrorKind::AddrInUse {
            return anyhow!(
                "the embedded engine cannot listen on {}: {error}. Check ENGINE_HOST and ENGINE_PORT",
                self.socket
            );
        }
        let holder = format!("To see who holds it: ss -ltnp 'sport = :{port}'");
        match self.origin {
            Origin::EarlierStart => anyhow!(
                "port {port} on {ip}, where the embedded engine listened before, is in use by another \
                 program; perhaps a server on a copy of this data directory. {holder}. The port is noted in \
                 {file}, and other programs may call the engine there, so it does not move by itself. Stop \
                 the other program; or set ENGINE_PORT to another port and tell those who use {file}",
                file = self.file.display()
            ),
            Origin::Setting | Origin::New => anyhow!(
                "port {port} on {ip} is in use by another program (a Redis, or another Stampede?), so the \
                 embedded engine cannot listen there. {holder}. Stop it, or set ENGINE_PORT to another port"
            ),
        }
    }
}

/// The URL for programs on this machine and, if the host is not this machine alone, on others.
pub(super) fn url(socket: SocketAddr, password: &str) -> String {
    // An address that means all addresses is none to connect to.
    let ip = match socket.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let password = utf8_percent_encode(password, NON_ALPHANUMERIC);
    format!("redis://default:{password}@{}/0", SocketAddr::new(ip, socket.port()))
}

/// Reads `engine.url`; `None` if no engine has ever started in the data directory.
fn read(file: &Path) -> Result<Option<Known>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(unusable(file)),
    };
    match parse(text.trim()) {
        Some(known) => Ok(Some(known)),
        None => bail!("{}", unusable(file)),
    }
}

fn unusable(file: &Path) -> String {
    format!(
        "{} should hold the engine's address, redis://default:PASSWORD@HOST:PORT/0, but cannot be read as \
         one. Restore it; or remove it, and the engine gets a new port and password, which other programs \
         need to know (or set ENGINE_PORT and ENGINE_PASSWORD)",
        file.display()
    )
}

fn parse(text: &str) -> Option<Known> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "redis")?;
    let password = match url.password() {
        Some(encoded) => Some(percent_decode_str(encoded).decode_utf8().ok()?.into_owned()),
        None => None,
    };
    Some(Known { port: url.port().filter(|port| *port != 0)?, password })
}

/// A free port that the system does not give to outgoing connections: one of those could hold the port at
/// the next start.
fn free_port(host: IpAddr) -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let first = first.unwrap_or(FIRST_OUTGOING).max(PORTS + 1024);
    let mut candidates = (0..TRIES).map(|_| first - 1 - rand::random::<u16>() % PORTS);
    let is_free = |port: &u16| TcpListener::bind((host, *port)).is_ok();
    // 0 lets the system choose.
    candidates.find(is_free).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp_file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("engine.url");
        (folder, file)
    }

    #[test]
    fn a_url_reads_back_whatever_the_password_and_the_host_are() {
        for (host, shown) in [
            ("127.0.0.1", "@127.0.0.1:7000/0"),
            ("::1", "@[::1]:7000/0"),
            ("0.0.0.0", "@127.0.0.1:7000/0"),
            ("::", "@[::1]:7000/0"),
            ("10.1.2.3", "@10.1.2.3:7000/0"),
        ] {
            for password in ["simple", "p@ss/w:rd?#", "50%25 off", "näh\"'+&", "%"] {
                let url = url(SocketAddr::new(host.parse().unwrap(), 7000), password);
                assert!(url.ends_with(shown), "{url}");
                let known = Known { port: 7000, password: Some(password.to_owned()) };
                assert_eq!(parse(&url), Some(known), "{url}");
            }
        }
    }

    #[test]
    fn the_first_start_takes_a_free_port_and_later_ones_keep_it() {
        let (_folder, file) = temp_file();
        let wanted = EngineAddress::default();
        let first = Address::decide(&wanted, &file).unwrap();
        assert_ne!(first.socket.port(), 0);
        std::fs::write(&file, url(first.socket, &first.password)).unwrap();
        let again = Address::decide(&wanted, &file).unwrap();
        assert_eq!((again.socket, &again.password), (first.socket, &first.password));
        // A setting wins, and the change is told.
        let other = free_port(wanted.host);
        let moved = EngineAddress { port: Some(other), password: Some("x".into()), ..wanted };
        let moved = Address::decide(&moved, &file).unwrap();
        assert_eq!((moved.socket.port(), moved.password.as_str()), (other, "x"));
        assert_eq!(moved.former_port, Some(first.socket.port()));
    }

    #[test]
    fn a_port_of_an_earlier_start_that_is_in_use_fails_with_reason_and_remedy() {
        let (_folder, file) = temp_file();
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = holder.local_addr().unwrap().port();
        std::fs::write(&file, format!("redis://default:secret@127.0.0.1:{port}/0")).unwrap();
        let refused = Address::decide(&EngineAddress::default(), &file).map(drop).unwrap_err();
        let text = refused.to_string();
        for part in [
            &port.to_string(),
            "in use",
            "copy of this data directory",
            "set ENGINE_PORT",
            "ss -ltnp",
        ] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_replaced_silently() {
        let (_folder, file) = temp_file();
        for content in ["", "garbage", "redis://127.0.0.1/0", "http://127.0.0.1:7000"] {
            std::fs::write(&file, content).unwrap();
            let refused = Address::decide(&EngineAddress::default(), &file).map(drop).unwrap_err();
            assert!(refused.to_string().contains("engine.url"), "{refused}");
            let both = EngineAddress {
                port: Some(free_port(Ipv4Addr::LOCALHOST.into())),
                password: Some("x".into()),
                ..EngineAddress::default()
            };
            assert!(Address::decide(&both, &file).is_ok(), "{content}");
        }
    }
}
