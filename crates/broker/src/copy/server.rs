//! One side of a copy: a connection of its own, and what it says about itself.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, IntoConnectionInfo, Pipeline, cmd};
use redis::{Cmd, ProtocolVersion};

use super::{Error, MARKER};
use crate::link::address::without_password;
use crate::link::{check_server, info_field, open};

/// A page of a large value may take a while on a busy server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// One side of a copy.
pub(super) struct Server {
    connection: MultiplexedConnection,
    shown_url: String,
    info: String,
    only: Option<i64>,
}

impl Server {
    pub(super) async fn connect(url: &str) -> Result<Self, Error> {
        let shown_url = without_password(url);
        let invalid = |error: redis::RedisError| crate::Error::InvalidUrl {
            url: shown_url.clone(),
            reason: error.to_string(),
        };
        // One reading of replies is enough; RESP3 would shape some of them in another way.
        let address = url.into_connection_info().map_err(invalid)?;
        let settings = address.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        let only = Some(settings.db()).filter(|db| *db != 0);
        let client = open(address.set_redis_settings(settings), None).map_err(invalid)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let connected = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connected.map_err(|error| crate::Error::Unreachable {
            url: shown_url.clone(),
            reason: error.to_string(),
        })?;
        let info: String =
            cmd("INFO").query_async(&mut connection).await.map_err(crate::Error::from)?;
        let version = info_field(&info, "redis_version").unwrap_or("7.0");
        if version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0) < 7 {
            return Err(Error::TooOld { url: shown_url, version: version.to_owned() });
        }
        if info_field(&info, "loading") == Some("1") {
            return Err(crate::Error::Loading { url: shown_url }.into());
        }
        Ok(Self { connection, shown_url, info, only })
    }

    /// Its address without the password.
    pub(super) fn shown_url(&self) -> &str {
        &self.shown_url
    }

    /// The one database that its URL names.
    pub(super) fn only(&self) -> Option<i64> {
        self.only
    }

    /// Tells one start of one server from all others.
    pub(super) fn run_id(&self) -> &str {
        info_field(&self.info, "run_id").unwrap_or(&self.shown_url)
    }

    /// Databases with keys, when we connected.
    pub(super) fn databases(&self) -> Vec<(i64, u64)> {
        let line = |line: &str| -> Option<(i64, u64)> {
            let (db, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
            Some((db.parse().ok()?, rest.split(',').next()?.parse().ok()?))
        };
        self.info.lines().filter_map(line).filter(|(_, keys)| *keys > 0).collect()
    }

    /// A copy into a server that may drop keys is none.
    pub(super) fn must_keep_keys(&self) -> Result<(), Error> {
        Ok(check_server(&self.shown_url, &self.info)?)
    }

    /// How many changes it has seen, if it counts them.
    pub(super) async fn changes(&mut self) -> Result<Option<String>, crate::Error> {
        let info: String = self.ask(cmd("INFO").arg("persistence")).await?;
        Ok(info_field(&info, "rdb_changes_since_last_save").map(str::to_owned))
    }

    /// A warning, if others are connected that look like workers or producers of a queue.
    pub(super) async fn others(&mut self) -> Result<Option<String>, crate::Error> {
        // Not every operator lets us ask.
        let Ok(list) = self.ask::<String>(cmd("CLIENT").arg("LIST")).await else { return Ok(None) };
        let me: i64 = self.ask(cmd("CLIENT").arg("ID")).await?;
        let others = |line: &&str| !line.starts_with(&format!("id={me} "));
        let others: Vec<&str> = list.lines().filter(others).collect();
        let wait = |line: &&&str| line.contains("cmd=bzpopmin") || line.contains("name=bull:");
        let workers = others.iter().filter(wait).count();
        Ok((!others.is_empty()).then(|| {
            format!(
                "{} other clients are connected to {}, {workers} of them wait for jobs. What they write during \
                 the copy is lost or spoils it: stop workers and producers first",
                others.len(),
                self.shown_url
            )
        }))
    }

    pub(super) async fn select(&mut self, db: i64) -> Result<(), crate::Error> {
        self.ask(cmd("SELECT").arg(db)).await
    }

    pub(super) async fn flush(&mut self) -> Result<(), crate::Error> {
        self.ask(&mut cmd("FLUSHDB")).await
    }

    /// Where an unfinished copy in the selected database came from.
    pub(super) async fn marker(&mut self) -> Result<Option<String>, crate::Error> {
        self.ask(cmd("GET").arg(MARKER)).await
    }

    pub(super) async fn set_marker(&mut self, from: &str) -> Result<(), crate::Error> {
        self.ask(cmd("SET").arg(MARKER).arg(from)).await
    }

    pub(super) async fn remove_marker(&mut self) -> Result<(), crate::Error> {
        self.ask(cmd("DEL").arg(MARKER)).await
    }

    pub(super) async fn ask<T: FromRedisValue>(
        &mut self,
        command: &mut Cmd,
    ) -> Result<T, crate::Error> {
        Ok(command.query_async(&mut self.connection).await?)
    }

    pub(super) async fn ask_all<T: FromRedisValue>(
        &mut self,
        pipe: &Pipeline,
    ) -> Result<T, crate::Error> {
        if pipe.is_empty() {
            // A page of `SCAN` may be empty, and the client refuses to ask nothing.
            let nothing = redis::from_redis_value(redis::Value::Array(Vec::new()));
            return Ok(nothing.map_err(redis::RedisError::from)?);
        }
        Ok(pipe.query_async(&mut self.connection).await?)
    }
}
