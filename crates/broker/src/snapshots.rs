//! Snapshots: the state of a thing as one JSON object in Redis, for outside readers.
//!
//! The list of the object comes last. An update replaces only the fields before the list, so that it costs the
//! same for a list of ten and of a hundred thousand entries. Updates of several processes may arrive in any
//! order: the one with the highest revision wins.
//!
//! ```text
//!   {"revision":7,  "id":"b1","status":"done",  "tickets":["t1","t2",…]}
//!    └ revision ─┘  └ head, replaced ───────┘   └ list, kept or replaced ┘
//! ```

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

use crate::Error;
use crate::link::Link;

static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(stampede_scripts::queue::SNAPSHOT));

/// Writes snapshots. Cheap to clone.
#[derive(Clone)]
pub struct Snapshots {
    redis: Link,
}

/// One state of a thing.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotWrite<'a> {
    /// The key in Redis.
    pub key: &'a str,
    /// A number that grows with every change; a snapshot with a higher one is left as it is.
    pub revision: u64,
    /// The fields as a JSON object without its closing brace; none of them may be an array.
    pub head: &'a str,
    /// The name of the list.
    pub list_name: &'a str,
    /// The list as a JSON array; `None` keeps the list that is there.
    pub list: Option<&'a str>,
    /// How long it is kept.
    pub keep: Duration,
}

impl Snapshots {
    pub(crate) fn new(redis: Link) -> Self {
        Self { redis }
    }

    /// Writes a snapshot, unless a newer one is there. `Ok(false)`: Redis has no such key, and no list was given.
    pub async fn write(&self, write: SnapshotWrite<'_>) -> Result<bool, Error> {
        let mut call = WRITE.prepare_invoke();
        call.key(write.key).arg(write.revision).arg(write.head).arg(write.list_name);
        call.arg(write.list.unwrap_or_default()).arg(write.keep.as_millis() as u64);
        Ok(call.invoke_async(&mut self.redis.clone()).await?)
    }
}
