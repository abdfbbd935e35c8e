//! Connecting to Redis, and refusing one that would lose jobs.
//!
//! | file | holds |
//! |---|---|
//! | `link.rs` | a connection that mends itself |
//! | `listener.rs` | a connection that listens to channels |
//! | `official.rs` | the official crate's connection and its handles on queues |
//! | `opener.rs` | how new connections are made |
//! | `sentinel.rs` | finding the present master, and following it |
//! | `tls.rs` | TLS on the way there |
//! | `check.rs` | what a server must be like |
//! | `state.rs` | whether Redis is there, for logs and health |

mod check;
mod link;
mod listener;
mod official;
mod opener;
mod sentinel;
mod state;
mod tls;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use redis::{Cmd, FromRedisValue, cmd};

use crate::address::without_password;
use crate::names::{check_prefix, check_queue_name};
use crate::queue_names::QueueNames;
use crate::{Error, Queue, Snapshots};

pub(crate) use check::{check_server, info_field};
pub(crate) use link::{Link, is_stuck};
pub(crate) use listener::Listener;
pub(crate) use official::OfficialQueue;
pub(crate) use opener::open;
use opener::{Opener, no_answer};
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

    /// Publishes messages on a channel, all in one round trip. Best effort, as pub/sub is.
    pub async fn publish(&self, channel: &str, payloads: &[String]) -> Result<(), Error> {
        if payloads.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        for payload in payloads {
            pipe.publish(channel, payload).ignore();
        }
        Ok(pipe.query_async(&mut self.redis()).await?)
    }

    /// The newest states of records, for readers outside.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(self.redis())
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
