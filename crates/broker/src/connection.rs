//! Connecting to Redis, and refusing one that would lose jobs.
//!
//! | file | holds |
//! |---|---|
//! | `link.rs` | a connection that mends itself |
//! | `listener.rs` | a connection that listens to channels |
//! | `official.rs` | the official crate's connection and its handles on queues |
//! | `sentinel.rs` | finding the present master, and following it |
//! | `tls.rs` | TLS on the way there |
//! | `check.rs` | what a server must be like |
//! | `state.rs` | whether Redis is there, for logs and health |

mod check;
mod link;
mod listener;
mod official;
mod sentinel;
mod state;
mod tls;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bullmq::options::{RedisConnectionOptions, TlsCerts};
use redis::aio::ConnectionManagerConfig;
use redis::cluster::ClusterClient;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo, RedisResult,
    TlsCertificates, cmd,
};
use serde::Serialize;

use crate::address::{Address, without_password};
use crate::admin::QueueNames;
use crate::names::{check_prefix, check_queue_name};
use crate::{BatchMirror, Channel, Error, Queue};

pub(crate) use check::{check_server, info_field};
pub(crate) use link::Link;
pub(crate) use listener::Listener;
pub(crate) use official::OfficialQueue;
pub use state::ConnectionState;
pub(crate) use state::Restarts;

/// Where Redis is.
#[derive(Clone, Default)]
pub struct Config {
    /// `redis://…`, `rediss://…`, `unix://…`, `redis-sentinel://…`, `redis-cluster://…` (`address.rs`).
    pub url: String,
    /// What all keys of queues begin with; BullMQ's own default is `bull`. In a Cluster it must have a
    /// hash tag, and the default is `{bull}`.
    pub prefix: Option<String>,
    /// For TLS.
    pub tls: TlsFiles,
    /// Largest payload of a job in bytes of JSON; 256 KB if it does not say. More is neither added nor run.
    pub max_payload: Option<usize>,
}

impl Config {
    /// BullMQ's default prefix, no certificates of our own.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { url, prefix, tls, max_payload } = self;
        let mut shown = f.debug_struct("Config");
        shown.field("url", &without_password(url)).field("prefix", prefix);
        shown.field("tls", tls).field("max_payload", max_payload).finish()
    }
}

/// Certificates in PEM files, where those that Mozilla trusts do not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who signed the server's certificate.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key, for servers that want to know who comes.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// A connection to Redis that mends itself. Cheap to clone; clones share the socket.
#[derive(Clone)]
pub struct Broker {
    link: Link,
    bull: official::Official,
    opener: Arc<Opener>,
    prefix: Arc<str>,
    shown_url: Arc<str>,
    max_payload: usize,
    state: state::Watched,
    told: Arc<Mutex<HashMap<&'static str, Instant>>>,
    names: QueueNames,
}

/// Sends a command that names no key to the server that has the queues: in a Cluster, their common hash
/// tag tells which.
async fn ask_home<T: FromRedisValue>(
    link: Link,
    prefix: &str,
    command: Cmd,
) -> Result<T, redis::RedisError> {
    let answer = match link {
        mut link @ Link::Single(_) => return command.query_async(&mut link).await,
        Link::Cluster(mut link) => {
            let home = Route::with_slot(Slot::for_key(prefix), SlotAddr::Master);
            let home = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(home));
            link.route_command(command, home).await?
        }
    };
    Ok(T::from_redis_value(answer)?)
}

/// A command that has no answer for this long has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What was sent must be acknowledged within this time. Locks are renewed after a third of their 15 s:
/// a connection that is dead then must be found out and replaced before they end.
const UNHEARD: Duration = Duration::from_secs(5);
/// A silent connection is probed after this long.
const PROBE_AFTER: Duration = Duration::from_secs(4);

/// Largest payload of a job, unless the configuration says otherwise.
const MAX_PAYLOAD: usize = 256 << 10;

