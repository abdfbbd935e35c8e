//! Rate limits that hold over all processes: per queue, per account, per provider, per anything.
//!
//! A limit remembers when its last permits were granted, by the clock of Redis. It grants the next one when fewer
//! than `max` of them lie within the window that ends now. So it is exact in any sliding window. It is kept in
//! Redis: it survives restarts of all processes, and can be changed while it is in use.
//!
//! A job begins a moment after its grant. Therefore a grant may be used only for a short time ([`Taken::is_fresh`]), and
//! counts from the end of that time: so the beginnings keep to the limit too, however busy the machine is. A grant that
//! is stale when it arrives is exchanged for another. That time begins when the grant became possible, not at the
//! request: latency costs no rate.
//!
//! A limit may be changed while it is in use, and for a moment callers ask with its former and its present window. Grants
//! are remembered for each window that callers ask with, and that long after the last of those calls: a caller
//! with a shorter window forgets nothing.
//!
//! A limit whose window becomes longer does not know the grants that had left the former one, and a Redis that has lost its
//! data knows none. A caller that has a history of its operations says so ([`Ask::has_history`]). Then no permit is granted
//! while the log may lack a part of the window: the caller reads its history, tells it ([`Limits::remember`]), and asks again.
//!
//! A caller that gets no permit is told how long to wait; each caller gets another time, so that they do not all
//! come back at once. The time is no promise: the permit is asked for again.
//!
//! A limit can be held: nobody gets a permit for so long, over all processes, because a provider said so
//! ([`Limits::hold`]), or because a grant asked for a pause after itself ([`Pause`]). Holds are kept in Redis by its clock,
//! like grants. A pause is measured from the latest moment at which the operation may begin.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redis::cmd;
use serde::Serialize;
use uuid::Uuid;

use super::permits::Ask;
use crate::queue::names::check_shared_name;
use crate::{Broker, Error};

script!(TAKE_PERMIT);
script!(HOLD_LIMIT);

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

/// The answer to an [`Ask`].
pub(crate) enum Answer {
    Permit(Permit),
    /// The log may lack a part of this rate's window: see [`Limits::remember`].
    Forgotten(Rate),
}

/// A granted permit; it counts unless it is given back.
pub struct Taken {
    limits: Limits,
    /// What was asked for, and by whom: for another permit instead of this one.
    ask: Ask,
    who: String,
    id: String,
    grant: Grant,
    asked: Instant,
    /// How long after `asked` an operation may begin with this permit.
    slack: Duration,
}

/// A grant as Redis told it, to be named when it is given back.
#[derive(Debug, Clone, Default)]
struct Grant {
    /// How often the limit has rested before; empty: it does not count that.
    round: String,
    /// Its time: the last moment at which its operation may begin.
    score: String,
    /// The time of an earlier grant that counts under the same key; empty: there was none.
    former: String,
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

    /// Returns the permit unused: it does not count, and its pause ends.
    pub async fn give_back(self) -> Result<(), Error> {
        let mut call = TAKE_PERMIT.prepare_invoke();
        for key in keys(&self.ask.limit)? {
            call.key(key);
        }
        for _ in 0..8 {
            call.arg("");
        }
        self.name_in(&mut call);
        call.invoke_async::<()>(&mut self.limits.broker.redis()).await?;
        Ok(())
    }

    /// Gives the permit back and asks for another in the same step: nobody else gets the place in between.
    pub(crate) async fn renew(self) -> Result<Answer, Error> {
        let limits = self.limits.clone();
        let (ask, who) = (self.ask.clone(), self.who.clone());
        limits.take_as_asked(&who, &ask, Some(&self)).await
    }

    /// What was asked for.
    pub(crate) fn ask(&self) -> &Ask {
        &self.ask
    }

    fn name_in(&self, call: &mut redis::ScriptInvocation<'_>) {
        let member = self.ask.counts_as.as_ref().unwrap_or(&self.id);
        let Grant { round, score, former } = &self.grant;
        call.arg(&self.id).arg(member).arg(round).arg(score).arg(former);
    }
}

/// The name of the limit for all jobs of a queue.
pub(crate) fn queue_limit(queue: &str) -> String {
    format!("queue:{queue}")
}

