//! A connection to an address that may be reached.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::address::NOT_PUBLIC;
use crate::error::{Error, Stage};
use crate::guard::AllowedAddresses;
use crate::tls::Tls;

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;

/// Connects to hosts that others choose.
#[derive(Default)]
pub struct Dialer {
    allowed: AllowedAddresses,
    tls: Tls,
}

impl Dialer {
    /// Reaches public addresses and those that are allowed besides.
    pub fn new(allowed: AllowedAddresses) -> Self {
        Self { allowed, tls: Tls::default() }
    }

    /// The addresses that may be reached besides public ones.
    pub fn allowed(&self) -> &AllowedAddresses {
        &self.allowed
    }

    /// Connects to the first address of a host that may be reached and answers. Small writes leave at once (`TCP_NODELAY`).
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        within: Duration,
    ) -> Result<TcpStream, Error> {
        match timeout(within, self.try_each(host, port, within)).await {
            Ok(stream) => stream,
            Err(_) => {
                Err(Error::not_sent(Stage::Connect, format!("no connection within {within:?}")))
            }
        }
    }

    async fn try_each(&self, host: &str, port: u16, within: Duration) -> Result<TcpStream, Error> {
        let unknown =
            |_| Error::not_sent(Stage::Name, "the name of the host cannot be resolved".to_owned());
        let found: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(unknown)?.collect();
        let reached = found.iter().filter(|address| self.allowed.reach(address.ip()));
        let reached: Vec<&SocketAddr> = reached.take(MOST_ADDRESSES).collect();
        if reached.is_empty() {
            tracing::debug!(host, ?found, "a host leads to addresses that are not public");
            return Err(Error::not_sent(Stage::Address, NOT_PUBLIC));
        }
        // An address that does not answer leaves time for the next one.
        let patience = within / reached.len() as u32;
        let mut last = "no connection".to_owned();
        for address in reached {
            match timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // A socket without it works, only slower.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = format!("no connection: {}", error.kind()),
                Err(_) => last = format!("no connection within {patience:?}"),
            }
        }
        Err(Error::not_sent(Stage::Connect, last))
    }

    /// Secures a connection: the certificate must be that of the host.
    pub async fn secure(
        &self,
        stream: TcpStream,
        host: &str,
        until: Instant,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let told = |reason: String| Error::not_sent(Stage::Tls, format!("TLS: {reason}"));
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| told(error.to_string()))?;
        let connector = self.tls.connector().await;
        match timeout_at(until, connector.connect(name, stream)).await {
            Ok(stream) => stream.map_err(|error| told(error.to_string())),
            Err(_) => Err(told("the handshake takes too long".to_owned())),
        }
    }
}
