//! Suspects: things that jobs work with, such as a template, and that may bring their process down.
//!
//! ```text
//!            a job that works with it         three strikes in a row
//!            lost its worker
//!   nothing ─────────────────────▶ suspected ─────────────────────────▶ set aside
//!      ▲                            │   ▲ success: no strikes              │
//!      └──── 10 minutes ◀───────────┘   └───────────────────               │
//!      └──── a day after the last strike, or an operator lifts it ◀────────┘
//! ```
//!
//! Who works with a suspect does so in a process that may die, and reports a *strike* if it died. The record is kept in
//! Redis: all processes see it, and it survives them. Whether something is set aside is the caller's decision.

use std::time::Duration;

use redis::cmd;

use crate::queue::names::check_shared_name;
use crate::{Broker, Error};

/// The names of all suspects.
const NAMES: &str = "stampede:suspects";
/// How long a suspicion without a strike lasts.
const SUSPICION: Duration = Duration::from_secs(10 * 60);
/// How long strikes last after the last of them.
const STRIKES_LAST: Duration = Duration::from_secs(24 * 3600);
/// Longest reason that is kept, in characters.
const LONGEST_REASON: usize = 500;

/// Something that may bring down the process that works with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Its name, such as `template:<revision>`.
    pub name: String,
    /// Processes that died in a row while they worked with it alone.
    pub strikes: u32,
    /// Why it is suspected, or how the last of these processes died.
    pub reason: String,
    /// When it is forgotten.
    pub expires_in: Duration,
}

/// All suspects of one Redis. Cheap to clone.
#[derive(Clone)]
pub struct Suspects {
    broker: Broker,
}

impl Broker {
    /// The suspects kept in this Redis.
    pub fn suspects(&self) -> Suspects {
        Suspects { broker: self.clone() }
    }
}

impl Suspects {
    /// Suspects something for ten minutes. Strikes that it has stay.
    pub async fn suspect(&self, name: &str, reason: &str) -> Result<(), Error> {
        let key = key(name)?;
        let mut redis = self.broker.redis();
        let fields = [("strikes", "0".to_owned()), ("reason", shortened(reason))];
        for (field, value) in fields {
            let _: i64 =
                cmd("HSETNX").arg(&key).arg(field).arg(value).query_async(&mut redis).await?;
        }
        self.keep(name, &key, SUSPICION).await
    }

    /// Counts a process that died while it worked with nothing else; returns how many did in a row.
    pub async fn strike(&self, name: &str, reason: &str) -> Result<u32, Error> {
        let key = key(name)?;
        let mut redis = self.broker.redis();
        let strikes: u32 =
            cmd("HINCRBY").arg(&key).arg("strikes").arg(1).query_async(&mut redis).await?;
        let reason = shortened(reason);
        let _: i64 =
            cmd("HSET").arg(&key).arg("reason").arg(reason).query_async(&mut redis).await?;
        self.keep(name, &key, STRIKES_LAST).await?;
        Ok(strikes)
    }

    /// Forgets the strikes of something that worked. It stays suspected for a while: a process has died of it.
    pub async fn absolve(&self, name: &str) -> Result<(), Error> {
        let key = key(name)?;
        let mut redis = self.broker.redis();
        let exists: bool = cmd("EXISTS").arg(&key).query_async(&mut redis).await?;
        if exists {
            let _: i64 =
                cmd("HSET").arg(&key).arg("strikes").arg(0).query_async(&mut redis).await?;
            let while_ms = SUSPICION.as_millis() as i64;
            let _: i64 = cmd("PEXPIRE").arg(&key).arg(while_ms).query_async(&mut redis).await?;
        }
        Ok(())
    }

    /// Forgets a suspect. `Ok(false)`: there is none of this name.
    pub async fn lift(&self, name: &str) -> Result<bool, Error> {
        let key = key(name)?;
        let mut redis = self.broker.redis();
        let _: i64 = cmd("SREM").arg(NAMES).arg(name).query_async(&mut redis).await?;
        let removed: i64 = cmd("DEL").arg(&key).query_async(&mut redis).await?;
        Ok(removed > 0)
    }

    /// All suspects, by name.
    pub async fn all(&self) -> Result<Vec<Suspect>, Error> {
        let mut redis = self.broker.redis();
        let mut names: Vec<String> = cmd("SMEMBERS").arg(NAMES).query_async(&mut redis).await?;
        names.sort();
        let mut all = Vec::new();
        for name in names {
            let key = key(&name)?;
            let found: (Option<u32>, Option<String>) =
                cmd("HMGET").arg(&key).arg("strikes").arg("reason").query_async(&mut redis).await?;
            let left: i64 = cmd("PTTL").arg(&key).query_async(&mut redis).await?;
            let (Some(strikes), reason) = found else {
                let _: i64 = cmd("SREM").arg(NAMES).arg(&name).query_async(&mut redis).await?;
                continue;
            };
            if left < 0 {
                // Its author died before it could set the time.
                self.keep(&name, &key, SUSPICION).await?;
            }
            let expires_in = Duration::from_millis(left.max(0) as u64);
            all.push(Suspect { name, strikes, reason: reason.unwrap_or_default(), expires_in });
        }
        Ok(all)
    }

    /// Lists a suspect, for this long at least.
    async fn keep(&self, name: &str, key: &str, least: Duration) -> Result<(), Error> {
        let mut redis = self.broker.redis();
        let (left, least): (i64, i64) =
            (cmd("PTTL").arg(key).query_async(&mut redis).await?, least.as_millis() as i64);
        if left < least {
            let _: i64 = cmd("PEXPIRE").arg(key).arg(least).query_async(&mut redis).await?;
        }
        let _: i64 = cmd("SADD").arg(NAMES).arg(name).query_async(&mut redis).await?;
        Ok(())
    }
}

fn shortened(reason: &str) -> String {
    reason.chars().take(LONGEST_REASON).collect()
}

fn key(name: &str) -> Result<String, Error> {
    check_shared_name("suspect", name)?;
    Ok(format!("stampede:suspect:{{{name}}}"))
}
