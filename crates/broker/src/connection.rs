//! Connecting to Redis, and refusing one that would lose jobs.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, IntoConnectionInfo, RedisResult, cmd};
use serde::Serialize;
use url::Url;

use crate::names::check_queue_name;
use crate::{BatchMirror, Channel, Error, Queue};

/// Where Redis is.
#[derive(Debug, Clone)]
pub struct Config {
    /// `redis://[user:password@]host:port[/database]`.
    pub url: String,
}

/// A connection to Redis that mends itself. Cheap to clone; clones share the socket.
#[derive(Clone)]
pub struct Broker {
    redis: ConnectionManager,
    bull: bullmq::redis_connection::RedisConnection,
    client: Client,
    shown_url: String,
}

/// A command that has no answer for this long has failed.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A silent connection is probed after this long.
const PROBE_AFTER: Duration = Duration::from_secs(4);

impl Broker {
    /// Connects and checks that this Redis keeps jobs: `noeviction`, version 6.2 or newer.
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let shown_url = without_password(&config.url);
        let client = open(config.url.as_str())
            .map_err(|e| Error::InvalidUrl { url: shown_url.clone(), reason: e.to_string() })?;
        let unreachable = |reason: String| Error::Unreachable { url: shown_url.clone(), reason };
        // A plain connection first: it fails at once, where a managed one would keep trying.
        let probe = client.get_multiplexed_async_connection();
        match tokio::time::timeout(CONNECT_TIMEOUT, probe).await {
            Err(_) => return Err(unreachable(format!("no answer within {CONNECT_TIMEOUT:?}"))),
            Ok(Err(error)) => return Err(Error::connecting(&shown_url, error)),
            Ok(Ok(mut probe)) => {
                let info = cmd("INFO").query_async::<String>(&mut probe).await;
                let info = info.map_err(|error| Error::connecting(&shown_url, error))?;
                check_server(&shown_url, &info)?;
            }
        }
        let redis = managed(&client, RESPONSE_TIMEOUT).await?;
        let options = bullmq::options::RedisConnectionOptions::new().url(config.url.as_str());
        let bull = bullmq::redis_connection::RedisConnection::new_managed_only(&options).await?;
        Ok(Self { redis, bull, client, shown_url })
    }

    /// A handle on a queue.
    pub async fn queue(&self, name: &str) -> Result<Queue, Error> {
        check_queue_name(name)?;
        let options = bullmq::QueueOptions::new();
        let bull = bullmq::Queue::with_connection(name, self.bull.clone(), options).await?;
        Ok(Queue::new(self.clone(), bull))
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
        let mut redis = self.redis();
        let _pong: String = cmd("PING").query_async(&mut redis).await?;
        Ok(())
    }

    /// Where this is connected to, without the password.
    pub fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// The official crate's connection.
    pub(crate) fn bull(&self) -> bullmq::redis_connection::RedisConnection {
        self.bull.clone()
    }

    pub(crate) fn redis(&self) -> ConnectionManager {
        self.redis.clone()
    }

    /// A connection of its own for listening to channels.
    pub(crate) async fn listener(&self) -> Result<redis::aio::PubSub, Error> {
        let connecting = self.client.get_async_pubsub();
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(listener) => Ok(listener?),
            Err(_) => Err(Error::Unreachable {
                url: self.shown_url.clone(),
                reason: format!("no answer within {CONNECT_TIMEOUT:?}"),
            }),
        }
    }

    /// A connection of its own for blocking commands of up to `block`.
    pub(crate) async fn blocking_connection(
        &self,
        block: Duration,
    ) -> Result<ConnectionManager, Error> {
        managed(&self.client, block + RESPONSE_TIMEOUT).await
    }
}

pub(crate) fn open(url: impl IntoConnectionInfo) -> RedisResult<Client> {
    // A peer that vanished without a word (power, firewall) answers no probes; without them the
    // connection would stay, and every command on it would time out.
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 2);
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(RESPONSE_TIMEOUT);
    Client::open(url.into_connection_info()?.set_tcp_settings(tcp))
}

async fn managed(client: &Client, response_timeout: Duration) -> Result<ConnectionManager, Error> {
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(6)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_secs(1))
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(response_timeout));
    Ok(ConnectionManager::new_with_config(client.clone(), config).await?)
}

/// A field of an answer to `INFO`.
pub(crate) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

pub(crate) fn check_server(url: &str, info: &str) -> Result<(), Error> {
    let field = |name: &str| info_field(info, name);
    if let Some(version) = field("redis_version") {
        let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (6, 2) {
            return Err(Error::TooOld { url: url.to_owned(), version: version.to_owned() });
        }
    }
    if field("loading") == Some("1") {
        return Err(Error::Loading { url: url.to_owned() });
    }
    if field("role") == Some("slave") && field("slave_read_only") == Some("1") {
        let part = |name| field(name).unwrap_or("?");
        let primary = format!("{}:{}", part("master_host"), part("master_port"));
        return Err(Error::ReadOnlyReplica { url: url.to_owned(), primary });
    }
    match field("maxmemory_policy") {
        Some("noeviction") | None => Ok(()),
        Some(policy) => {
            Err(Error::EvictionPolicy { url: url.to_owned(), policy: policy.to_owned() })
        }
    }
}

/// The URL as it may be shown in messages and logs.
pub(crate) fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            if url.password().is_some() {
                // Fails only for URLs that cannot have a password.
                let _ = url.set_password(Some("***"));
            }
            // Unix sockets take the password as a parameter.
            url.set_query(None);
            url.to_string()
        }
        Err(_) => "(unreadable URL)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_that_may_drop_jobs_is_refused_with_the_remedy() {
        let info = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n";
        let error = check_server("redis://host", info).unwrap_err().to_string();
        assert!(error.contains("allkeys-lru") && error.contains("CONFIG SET"), "{error}");
        check_server("", &info.replace("allkeys-lru", "noeviction")).unwrap();
        let loading = "redis_version:7.0.15\r\nloading:1\r\nmaxmemory_policy:noeviction\r\n";
        assert!(matches!(check_server("", loading), Err(Error::Loading { .. })));
        let replica = "role:slave\r\nslave_read_only:1\r\nmaster_host:db\r\nmaster_port:6379\r\n";
        let error = check_server("redis://host", replica).unwrap_err();
        assert!(error.to_string().contains("replica of db:6379") && error.is_outage(), "{error}");
        let old = "redis_version:5.0.9\r\nmaxmemory_policy:noeviction\r\n";
        assert!(matches!(check_server("", old), Err(Error::TooOld { .. })));
    }

    #[test]
    fn passwords_are_never_shown() {
        assert_eq!(without_password("redis://u:secret@h:1/2"), "redis://u:***@h:1/2");
        assert!(!without_password("unix:///run/redis.sock?pass=secret").contains("secret"));
        assert!(!without_password("::secret::").contains("secret"));
    }
}
