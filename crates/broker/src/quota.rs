//! Quotas: how often each of many subjects may do something in a minute, counted over all nodes.
//!
//! [`Limits`](crate::Limits) are for jobs: exact in any sliding window, one round trip a permit. A quota is for requests, of
//! which there are thousands a second. Its windows are fixed, begin by the clock of Redis, and are the same for all subjects.
//! A node leases a portion of a subject's permits and uses them without asking again (`lease.rs`). A portion is a
//! thousandth of the quota, at the end of it a single permit: small quotas are exact, and of large ones another node can
//! miss a thousandth. Over all nodes never more is granted in a window than the quota allows.
//!
//! While Redis does not answer, every node counts alone, so that n nodes may grant n times as much. Nothing is ever
//! refused because Redis is away, and nothing is let through uncounted.
//!
//! Memory is bounded. A node remembers [`REMEMBERED`] subjects, and forgets the one that was seen longest ago. Redis counts
//! [`COUNTED`] subjects a window in one hash; further ones are counted by each node alone.

mod lease;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashlink::LruCache;

pub use self::lease::Standing;
use self::lease::{Lease, Portion};
use crate::{Broker, ConnectionState, Error};

static TAKE_PORTION: std::sync::LazyLock<redis::Script> =
    std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::quota::TAKE_PORTION));

/// Subjects that a node remembers; each takes about 200 bytes.
const REMEMBERED: usize = 20_000;
/// Subjects that Redis counts in a window; each takes about 100 bytes.
const COUNTED: usize = 50_000;
/// A request does not wait longer for Redis.
const PATIENCE: Duration = Duration::from_millis(250);
/// After Redis has not answered, it is left alone for this long.
const PAUSE: Duration = Duration::from_secs(1);
/// A quota is divided into so many portions.
const PORTIONS: u64 = 1_000;

/// A quota. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Quota {
    shared: Arc<Shared>,
}

struct Shared {
    broker: Broker,
    /// The key of the counts in Redis.
    key: String,
    most: u64,
    window: Duration,
    subjects: Mutex<LruCache<String, Subject>>,
    /// Until then Redis is not asked.
    alone_until: Mutex<Option<Instant>>,
}

struct Subject {
    lease: Lease,
    /// Held by the one task that asks Redis.
    asking: Arc<tokio::sync::Mutex<()>>,
}

impl Quota {
    /// `most` permits for every subject in each window. Nodes that give the same name share the counts.
    pub fn new(broker: Broker, name: &str, most: u64, window: Duration) -> Self {
        let shared = Shared {
            broker,
            key: format!("stampede:quota:{name}"),
            most,
            window,
            subjects: Mutex::new(LruCache::new(REMEMBERED)),
            alone_until: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Most permits in a window.
    pub fn most(&self) -> u64 {
        self.shared.most
    }

    /// The length of a window.
    pub fn window(&self) -> Duration {
        self.shared.window
    }

    /// Takes a permit for a subject.
    pub async fn take(&self, subject: &str) -> Standing {
        let asking = match self.shared.take(subject) {
            Ok(standing) => return standing,
            Err(asking) => asking,
        };
        let _asking = asking.lock().await;
        // Another task may have brought a portion meanwhile.
        if let Ok(standing) = self.shared.take(subject) {
            return standing;
        }
        let asked = self.shared.ask(subject).await;
        self.shared.add(subject, asked)
    }

    /// How a subject stands, if this node knows that it has no permits left. Redis is not asked.
    pub fn exhausted(&self, subject: &str) -> Option<Standing> {
        self.shared.subjects().get(subject)?.lease.exhausted(Instant::now())
    }
}

impl Shared {
    fn subjects(&self) -> MutexGuard<'_, LruCache<String, Subject>> {
        self.subjects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit that this node has; otherwise the lock of the task that asks Redis.
    fn take(&self, subject: &str) -> Result<Standing, Arc<tokio::sync::Mutex<()>>> {
        let mut subjects = self.subjects();
        // Behind the lock: another task may have waited for Redis meanwhile.
        let now = Instant::now();
        if let Some(known) = subjects.get_mut(subject) {
            return known.lease.take(now).ok_or_else(|| known.asking.clone());
        }
        let asking: Arc<tokio::sync::Mutex<()>> = Arc::default();
        let new = Subject { lease: Lease::unknown(now), asking: asking.clone() };
        subjects.insert(subject.to_owned(), new);
        Err(asking)
    }

    /// Adds a portion of Redis, or one that is counted here alone.
    fn add(&self, subject: &str, portion: Option<Portion>) -> Standing {
        let mut subjects = self.subjects();
        let now = Instant::now();
        // It may have been forgotten meanwhile.
        let known = subjects.get_mut(subject).map(|known| &mut known.lease);
        let mut forgotten = Lease::unknown(now);
        let lease = known.unwrap_or(&mut forgotten);
        match portion {
            Some(portion) => lease.add(portion, now),
            None => lease.add_alone(self.most, self.portion(), self.window, now),
        }
    }

    fn portion(&self) -> u64 {
        (self.most / PORTIONS).max(1)
    }

    /// Asks Redis for a portion; `None`: it does not count this subject now.
    async fn ask(&self, subject: &str) -> Option<Portion> {
        let is_away = self.broker.connection_state() != ConnectionState::Connected;
        let pause = *self.alone_until.lock().unwrap_or_else(PoisonError::into_inner);
        if is_away || pause.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let asked = Instant::now();
        let reason = match tokio::time::timeout(PATIENCE, self.call(subject)).await {
            Ok(Ok((granted, left, ends_ms))) => {
                let granted = u64::try_from(granted).ok()?;
                // Counted from before Redis read its clock: the lease never outlasts the window.
                return Some(Portion {
                    granted,
                    left,
                    ends: asked + Duration::from_millis(ends_ms),
                });
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {PATIENCE:?}"),
        };
        *self.alone_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Instant::now() + PAUSE);
        self.broker.once_a_minute("a quota alone", || {
            tracing::warn!(
                reason,
                "Redis does not count requests: every node counts its own until it does again"
            );
        });
        None
    }

    async fn call(&self, subject: &str) -> Result<(i64, u64, u64), Error> {
        let mut call = TAKE_PORTION.prepare_invoke();
        call.key(&self.key).arg(self.window.as_millis() as u64).arg(self.most);
        call.arg(subject).arg(self.portion()).arg(COUNTED);
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }
}
