//! New connections: where they lead, with which certificates, and what a server must be like.

use std::path::PathBuf;
use std::time::Duration;

use bullmq::options::{RedisConnectionOptions, TlsCerts};
use redis::aio::ConnectionManagerConfig;
use redis::cluster::ClusterClient;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, RedisResult, TlsCertificates, cmd};

use super::check::{check_kind, check_server};
use super::connection::{Link, Reconnecting};
use super::sentinel::Relay;
use super::state::Suspicions;
use super::{CONNECT_TIMEOUT, TlsFiles};
use crate::link::address::Address;
use crate::{Config, Error};

/// Sent bytes must be acknowledged within this time. Locks are renewed after a third of their 15 s: a connection that
/// is dead then must be found and replaced before they expire.
const UNHEARD: Duration = Duration::from_secs(5);

/// A silent connection is probed after this long.
const PROBE_AFTER: Duration = Duration::from_secs(4);

/// Makes new connections.
pub(crate) struct Opener {
    /// URL and client of one server, or of each node of a Cluster that the address names.
    pub(crate) nodes: Vec<(String, Client)>,
    pub(crate) is_cluster: bool,
    pub(crate) bull: RedisConnectionOptions,
    tls: Option<TlsCertificates>,
    pub(crate) suspicions: Suspicions,
    /// Lives as long as connections may be made through it.
    _relay: Option<Relay>,
}

impl Opener {
    pub(crate) async fn new(config: &Config, shown_url: &str) -> Result<Self, Error> {
        // The official crate takes certificates for a wish to have TLS.
        let secure = config.url.starts_with("rediss");
        if !secure && config.tls != TlsFiles::default() {
            // Password and payloads would be sent in the clear.
            let reason = "REDIS_TLS_CA, REDIS_TLS_CERT or REDIS_TLS_KEY is set, but this address is not one \
                          for TLS; those begin with rediss"
                .to_owned();
            return Err(Error::InvalidUrl { url: shown_url.to_owned(), reason });
        }
        let mut tls = if secure { read_certificates(&config.tls)? } else { None };
        let invalid = |error: redis::RedisError| Error::InvalidUrl {
            url: shown_url.to_owned(),
            reason: error.to_string(),
        };
        let address = Address::parse(&config.url)?;
        let is_cluster = matches!(address, Address::Cluster { .. });
        let mut relay = None;
        let urls = match address {
            Address::Single { url } => vec![url],
            Address::Sentinel(address) => {
                // From here on it is the relay that speaks TLS.
                let tls = tls.take();
                let started = Relay::start(&address, tls.as_ref(), shown_url).await?;
                vec![relay.insert(started).url().to_owned()]
            }
            Address::Cluster { nodes } => nodes,
        };
        let mut bull = RedisConnectionOptions::new();
        if let Some(tls) = &tls {
            bull = bull.tls_certs(TlsCerts {
                root_cert: tls.root_cert.clone(),
                client_cert: tls.client_tls.as_ref().map(|own| own.client_cert.clone()),
                client_key: tls.client_tls.as_ref().map(|own| own.client_key.clone()),
            });
        }
        bull = if is_cluster { bull.cluster_nodes(&urls) } else { bull.url(&urls[0]) };
        let client = |url: String| {
            let client = open(url.as_str(), tls.clone()).map_err(invalid)?;
            Ok((url, client))
        };
        let nodes = urls.into_iter().map(client).collect::<Result<Vec<_>, Error>>()?;
        let suspicions = Suspicions::default();
        Ok(Self { nodes, is_cluster, bull, tls, suspicions, _relay: relay })
    }

