//! Rate limits that hold over all processes: per queue, per account, per provider, per anything.
//!
//! A limit remembers when its last permits were granted, by the clock of Redis. It grants the next one when fewer
//! than `max` of them lie within the window that ends now. So it is exact in any sliding window. It is kept in
//! Redis: it survives restarts of all processes, and can be changed while it is in use.
//!
//! A job begins a moment after its grant. Therefore a grant is remembered a little longer than the window, and may
//! be used only during that time ([`Taken::is_fresh`]): so the beginnings keep to the limit too, however busy the
//! machine is. A grant that is stale when it arrives is exchanged for another. A grant counts from the moment when
//! it became possible, not from the moment of the request: latency costs no rate.
//!
//! A caller that gets no permit is told how long to wait; each caller gets another time, so that they do not all
//! come back at once. The time is no promise: the permit is asked for again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::cmd;
use serde::Serialize;
use uuid::Uuid;

use crate::queue::names::check_shared_name;
use crate::{Broker, Error};

script!(TAKE_PERMIT);

/// The names of all limits that were set.
const NAMES: &str = "stampede:limits";

/// How often a permit that is stale when it arrives is exchanged before it is used as it is. More do not help: then
/// Redis is so far away that every permit arrives stale.
const EXCHANGES: usize = 3;

/// A number of permits in a window of time.
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

/// The answer to a request for a permit.
#[derive(Debug)]
pub enum Permit {
    /// Granted, and counted.
    Granted(Box<Taken>),
    /// Not granted; to be asked again after this long.
    Wait(Duration),
}

/// A granted permit; it counts unless it is given back.
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
    /// Whether an operation that begins now is within the limit. A stale permit must be given back and another
    /// taken: used late, it would let too many begin in one window.
    pub fn is_fresh(&self) -> bool {
        self.asked.elapsed() < self.slack
    }

    /// Returns the permit unused: it does not count.
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
    /// Asks for a permit of the limit `name`; `otherwise` is the rate while the limit is not set. The operation is to
    /// begin at once: see [`Taken::is_fresh`].
    pub async fn take(&self, name: &str, otherwise: Option<Rate>) -> Result<Permit, Error> {
        self.take_as(&Uuid::now_v7().simple().to_string(), name, otherwise).await
    }

    /// Asks for a permit as the caller `who`, which keeps its place in the line when it asks again too early.
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
        let mut call = TAKE_PERMIT.prepare_invoke();
        call.key(settings).key(&granted).key(waiting);
        match otherwise {
            Some(rate) => call.arg(rate.max).arg(rate.per_ms),
            None => call.arg("").arg(""),
        };
        // Two permits granted in the same microsecond need two ids.
        let id = Uuid::now_v7().simple().to_string();
        // Before Redis reads its clock: a permit that is fresh by our clock is fresh by that one, too.
        let asked = Instant::now();
        let (wait_ms, slack_us): (u64, u64) =
            call.arg(&id).arg(who).invoke_async(&mut self.broker.redis()).await?;
        if wait_ms > 0 {
            return Ok(Permit::Wait(Duration::from_millis(wait_ms)));
        }
        let slack = Duration::from_micros(slack_us);
        Ok(Permit::Granted(Box::new(Taken { limits: self.clone(), granted, id, asked, slack })))
    }

    /// The rate of a limit, if it is set.
    pub async fn get(&self, name: &str) -> Result<Option<Rate>, Error> {
        let [settings, ..] = keys(name)?;
        let mut redis = self.broker.redis();
        let found: (Option<u32>, Option<u64>) =
            cmd("HMGET").arg(settings).arg("max").arg("per").query_async(&mut redis).await?;
        Ok(found.0.zip(found.1).map(|(max, per_ms)| Rate { max, per_ms }))
    }

    /// Whether this limit is set.
    pub async fn is_set(&self, name: &str) -> Result<bool, Error> {
        let [settings, ..] = keys(name)?;
        Ok(cmd("EXISTS").arg(settings).query_async(&mut self.broker.redis()).await?)
    }

    /// Sets or changes a limit for all processes; the limit of a queue (`queue:<name>`) takes effect within seconds.
    pub async fn set(&self, name: &str, rate: Rate) -> Result<(), Error> {
        let [settings, ..] = keys(name)?;
        let mut redis = self.broker.redis();
        let fields = [("max", rate.max.to_string()), ("per", rate.per_ms.to_string())];
        let _: i64 = cmd("HSET").arg(settings).arg(&fields).query_async(&mut redis).await?;
        // The name is added after the settings and removed before them: concurrent calls of set and unset never leave
        // a limit that is in force and not listed.
        let _: i64 = cmd("SADD").arg(NAMES).arg(name).query_async(&mut redis).await?;
        Ok(())
    }

    /// Removes a limit; callers that ask with a rate of their own are held to that rate again.
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
            if let Some(rate) = self.get(&name).await? {
                limits.insert(name, rate);
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
