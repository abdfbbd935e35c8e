//! Rate limits that hold over all processes: per queue, per account, per provider, per anything.
//!
//! A limit remembers when its last permits were granted, by the clock of Redis, and grants the next
//! one when fewer than `max` of them lie within the window that ends now: exact in any sliding
//! window, not only in those that begin on the full second. It survives restarts of everything,
//! because it lives in Redis, and can be changed while it is in use.
//!
//! Who gets no permit is told when to come again, each at another time, so that a crowd that waits
//! does not come at once. Coming is no promise: the permit is asked for anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use redis::{Script, cmd};
use serde::Serialize;
use uuid::Uuid;

use crate::{Broker, Error};

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("limits.lua")));

/// The names of all limits that were set.
const NAMES: &str = "stampede:limits";

/// So many in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Most permits in any window; 0 stops everything.
    pub max: u32,
    /// Length of the window in milliseconds.
    pub per_ms: u64,
}

impl Rate {
    /// `max` permits in any `per`.
    pub fn new(max: u32, per: Duration) -> Self {
        Self { max, per_ms: (per.as_millis() as u64).max(1) }
    }
}

/// Whether something may happen now.
#[derive(Debug)]
pub enum Permit {
    /// It may, and has been counted.
    Granted(Box<Taken>),
    /// Not before this long; nothing was counted.
    Wait(Duration),
}

/// A permit that was granted; it counts unless it is given back.
pub struct Taken {
    limits: Limits,
    granted: String,
    id: String,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Taken {
    /// Nothing was done with it: it does not count.
    pub async fn give_back(self) -> Result<(), Error> {
        let mut redis = self.limits.broker.redis();
        let _: i64 = cmd("ZREM").arg(self.granted).arg(self.id).query_async(&mut redis).await?;
        Ok(())
    }
}

/// The name of the limit for all jobs of a queue.
pub(crate) fn queue_limit(queue: &str) -> String {
    format!("queue:{queue}")
}

/// All rate limits of one Redis. Cheap to clone.
#[derive(Clone)]
pub struct Limits {
    broker: Broker,
}

impl Broker {
    /// The rate limits kept in this Redis.
    pub fn limits(&self) -> Limits {
        Limits { broker: self.clone() }
    }
}

impl Limits {
    /// Asks for a permit of the limit `name`; `otherwise` holds as long as nobody has set it.
    pub async fn take(&self, name: &str, otherwise: Option<Rate>) -> Result<Permit, Error> {
        let [settings, granted, waiting] = keys(name);
        let mut call = TAKE.prepare_invoke();
        call.key(settings).key(&granted).key(waiting);
        match otherwise {
            Some(rate) => call.arg(rate.max).arg(rate.per_ms),
            None => call.arg("").arg(""),
        };
        // Two permits granted in the same microsecond are two.
        let id = Uuid::now_v7().simple().to_string();
        let wait_ms: u64 = call.arg(&id).invoke_async(&mut self.broker.redis()).await?;
        Ok(match wait_ms {
            0 => Permit::Granted(Box::new(Taken { limits: self.clone(), granted, id })),
            ms => Permit::Wait(Duration::from_millis(ms)),
        })
    }

    /// Whether somebody has set this limit.
    pub async fn is_set(&self, name: &str) -> Result<bool, Error> {
        let [settings, ..] = keys(name);
        Ok(cmd("EXISTS").arg(settings).query_async(&mut self.broker.redis()).await?)
    }

    /// Sets or changes a limit for everybody, from now on; that of a queue (`queue:<name>`) holds
    /// within seconds.
    pub async fn set(&self, name: &str, rate: Rate) -> Result<(), Error> {
        let [settings, ..] = keys(name);
        let mut redis = self.broker.redis();
        let _: i64 = cmd("SADD").arg(NAMES).arg(name).query_async(&mut redis).await?;
        let fields = [("max", rate.max.to_string()), ("per", rate.per_ms.to_string())];
        let _: i64 = cmd("HSET").arg(settings).arg(&fields).query_async(&mut redis).await?;
        Ok(())
    }

    /// Forgets what was set; those who ask with a rate of their own are held to that one again.
    pub async fn unset(&self, name: &str) -> Result<bool, Error> {
        let [settings, ..] = keys(name);
        let mut redis = self.broker.redis();
        let removed: i64 = cmd("DEL").arg(settings).query_async(&mut redis).await?;
        let _: i64 = cmd("SREM").arg(NAMES).arg(name).query_async(&mut redis).await?;
        Ok(removed > 0)
    }

    /// All limits that were set, by name.
    pub async fn all(&self) -> Result<BTreeMap<String, Rate>, Error> {
        let mut redis = self.broker.redis();
        let names: Vec<String> = cmd("SMEMBERS").arg(NAMES).query_async(&mut redis).await?;
        let mut limits = BTreeMap::new();
        for name in names {
            let [settings, ..] = keys(&name);
            let found: (Option<u32>, Option<u64>) =
                cmd("HMGET").arg(settings).arg("max").arg("per").query_async(&mut redis).await?;
            if let (Some(max), Some(per_ms)) = found {
                limits.insert(name, Rate { max, per_ms });
            }
        }
        Ok(limits)
    }
}

/// Settings, grants and waiters of a limit; the braces keep them together in a Redis Cluster.
fn keys(name: &str) -> [String; 3] {
    ["", ":granted", ":waiting"].map(|part| format!("stampede:limit:{{{name}}}{part}"))
}