impl Broker {
    /// Connects and checks that this Redis keeps jobs: `noeviction`, version 6.2 or newer, no replica.
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let shown_url: Arc<str> = without_password(&config.url).into();
        let opener = Opener::new(config, &shown_url).await?;
        let is_cluster = opener.is_cluster;
        let prefix = match &config.prefix {
            None if is_cluster => "{bull}",
            None => "bull",
            Some(prefix) => prefix.as_str(),
        };
        check_prefix(prefix, is_cluster)?;
        opener.check(&shown_url).await?;
        let link = opener
            .link(RESPONSE_TIMEOUT)
            .await
            .map_err(|error| Error::connecting(&shown_url, error))?;
        let prefix: Arc<str> = prefix.into();
        let bull = official::Official::connect(opener.bull.clone(), prefix.clone()).await?;
        let suspicions = opener.suspicions.clone();
        let state =
            state::Watched::start(link.clone(), prefix.clone(), shown_url.clone(), suspicions);
        let max_payload = config.max_payload.unwrap_or(MAX_PAYLOAD);
        Ok(Self {
            link,
            bull,
            opener: Arc::new(opener),
            prefix,
            shown_url,
            max_payload,
            state,
            told: Arc::default(),
            names: QueueNames::default(),
        })
    }

    /// A handle on a queue.
    pub async fn queue(&self, name: &str) -> Result<Queue, Error> {
        check_queue_name(name)?;
        self.names.use_one(name);
        Ok(Queue::new(self.clone(), self.bull.queue(name).await?))
    }

    /// Tells everyone who listens on a channel; several messages go in one round trip.
    pub async fn publish(
        &self,
        channel: Channel,
        messages: &[impl Serialize],
    ) -> Result<(), Error> {
        if messages.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        for message in messages {
            let text = serde_json::to_string(message).unwrap_or_default();
            pipe.publish(channel.as_str(), text).ignore();
        }
        Ok(pipe.query_async(&mut self.redis()).await?)
    }

    /// The state of batches for outside readers.
    pub fn batch_mirror(&self) -> BatchMirror {
        BatchMirror::new(self.redis())
    }

    /// Whether Redis answers now.
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask_home::<String>(cmd("PING")).await.map(drop)
    }

    /// Whether Redis answered when it was last looked at, and since when it does not.
    pub fn connection_state(&self) -> ConnectionState {
        self.state.now()
    }

    /// To be told when a call failed: perhaps Redis was restarted. Of a single server, the connection
    /// itself tells.
    pub(crate) fn suspect(&self) {
        self.opener.suspicions.raise();
    }

    /// Tells of something that may come a hundred times a second.
    pub(crate) fn once_a_minute(&self, what: &'static str, tell: impl FnOnce()) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(what).is_none_or(|last| last.elapsed() > Duration::from_secs(60)) {
            told.insert(what, Instant::now());
            tell();
        }
    }

    /// Queues that were found or used of late.
    pub(crate) fn names(&self) -> &QueueNames {
        &self.names
    }

    /// For how long jobs should not be taken, because Redis may take some that run for waiting ones.
    pub(crate) fn doubt(&self) -> Option<Duration> {
        self.state.doubt()
    }

    /// Tells when Redis is another server than before, which may have forgotten what it last heard.
    pub(crate) fn restarts(&self) -> Restarts {
        self.state.restarts()
    }

    /// Whether this is a Cluster, in which a publisher is not told how many listen.
    pub(crate) fn max_payload(&self) -> usize {
        self.max_payload
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.opener.is_cluster
    }

    /// Where this is connected to, without the password.
    pub fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// What all keys of queues begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The official crate's connection.
    pub(crate) fn bull(&self) -> bullmq::redis_connection::RedisConnection {
        self.bull.connection()
    }

    pub(crate) fn redis(&self) -> Link {
        self.link.clone()
    }

    /// Sends a command that names no key to the server that has the queues.
    pub(crate) async fn ask_home<T: FromRedisValue>(&self, command: Cmd) -> Result<T, Error> {
        Ok(ask_home(self.redis(), &self.prefix, command).await?)
    }

    /// A connection of its own for listening to channels.
    pub(crate) async fn listener(&self) -> Result<Listener, Error> {
        // In a Cluster every node hears what is published at any of them.
        let mut last = None;
        for (_, client) in &self.opener.nodes {
            match tokio::time::timeout(CONNECT_TIMEOUT, client.get_async_pubsub()).await {
                Ok(Ok(connection)) => return Ok(Listener::new(connection)),
                Ok(Err(error)) => last = Some(error.into()),
                Err(_) => last = Some(no_answer(&self.shown_url)),
            }
        }
        Err(last.unwrap_or_else(|| no_answer(&self.shown_url)))
    }

    /// A connection of its own for blocking commands of up to `block`, which others see under this name.
    pub(crate) async fn blocking_connection(
        &self,
        block: Duration,
        name: &str,
    ) -> Result<Link, Error> {
        let link = self.opener.link(block + RESPONSE_TIMEOUT).await?;
        let mut told = cmd("CLIENT");
        told.arg("SETNAME").arg(name);
        // It works as well without a name, where that is not allowed.
        if let Err(error) = ask_home::<()>(link.clone(), &self.prefix, told).await {
            tracing::debug!(%error, name, "cannot give a connection its name");
        }
        Ok(link)
    }
}

/// What new connections are made with.
struct Opener {
    /// URL and client of one server, or of each node of a Cluster that the address names.
    nodes: Vec<(String, Client)>,
    is_cluster: bool,
    bull: RedisConnectionOptions,
    tls: Option<TlsCertificates>,
    suspicions: state::Suspicions,
    /// Lives as long as connections may be made through it.
    _relay: Option<sentinel::Relay>,
}

impl Opener {
    async fn new(config: &Config, shown_url: &str) -> Result<Self, Error> {
        // The official crate takes certificates for a wish to have TLS.
        let secure = config.url.starts_with("rediss");
        if !secure && config.tls != TlsFiles::default() {
            // Password and payloads would go over the wire for everybody to read.
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
                let started = sentinel::Relay::start(&address, tls.as_ref(), shown_url).await?;
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
        let suspicions = state::Suspicions::default();
        Ok(Self { nodes, is_cluster, bull, tls, suspicions, _relay: relay })
    }

    /// Looks at the servers over plain connections, which fail at once where managed ones would keep
    /// trying. Of a Cluster's nodes, one that is there is enough.
    async fn check(&self, shown_url: &str) -> Result<(), Error> {
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
                    check::check_kind(shown_url, &info, self.is_cluster)?;
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

    async fn link(&self, response_timeout: Duration) -> RedisResult<Link> {
        if self.is_cluster {
            let mut builder =
                ClusterClient::builder(self.nodes.iter().map(|(url, _)| url.as_str()))
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(response_timeout)
                    .tcp_settings(tcp_settings())
                    // What may be sent again, `link.rs` knows.
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
        Ok(Link::Single(link::Mending::open(client, config, suspicions).await?))
    }
}

fn no_answer(shown_url: &str) -> Error {
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

/// A peer that vanished without a word (power, firewall) answers no probes; without them the connection
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

/// The same for a connection that is not the `redis` crate's.
fn probe(stream: &tokio::net::TcpStream) {
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