    /// Looks at the servers over plain connections, which fail at once where managed ones would keep
    /// trying. Of a Cluster's nodes, one that is there is enough.
    pub(crate) async fn check(&self, shown_url: &str) -> Result<(), Error> {
        let mut found = Err(no_answer(shown_url));
        for (_, client) in &self.nodes {
            let patient = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_TIMEOUT))
                .set_response_timeout(Some(CONNECT_TIMEOUT));
            let probe = client.get_multiplexed_async_connection_with_config(&patient);
            let answer = match tokio::time::timeout(CONNECT_TIMEOUT, probe).await {
                Err(_) => Err(no_answer(shown_url)),
                Ok(Err(error)) => Err(Error::connecting(shown_url, error)),
                Ok(Ok(mut probe)) => cmd("INFO")
                    .query_async::<String>(&mut probe)
                    .await
                    .map_err(|error| Error::connecting(shown_url, error)),
            };
            match answer {
                Ok(info) => {
                    check_kind(shown_url, &info, self.is_cluster)?;
                    match check_server(shown_url, &info) {
                        // A Cluster's replicas know its masters.
                        Err(Error::ReadOnlyReplica { .. }) if self.is_cluster => {}
                        checked => checked?,
                    }
                    found = Ok(());
                }
                Err(error) if found.is_err() => found = Err(error),
                Err(_) => {}
            }
        }
        found
    }

    pub(crate) async fn link(&self, response_timeout: Duration) -> RedisResult<Link> {
        if self.is_cluster {
            let mut builder =
                ClusterClient::builder(self.nodes.iter().map(|(url, _)| url.as_str()))
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(response_timeout)
                    .tcp_settings(tcp_settings())
                    // What may be sent again, `connection.rs` knows.
                    .retries(0);
            if let Some(tls) = &self.tls {
                builder = builder.certs(tls.clone());
            }
            return Ok(Link::Cluster(builder.build()?.get_async_connection().await?));
        }
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(6)
            .set_min_delay(Duration::from_millis(50))
            // Chance may double it; jobs that run must be taken back well within `state::TAKING_BACK`.
            .set_max_delay(Duration::from_millis(400))
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(response_timeout));
        let client = self.nodes[0].1.clone();
        let suspicions = self.suspicions.clone();
        Ok(Link::Single(Reconnecting::open(client, config, suspicions).await?))
    }
}

pub(crate) fn no_answer(shown_url: &str) -> Error {
    let reason = format!("no answer within {CONNECT_TIMEOUT:?}");
    Error::Unreachable { url: shown_url.to_owned(), reason }
}

fn read_certificates(files: &TlsFiles) -> Result<Option<TlsCertificates>, Error> {
    let read = |path: &PathBuf| {
        std::fs::read(path)
            .map_err(|error| Error::Certificate { path: path.clone(), reason: error.to_string() })
    };
    if *files == TlsFiles::default() {
        return Ok(None);
    }
    let client_tls = match &files.own {
        None => None,
        Some((cert, key)) => {
            Some(redis::ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? })
        }
    };
    let root_cert = files.authority.as_ref().map(read).transpose()?;
    Ok(Some(TlsCertificates { client_tls, root_cert }))
}

/// TCP probes: a peer that disappeared (power cut, firewall) does not answer them. Without probes the connection
/// would stay, and every command on it would time out.
fn tcp_settings() -> TcpSettings {
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(probes());
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(UNHEARD);
    tcp
}

fn probes() -> TcpKeepalive {
    TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 2)
}

/// Sets these probes on a connection that is not the `redis` crate's.
pub(crate) fn probe(stream: &tokio::net::TcpStream) {
    let socket = SockRef::from(stream);
    // A connection that cannot be probed is still one.
    let _ = socket.set_tcp_keepalive(&probes());
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(UNHEARD));
}

pub(crate) fn open(
    url: impl IntoConnectionInfo,
    tls: Option<TlsCertificates>,
) -> RedisResult<Client> {
    let info = url.into_connection_info()?.set_tcp_settings(tcp_settings());
    match tls {
        Some(tls) if matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(info, tls)
        }
        _ => Client::open(info),
    }
}
