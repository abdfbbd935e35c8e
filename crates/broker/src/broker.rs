//! The broker: one connection to Redis, and the way to queues, limits, channels and snapshots.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use redis::{Cmd, FromRedisValue, cmd};

use crate::link::address::without_password;
use crate::link::{
    CONNECT_TIMEOUT, ConnectionState, Link, Listener, Official, Opener, RESPONSE_TIMEOUT, Restarts,
    TlsFiles, Watched, ask_home, no_answer,
};
use crate::queue::limit_waits::LimitWaits;
use crate::queue::names::{check_prefix, check_queue_name};
use crate::queue::queue_names::QueueNames;
use crate::{Error, Queue, Snapshots};

/// Largest payload of a job, unless the configuration says otherwise.
const MAX_PAYLOAD: usize = 256 << 10;

/// Where Redis is.
#[derive(Clone, Default)]
pub struct Config {
    /// `redis://…`, `rediss://…`, `unix://…`, `redis-sentinel://…`, `redis-cluster://…` (`link/address.rs`).
    pub url: String,
    /// The beginning of all keys of queues; BullMQ's own default is `bull`. In a Cluster it must have a
    /// hash tag, and the default is `{bull}`.
    pub prefix: Option<String>,
    /// For TLS.
    pub tls: TlsFiles,
    /// Largest payload of a job in bytes of JSON; 256 KB by default. Larger ones are neither added nor run.
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

/// A connection to Redis that reconnects by itself. Cheap to clone; clones share the socket.
#[derive(Clone)]
pub struct Broker {
    link: Link,
    bull: Official,
    opener: Arc<Opener>,
    prefix: Arc<str>,
    shown_url: Arc<str>,
    max_payload: usize,
    state: Watched,
    /// When each frequent event was last logged.
    logged: Arc<Mutex<HashMap<&'static str, Instant>>>,
    names: QueueNames,
    waits: LimitWaits,
}

impl Broker {
    /// Connects and checks that this Redis keeps jobs: `noeviction`, version 6.2 or newer, no replica.
    ///
    /// This future and those of other long ways are boxed: they are compiled here, once, and not in every crate that
    /// awaits them.
    pub fn connect(config: &Config) -> BoxFuture<'_, Result<Self, Error>> {
        Box::pin(Self::connect_and_check(config))
    }

    async fn connect_and_check(config: &Config) -> Result<Self, Error> {
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
        let bull = Official::connect(opener.bull.clone(), prefix.clone()).await?;
        let suspicions = opener.suspicions.clone();
        let state = Watched::start(link.clone(), prefix.clone(), shown_url.clone(), suspicions);
        let max_payload = config.max_payload.unwrap_or(MAX_PAYLOAD);
        Ok(Self {
            link,
            bull,
            opener: Arc::new(opener),
            prefix,
            shown_url,
            max_payload,
            state,
            logged: Arc::default(),
            names: QueueNames::default(),
            waits: LimitWaits::default(),
        })
    }

    /// A handle on a queue.
    pub fn queue<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Queue, Error>> {
        Box::pin(async move {
            check_queue_name(name)?;
            self.names.use_one(name);
            Ok(Queue::new(self.clone(), self.bull.queue(name).await?))
        })
    }

    /// Publishes messages on a channel, all of them in one round trip. Best effort: subscribers that are not
    /// connected miss them.
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

    /// States of things, written for outside readers.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(self.redis())
    }

    /// Whether Redis answers now.
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask_home::<String>(cmd("PING")).await.map(drop)
    }

    /// Whether Redis answered when it was last asked, and since when it does not.
    pub fn connection_state(&self) -> ConnectionState {
        self.state.now()
    }

    /// Notes that a call failed: Redis may have been restarted. The connection to a single server does this by
    /// itself.
    pub(crate) fn suspect(&self) {
        self.opener.suspicions.raise();
    }

    /// Logs an event that may come a hundred times a second.
    pub(crate) fn once_a_minute(&self, event: &'static str, log: impl FnOnce()) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(event).is_none_or(|last| last.elapsed() > Duration::from_secs(60)) {
            logged.insert(event, Instant::now());
            log();
        }
    }

    /// How often Redis was back since this process connected, or another server answered.
    pub fn reconnects(&self) -> u64 {
        self.state.returns()
    }

    /// How often this process had to wait for rate limits, by the part of their names before the first colon.
    pub fn limit_waits(&self) -> BTreeMap<String, u64> {
        self.waits.by_kind()
    }

    pub(crate) fn waits(&self) -> &LimitWaits {
        &self.waits
    }

    /// Names of queues that were found or used lately.
    pub(crate) fn names(&self) -> &QueueNames {
        &self.names
    }

    /// For how long no jobs may be taken: Redis may have forgotten that they run.
    pub(crate) fn doubt(&self) -> Option<Duration> {
        self.state.doubt()
    }

    /// Notices when another Redis answers than before, which may have forgotten the last writes.
    pub(crate) fn restarts(&self) -> Restarts {
        self.state.restarts()
    }

    /// Largest payload of a job in bytes of JSON.
    pub fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// Whether this is a Cluster, in which a publisher is not told how many subscribers there are.
    pub(crate) fn is_cluster(&self) -> bool {
        self.opener.is_cluster
    }

    /// The address of Redis, without the password.
    pub fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// The beginning of all keys of queues.
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

    /// Sends a command that names no key to the server that holds the queues.
    pub(crate) async fn ask_home<T: FromRedisValue>(&self, command: Cmd) -> Result<T, Error> {
        Ok(ask_home(self.redis(), &self.prefix, command).await?)
    }

    /// A connection of its own that can subscribe to channels.
    pub(crate) fn listener(&self) -> BoxFuture<'_, Result<Listener, Error>> {
        Box::pin(async move {
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
        })
    }

    /// A connection of its own for blocking commands of up to `block`, which others see under this name.
    pub(crate) fn blocking_connection<'a>(
        &'a self,
        block: Duration,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Link, Error>> {
        Box::pin(async move {
            let link = self.opener.link(block + RESPONSE_TIMEOUT).await?;
            let mut set_name = cmd("CLIENT");
            set_name.arg("SETNAME").arg(name);
            // A server that does not allow names serves the connection without one.
            if let Err(error) = ask_home::<()>(link.clone(), &self.prefix, set_name).await {
                tracing::debug!(%error, name, "cannot name a connection");
            }
            Ok(link)
        })
    }
}
