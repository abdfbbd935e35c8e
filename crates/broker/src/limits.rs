//! Rate limits that hold over all processes: per queue, per account, per provider, per anything.
//!
//! A limit remembers when its last permits were granted, by the clock of Redis, and grants the next
//! one when fewer than `max` of them lie within the window that ends now: exact in any sliding
//! window, not only in those that begin on the full second. It survives restarts of everything,
//! because it lives in Redis, and can be changed while it is in use.
//!
//! What is granted by Redis' clock begins a moment later elsewhere. A grant is therefore remembered a
//! little longer than the window, and is good only for that little while ([`Taken::is_fresh`]): so the
//! beginnings keep to the window too, however busy the machine is. One that is stale when it arrives is
//! exchanged for another. And a grant counts from when it became possible, not from when somebody came
//! to ask: latency costs no rate.
//!
//! Who gets no permit is told when to come again, each at another time, so that a crowd that waits
//! does not come at once. Coming is no promise: the permit is asked for anew.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use redis::{Script, cmd};
use serde::Serialize;
use uuid::Uuid;

use crate::names::check_shared_name;
use crate::{Broker, Error};

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("limits.lua")));

/// The names of all limits that were set.
const NAMES: &str = "stampede:limits";

/// How often a permit that went stale on its way is exchanged before it is used as it is: it takes a
/// Redis so far away that every permit is stale when it arrives.
const EXCHANGES: usize = 3;

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
    asked: Instant,
    /// How much longer than its window the limit remembers a grant.
    slack: Duration,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Taken {
    /// Whether what begins now is within the limit. A permit that is used late would let one more
    /// begin in a window than it may hold: give it back and take another.
    pub fn is_fresh(&self) -> bool {
        self.asked.elapsed() < self.slack
    }

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
    /// Asks for a permit of the limit `name`; `otherwise` holds as long as nobody has set it. What it is
    /// for is to begin at once: see [`Taken::is_fresh`].
    pub async fn take(&self, name: &str, otherwise: Option<Rate>) -> Result<Permit, Error> {
        self.take_as(&Uuid::now_v7().simple().to_string(), name, otherwise).await
    }

    /// The same for somebody who may ask again before it is time, and keeps its place in the line.
    pub(crate) async fn take_as(
        &self,
        who: &str,
        name: &str,
        otherwise: Option<Rate>,
    ) -> Result<Permit, Error> {
        let mut permit = self.take_once(who, name, otherwise).await?;
        for _ in 0..EXCHANGES {
            match permit {
                Permit::Granted(stale) if !stale.is_fresh() => {
                    stale.give_back().await?;
                    permit = self.take_once(who, name, otherwise).await?;
                }
                permit => return Ok(permit),
            }
        }
        if matches!(&permit, Permit::Granted(taken) if !taken.is_fresh()) {
            self.broker.once_a_minute("stale permits", || {
                tracing::warn!(
                    limit = name,
                    "Redis answers so slowly that more may begin in a window than this limit allows"
                );
            });
        }
        Ok(permit)
    }

    async fn take_once(
        &self,
        who: &str,
        name: &str,
        otherwise: Option<Rate>,
    ) -> Result<Permit, Error> {
        let [settings, granted, waiting] = keys(name)?;
        let mut call = TAKE.prepare_invoke();
        call.key(settings).key(&granted).key(waiting);
        match otherwise {
            Some(rate) => call.arg(rate.max).arg(rate.per_ms),
            None => call.arg("").arg(""),
        };
        // Two permits granted in the same microsecond are two.
        let id = Uuid::now_v7().simple().to_string();
        // Before Redis looks at its clock: what is fresh by this one is fresh by that one too.
        let asked = Instant::now();
        let (wait_ms, slack_us): (u64, u64) =
            call.arg(&id).arg(who).invoke_async(&mut self.broker.redis()).await?;
        if wait_ms > 0 {
            return Ok(Permit::Wait(Duration::from_millis(wait_ms)));
        }
        let slack = Duration::from_micros(slack_us);
        Ok(Permit::Granted(Box::new(Taken { limits: self.clone(), granted, id, asked, slack })))
    }

    /// Whether somebody has set this limit.
    pub async fn is_set(&self, name: &str) -> Result<bool, Error> {
        let [settings, ..] = keys(name)?;
        Ok(cmd("EXISTS").arg(settings).query_async(&mut self.broker.redis()).await?)
    }

    /// Sets or changes a limit for everybody, from now on; that of a queue (`queue:<name>`) holds
    /// within seconds.
    pub async fn set(&self, name: &str, rate: Rate) -> Result<(), Error> {
        let [settings, ..] = keys(name)?;
        let mut redis = self.broker.redis();
        let fields = [("max", rate.max.to_string()), ("per", rate.per_ms.to_string())];
        let _: i64 = cmd("HSET").arg(settings).arg(&fields).query_async(&mut redis).await?;
        // After it, and taken away before it: of two who set and unset it at once, none leaves one that holds and
        // is not shown.
        let _: i64 = cmd("SADD").arg(NAMES).arg(name).query_async(&mut redis).await?;
        Ok(())
    }

    /// Forgets what was set; those who ask with a rate of their own are held to that one again.
    pub async fn unset(&self, name: &str) -> Result<bool, Error> {
        let [settings, ..] = keys(name)?;
        let mut redis = self.broker.redis();
        let _: i64 = cmd("SREM").arg(NAMES).arg(name).query_async(&mut redis).await?;
        let removed: i64 = cmd("DEL").arg(settings).query_async(&mut redis).await?;
        Ok(removed > 0)
    }

    /// All limits that were set, by name.
    pub async fn all(&self) -> Result<BTreeMap<String, Rate>, Error> {
        let mut redis = self.broker.redis();
        let names: Vec<String> = cmd("SMEMBERS").arg(NAMES).query_async(&mut redis).await?;
        let mut limits = BTreeMap::new();
        for name in names {
            let [settings, ..] = keys(&name)?;
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
fn keys(name: &str) -> Result<[String; 3], Error> {
    check_shared_name("limit", name)?;
    Ok(["", ":granted", ":waiting"].map(|part| format!("stampede:limit:{{{name}}}{part}")))
}
