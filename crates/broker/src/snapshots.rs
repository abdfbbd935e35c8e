//! Snapshots: the newest state of a record under one key, as JSON, for readers outside.
//!
//! The value is one JSON object whose list comes last. A write without a list replaces only what stands
//! before the list, so its cost does not depend on the length of the list. Writes of several processes may
//! arrive in any order: the higher revision wins.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use crate::Error;
use crate::connection::Link;

static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("snapshot.lua")));

/// Writes snapshots. Cheap to clone.
#[derive(Clone)]
pub struct Snapshots {
    redis: Link,
}

/// One state of a record.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotWrite<'a> {
    /// The key.
    pub key: &'a str,
    /// A newer state has a higher revision.
    pub revision: u64,
    /// The members as a JSON object without its closing brace.
    pub head: &'a str,
    /// The list `tickets` as a JSON array; `None` keeps the list in Redis.
    pub list: Option<&'a str>,
    /// The key expires after this time without a write.
    pub keep: Duration,
}

impl Snapshots {
    pub(crate) fn new(redis: Link) -> Self {
        Self { redis }
    }

    /// Writes a state, unless Redis has a newer one. `Ok(false)`: Redis has no such key, and no list was
    /// given; nothing was written.
    pub async fn write(&self, write: SnapshotWrite<'_>) -> Result<bool, Error> {
        let known: bool = WRITE
            .key(write.key)
            .arg(write.revision)
            .arg(write.head)
            .arg(write.list.unwrap_or_default())
            .arg(write.keep.as_secs())
            .invoke_async(&mut self.redis.clone())
            .await?;
        Ok(known)
    }
}
