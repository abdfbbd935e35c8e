//! Circuit breakers: one per outside service, shared by all workers of all nodes through Redis.
//!
//! ```text
//!            failures within a window reach the threshold
//!   closed ───────────────────────────────────────────────▶ open
//!     ▲                                                      │ pause is over, somebody asks
//!     │ the probe worked                                     ▼
//!     └────────────────────────────────────────────────── half-open ── the probe failed ──▶ open
//! ```
//!
//! Open means *not now*: a job snoozes and costs no attempt. Half-open lets one call through at a
//! time; a probe whose worker died makes room for another after `patience`. A service that hangs is in
//! trouble, too: a call that its job's time limit ends counts as failed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{Script, cmd};
use serde::Serialize;
use uuid::Uuid;

use crate::names::check_shared_name;
use crate::{Broker, Error};

static CALL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("breaker.lua")));

/// The names of all breakers that were open of late.
const NAMES: &str = "stampede:breakers";

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// So many failures open it …
    pub failures: u32,
    /// … if they lie within this time.
    pub within: Duration,
    /// How long it stays open before one call may try again.
    pub pause: Duration,
    /// How long that call may take to report back.
    pub patience: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            within: Duration::from_secs(60),
            pause: Duration::from_secs(30),
            patience: Duration::from_secs(60),
        }
    }
}

/// The breaker of one outside service. Cheap to clone.
#[derive(Clone)]
pub struct Breaker {
    broker: Broker,
    name: String,
    config: BreakerConfig,
    /// Set when calls that have not come back took too long.
    overdue: Option<Arc<AtomicBool>>,
}

/// Whether the service may be called now.
pub enum Gate {
    /// Yes; tell the outcome to [`Passage::worked`] or [`Passage::failed`].
    Open(Box<Passage>),
    /// No, the service is down; come again after this long.
    Shut(Duration),
}

/// One call that was let through. Dropped without a word it counts as nothing, and the next one may call; unless
/// the time limit of its job is over: then it has failed.
pub struct Passage {
    breaker: Breaker,
    name: String,
    /// It finds out whether the service is back, and others wait for that.
    is_probe: bool,
    told: bool,
}

impl Broker {
    /// The breaker of the outside service `name`.
    pub fn breaker(&self, name: &str, config: BreakerConfig) -> Breaker {
        Breaker { broker: self.clone(), name: name.to_owned(), config, overdue: None }
    }

    /// The outside services that are not called now, by name.
    pub async fn shut_breakers(&self) -> Result<Vec<ShutBreaker>, Error> {
        let mut redis = self.redis();
        let mut names: Vec<String> = cmd("SMEMBERS").arg(NAMES).query_async(&mut redis).await?;
        names.sort();
        let mut shut = Vec::new();
        for name in names {
            let breaker = self.breaker(&name, BreakerConfig::default());
            let (mut state, mut retry_in_ms) = breaker.say("look", "").await?;
            if state == "closed" {
                let _: i64 = cmd("SREM").arg(NAMES).arg(&name).query_async(&mut redis).await?;
                // Somebody may have opened it in between.
                (state, retry_in_ms) = breaker.say("look", "").await?;
                if state == "closed" {
                    continue;
                }
                let _: i64 = cmd("SADD").arg(NAMES).arg(&name).query_async(&mut redis).await?;
            }
            shut.push(ShutBreaker { name, state, retry_in_ms });
        }
        Ok(shut)
    }

    /// Lets everybody call an outside service again, before the pause is over. `Ok(false)`: they may already.
    pub async fn close_breaker(&self, name: &str) -> Result<bool, Error> {
        let mut redis = self.redis();
        let removed: i64 = cmd("DEL").arg(&keys(name)?).query_async(&mut redis).await?;
        Ok(removed > 0)
    }
}

/// The breaker of an outside service that is in trouble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutBreaker {
    /// The service.
    pub name: String,
    /// `open`, or `half-open` while one call tries it.
    pub state: String,
    /// When it may be tried (again).
    pub retry_in_ms: u64,
}

impl Breaker {
    pub(crate) fn blaming_the_overdue(self, overdue: Arc<AtomicBool>) -> Self {
        Self { overdue: Some(overdue), ..self }
    }

    /// Asks whether the service may be called.
    pub async fn ask(&self) -> Result<Gate, Error> {
        let name = Uuid::now_v7().simple().to_string();
        let (state, wait_ms) = self.say("ask", &name).await?;
        Ok(if state == "open" {
            Gate::Shut(Duration::from_millis(wait_ms.max(1)))
        } else {
            let is_probe = state == "probe";
            Gate::Open(Box::new(Passage { breaker: self.clone(), name, is_probe, told: false }))
        })
    }

    async fn say(&self, word: &str, call_name: &str) -> Result<(String, u64), Error> {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let mut call = CALL.prepare_invoke();
        call.key(&keys(&self.name)?);
        call.arg(word).arg(self.config.failures.max(1));
        call.arg(ms(self.config.within)).arg(ms(self.config.pause)).arg(ms(self.config.patience));
        Ok(call.arg(call_name).invoke_async(&mut self.broker.redis()).await?)
    }
}

impl Passage {
    /// The service answered as it should.
    pub async fn worked(mut self) -> Result<(), Error> {
        self.told = true;
        let (state, _) = self.breaker.say("ok", &self.name).await?;
        if state == "recovered" {
            tracing::info!(
                service = self.breaker.name,
                "works again: its circuit breaker is closed"
            );
        }
        Ok(())
    }

    /// The service is in trouble. Wrong requests of our own are not its failure.
    pub async fn failed(mut self) -> Result<(), Error> {
        self.told = true;
        self.breaker.failed(&self.name).await
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let is_overdue = |overdue: &Arc<AtomicBool>| overdue.load(Ordering::Relaxed);
        let is_overdue = self.breaker.overdue.as_ref().is_some_and(is_overdue);
        if self.told || !(is_overdue || self.is_probe) {
            return;
        }
        let (breaker, name) = (self.breaker.clone(), std::mem::take(&mut self.name));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let told = if is_overdue {
                    breaker.failed(&name).await
                } else {
                    breaker.say("nothing", &name).await.map(drop)
                };
                if let Err(error) = told {
                    tracing::debug!(%error, service = breaker.name, "cannot tell its breaker");
                }
            });
        }
    }
}

impl Breaker {
    async fn failed(&self, call_name: &str) -> Result<(), Error> {
        let Self { broker, name, config, .. } = self;
        let (state, _) = self.say("failed", call_name).await?;
        if state == "opened" {
            let BreakerConfig { failures, within, pause, .. } = config;
            tracing::warn!(
                service = name,
                failures,
                ?within,
                ?pause,
                "is in trouble: its circuit breaker is open"
            );
        }
        if state != "closed" {
            let _: i64 = cmd("SADD").arg(NAMES).arg(name).query_async(&mut broker.redis()).await?;
        }
        Ok(())
    }
}

/// State and failures of a breaker; the braces keep them together in a Redis Cluster.
fn keys(name: &str) -> Result<[String; 2], Error> {
    check_shared_name("circuit breaker", name)?;
    Ok(["", ":failures"].map(|part| format!("stampede:breaker:{{{name}}}{part}")))
}
