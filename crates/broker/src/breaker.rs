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
//! time; a probe whose worker died makes room for another after `patience`.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;
use uuid::Uuid;

use crate::{Broker, Error};

static CALL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("breaker.lua")));

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
}

/// Whether the service may be called now.
pub enum Gate {
    /// Yes; tell the outcome to [`Passage::worked`] or [`Passage::failed`].
    Open(Box<Passage>),
    /// No, the service is down; come again after this long.
    Shut(Duration),
}

/// One call that was let through. Dropped without a word it counts as nothing.
pub struct Passage {
    breaker: Breaker,
    name: String,
}

impl Broker {
    /// The breaker of the outside service `name`.
    pub fn breaker(&self, name: &str, config: BreakerConfig) -> Breaker {
        Breaker { broker: self.clone(), name: name.to_owned(), config }
    }
}

impl Breaker {
    /// Asks whether the service may be called.
    pub async fn ask(&self) -> Result<Gate, Error> {
        let name = Uuid::now_v7().simple().to_string();
        let (state, wait_ms) = self.say("ask", &name).await?;
        Ok(if state == "open" {
            Gate::Shut(Duration::from_millis(wait_ms.max(1)))
        } else {
            Gate::Open(Box::new(Passage { breaker: self.clone(), name }))
        })
    }

    async fn say(&self, word: &str, call_name: &str) -> Result<(String, u64), Error> {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let key = format!("stampede:breaker:{{{}}}", self.name);
        let mut call = CALL.prepare_invoke();
        call.key(&key).key(format!("{key}:failures"));
        call.arg(word).arg(self.config.failures.max(1));
        call.arg(ms(self.config.within)).arg(ms(self.config.pause)).arg(ms(self.config.patience));
        Ok(call.arg(call_name).invoke_async(&mut self.broker.redis()).await?)
    }
}

impl Passage {
    /// The service answered as it should.
    pub async fn worked(self) -> Result<(), Error> {
        self.breaker.say("ok", &self.name).await.map(drop)
    }

    /// The service is in trouble. Wrong requests of our own are not its failure.
    pub async fn failed(self) -> Result<(), Error> {
        self.breaker.say("failed", &self.name).await.map(drop)
    }
}
