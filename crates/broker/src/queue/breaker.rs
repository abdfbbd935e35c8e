//! Circuit breakers: one per outside service, shared by all workers of all nodes through Redis.
//!
//! ```text
//!            failures within a window reach the threshold
//!   closed ───────────────────────────────────────────────▶ open
//!     ▲                                                      │ pause is over, a call asks
//!     │ the probe worked                                     ▼
//!     └────────────────────────────────────────────────── half-open ── the probe failed ──▶ open
//! ```
//!
//! An open breaker lets no call through: jobs snooze, which costs no attempt. A half-open breaker lets one call
//! through at a time, the probe; a probe that does not report back makes room for another after `patience`. A call
//! that is cut off by its job's time limit counts as failed, because a service that hangs is in trouble, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::cmd;
use serde::Serialize;
use uuid::Uuid;

use crate::queue::names::check_shared_name;
use crate::{Broker, Error};

script!(BREAKER);

/// The names of all breakers that were open lately.
const NAMES: &str = "stampede:breakers";

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// This many failures open it …
    pub failures: u32,
    /// … if they happen within this time.
    pub within: Duration,
    /// How long it stays open before one call may probe the service.
    pub pause: Duration,
    /// How long the probe may take to report back.
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
    /// Set when calls that have not reported back took too long.
    overdue: Option<Arc<AtomicBool>>,
}

/// Whether the service may be called now.
pub enum BreakerDecision {
    /// Yes; the outcome is to be reported with [`Call::worked`] or [`Call::failed`].
    Allowed(Box<Call>),
    /// No, the service is down; to be asked again after this long.
    Refused(Duration),
}

/// One call that was let through. A call that is dropped without a report does not count, unless the time limit of
/// its job is over: then it has failed.
pub struct Call {
    breaker: Breaker,
    name: String,
    /// It probes whether the service works again; other calls wait for its outcome.
    is_probe: bool,
    reported: bool,
}

impl Broker {
    /// The breaker of the outside service `name`.
    pub fn breaker(&self, name: &str, config: BreakerConfig) -> Breaker {
        Breaker { broker: self.clone(), name: name.to_owned(), config, overdue: None }
    }

    /// The breakers that are open or half-open, by name of their service.
    pub async fn open_breakers(&self) -> Result<Vec<OpenBreaker>, Error> {
        let mut redis = self.redis();
        let mut names: Vec<String> = cmd("SMEMBERS").arg(NAMES).query_async(&mut redis).await?;
        names.sort();
        let mut open = Vec::new();
        for name in names {
            let breaker = self.breaker(&name, BreakerConfig::default());
            let (mut state, mut retry_in_ms) = breaker.say("look", "").await?;
            if state == "closed" {
                let _: i64 = cmd("SREM").arg(NAMES).arg(&name).query_async(&mut redis).await?;
                // It may have been opened in between.
                (state, retry_in_ms) = breaker.say("look", "").await?;
                if state == "closed" {
                    continue;
                }
                let _: i64 = cmd("SADD").arg(NAMES).arg(&name).query_async(&mut redis).await?;
            }
            open.push(OpenBreaker { name, state, retry_in_ms });
        }
        Ok(open)
    }

    /// Closes a breaker before its pause is over. `Ok(false)`: it is closed already.
    pub async fn close_breaker(&self, name: &str) -> Result<bool, Error> {
        let mut redis = self.redis();
        let removed: i64 = cmd("DEL").arg(&keys(name)?).query_async(&mut redis).await?;
        Ok(removed > 0)
    }
}

/// The breaker of an outside service that is in trouble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenBreaker {
    /// The service.
    pub name: String,
    /// `open`, or `half-open` while one call probes it.
    pub state: String,
    /// When the next probe may be made.
    pub retry_in_ms: u64,
}

impl Breaker {
    pub(crate) fn blaming_the_overdue(self, overdue: Arc<AtomicBool>) -> Self {
        Self { overdue: Some(overdue), ..self }
    }

    /// Asks whether the service may be called.
    pub async fn ask(&self) -> Result<BreakerDecision, Error> {
        let name = Uuid::now_v7().simple().to_string();
        let (state, wait_ms) = self.say("ask", &name).await?;
        Ok(if state == "open" {
            BreakerDecision::Refused(Duration::from_millis(wait_ms.max(1)))
        } else {
            let is_probe = state == "probe";
            BreakerDecision::Allowed(Box::new(Call {
                breaker: self.clone(),
                name,
                is_probe,
                reported: false,
            }))
        })
    }

    /// Runs the script with one of its words; returns the state and the time to wait in ms.
    async fn say(&self, word: &str, call_name: &str) -> Result<(String, u64), Error> {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let mut call = BREAKER.prepare_invoke();
        call.key(&keys(&self.name)?);
        call.arg(word).arg(self.config.failures.max(1));
        call.arg(ms(self.config.within)).arg(ms(self.config.pause)).arg(ms(self.config.patience));
        Ok(call.arg(call_name).invoke_async(&mut self.broker.redis()).await?)
    }
}

impl Call {
    /// Reports that the service answered as it should.
    pub async fn worked(mut self) -> Result<(), Error> {
        self.reported = true;
        let (state, _) = self.breaker.say("ok", &self.name).await?;
        if state == "recovered" {
            tracing::info!(
                service = self.breaker.name,
                "service works again: its circuit breaker is closed"
            );
        }
        Ok(())
    }

    /// Reports that the service is in trouble. A wrong request of our own is not its failure.
    pub async fn failed(mut self) -> Result<(), Error> {
        self.reported = true;
        self.breaker.failed(&self.name).await
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let is_overdue = |overdue: &Arc<AtomicBool>| overdue.load(Ordering::Relaxed);
        let is_overdue = self.breaker.overdue.as_ref().is_some_and(is_overdue);
        if self.reported || !(is_overdue || self.is_probe) {
            return;
        }
        let (breaker, name) = (self.breaker.clone(), std::mem::take(&mut self.name));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let reported = if is_overdue {
                    breaker.failed(&name).await
                } else {
                    breaker.say("nothing", &name).await.map(drop)
                };
                if let Err(error) = reported {
                    tracing::debug!(%error, service = breaker.name, "cannot report to the circuit breaker");
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
                "service is in trouble: its circuit breaker is open"
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