/// All rate limits of one Redis. Cheap to clone.
#[derive(Clone)]
pub struct Limits {
    pub(super) broker: Broker,
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
        match self.take_as_asked(who, &Ask { otherwise, ..Ask::new(name) }, None).await? {
            Answer::Permit(permit) => Ok(permit),
            // Only for an ask with a history.
            Answer::Forgotten(rate) => Ok(Permit::Wait(Duration::from_millis(rate.per_ms))),
        }
    }

    /// Asks for a permit, after giving back a former one of the same limit.
    pub(crate) async fn take_as_asked(
        &self,
        who: &str,
        ask: &Ask,
        former: Option<&Taken>,
    ) -> Result<Answer, Error> {
        let mut answer = self.take_once(who, ask, former).await?;
        for _ in 0..EXCHANGES {
            match answer {
                Answer::Permit(Permit::Granted(stale)) if !stale.is_fresh() => {
                    answer = self.take_once(who, ask, Some(&stale)).await?;
                }
                answer => {
                    self.count_wait(ask, &answer);
                    return Ok(answer);
                }
            }
        }
        self.count_wait(ask, &answer);
        if matches!(&answer, Answer::Permit(Permit::Granted(taken)) if !taken.is_fresh()) {
            self.broker.once_a_minute("stale permits", || {
                tracing::warn!(
                    limit = ask.limit,
                    "Redis answers so slowly that permits are stale when they arrive: campaigns wait, and of other jobs \
                     more may begin in a window than this limit allows"
                );
            });
        }
        Ok(answer)
    }

    fn count_wait(&self, ask: &Ask, answer: &Answer) {
        if matches!(answer, Answer::Permit(Permit::Wait(_))) {
            self.broker.waits().count(&ask.limit);
        }
    }

    async fn take_once(
        &self,
        who: &str,
        ask: &Ask,
        former: Option<&Taken>,
    ) -> Result<Answer, Error> {
        let mut call = TAKE_PERMIT.prepare_invoke();
        for key in keys(&ask.limit)? {
            call.key(key);
        }
        match ask.otherwise {
            Some(rate) => call.arg(rate.max).arg(rate.per_ms),
            None => call.arg("").arg(""),
        };
        // Two permits granted in the same microsecond need two ids.
        let id = Uuid::now_v7().simple().to_string();
        call.arg(&id).arg(who);
        let ms = |pause: Duration| pause.as_millis() as u64;
        match ms(ask.pause.length) {
            0 => call.arg(""),
            length => call.arg(length),
        };
        match ask.pause.rest {
            Some(rest) => call.arg(rest.every.max(1)).arg(ms(rest.length)),
            None => call.arg("").arg(""),
        };
        call.arg(ask.counts_as.as_deref().unwrap_or_default());
        match former {
            Some(former) => former.name_in(&mut call),
            None => {
                for _ in 0..5 {
                    call.arg("");
                }
            }
        }
        call.arg(if ask.has_history { "1" } else { "" });
        // Before Redis reads its clock: a permit that is fresh by our clock is fresh by that one, too.
        let asked = Instant::now();
        let (wait_ms, number, text, score, former): (i64, u64, String, String, String) =
            call.invoke_async(&mut self.broker.redis()).await?;
        if wait_ms < 0 {
            let (per_ms, max) = (number, text.parse().unwrap_or(u32::MAX));
            return Ok(Answer::Forgotten(Rate { max, per_ms }));
        }
        if wait_ms > 0 {
            return Ok(Answer::Permit(Permit::Wait(Duration::from_millis(wait_ms.unsigned_abs()))));
        }
        let (slack_us, round) = (number, text);
        Ok(Answer::Permit(Permit::Granted(Box::new(Taken {
            limits: self.clone(),
            ask: ask.clone(),
            who: who.to_owned(),
            id,
            grant: Grant { round, score, former },
            asked,
            slack: Duration::from_micros(slack_us),
        }))))
    }

    /// Holds a limit: nobody gets a permit for so long, in any process, whether the limit is set or not. A longer hold that is in
    /// force stays. Permits that were granted a moment before may still be used. Returns how long the limit is held now.
    pub async fn hold(&self, name: &str, length: Duration) -> Result<Duration, Error> {
        let [_, _, _, held, _] = keys(name)?;
        let mut call = HOLD_LIMIT.prepare_invoke();
        call.key(held).arg(length.as_millis() as u64);
        let held_ms: u64 = call.invoke_async(&mut self.broker.redis()).await?;
        Ok(Duration::from_millis(held_ms))
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

/// Settings, grants, waiting callers, holds and longest window of a limit; the braces keep them together in a Redis Cluster.
pub(super) fn keys(name: &str) -> Result<[String; 5], Error> {
    check_shared_name("limit", name)?;
    let parts = ["", ":granted", ":waiting", ":held", ":window"];
    Ok(parts.map(|part| format!("stampede:limit:{{{name}}}{part}")))
}
