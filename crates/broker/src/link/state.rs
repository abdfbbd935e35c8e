//! Watching whether Redis answers: one watcher for all users of a connection.
//!
//! A hundred slots meet the same outage a hundred times. So that logs stay readable, only the watcher logs it: once
//! when Redis goes away, once a minute while it is away, once when it is back. `transition.rs` decides; this file
//! asks Redis, waits and logs.
//!
//! A server that comes back as another one (restarted, or a replica that took over) may have forgotten the last
//! writes: Redis syncs its file once a second or later, and replicas lag. Then a running job may be listed as
//! waiting, and a worker that takes it makes it run twice. So no jobs are taken between the first suspicion and the
//! moment when the workers that run them had the time to take them back ([`Watched::doubt`]). A process that has just
//! started, or a worker of other software, does not know of the restart and may be too early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use redis::cmd;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::check::info_field;
use super::transition::{Effect, Event, Known, State, next};
use super::{Link, ask_home};

/// How often Redis is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How often Redis is asked while it is away.
const EVERY_AWAY: Duration = Duration::from_millis(300);
/// How long workers have to take their running jobs back after a restart: a busy one notices it only at its next
/// call.
const TAKING_BACK: Duration = Duration::from_millis(2_000);
/// The pause before it is asked again whether a suspicion is settled.
const SETTLING: Duration = Duration::from_millis(50);
/// Redis is away if it has not answered after this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether Redis answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// It did when it was last asked, and accepted writes.
    Connected,
    /// It does not answer, or accepts no writes.
    Away {
        /// For how long.
        duration: Duration,
        /// What the last attempt met.
        reason: String,
    },
}

/// A running watcher. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub(crate) struct Watched {
    known: Arc<watch::Sender<Known>>,
    /// How often Redis was back, or another server answered.
    returns: Arc<AtomicU64>,
    suspicions: Suspicions,
    _task: Arc<AbortOnDropHandle<()>>,
}

/// Signs of an outage or a restart, counted by connections that met them.
#[derive(Clone, Default)]
pub(crate) struct Suspicions {
    count: Arc<AtomicU64>,
    /// A write was refused; this puts no data in doubt.
    refused: Arc<AtomicBool>,
    /// Makes the watcher ask at once.
    raised: Arc<Notify>,
}

impl Suspicions {
    /// Notes that a connection broke or a call was not answered.
    pub(crate) fn raise(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.raised.notify_one();
    }

    /// Notes that Redis has refused a write.
    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Release);
        self.raised.notify_one();
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

impl Watched {
    /// Watches the server that has the keys with this prefix.
    pub(crate) fn start(
        link: Link,
        prefix: Arc<str>,
        url: Arc<str>,
        suspicions: Suspicions,
    ) -> Self {
        let known = Arc::new(watch::Sender::new(Known::default()));
        let returns = Arc::new(AtomicU64::default());
        let watcher = Watcher {
            link,
            prefix,
            url,
            known: known.clone(),
            returns: returns.clone(),
            suspicions: suspicions.clone(),
        };
        let task = tokio::spawn(watcher.watch());
        Self { known, returns, suspicions, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }

    pub(crate) fn now(&self) -> ConnectionState {
        let known = self.known.borrow();
        match known.away.as_ref().or(known.refusing.as_ref()) {
            None => ConnectionState::Connected,
            Some(away) => ConnectionState::Away {
                duration: away.since.elapsed(),
                reason: away.reason.clone(),
            },
        }
    }

    /// For how long no jobs may be taken yet; `None`: they may.
    pub(crate) fn doubt(&self) -> Option<Duration> {
        let known = self.known.borrow();
        if known.away.is_some() || self.suspicions.count() > known.settled {
            return Some(SETTLING);
        }
        let left = (known.restarted? + TAKING_BACK).saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    pub(crate) fn returns(&self) -> u64 {
        self.returns.load(Ordering::Relaxed)
    }

    pub(crate) fn restarts(&self) -> Restarts {
        let known = self.known.subscribe();
        let seen = known.borrow().restarted;
        Restarts { known, seen }
    }
}

/// Notices when another server answers than before.
pub struct Restarts {
    known: watch::Receiver<Known>,
    seen: Option<Instant>,
}

impl Restarts {
    /// Returns when the server is another one than before.
    pub async fn next(&mut self) {
        let Self { known, seen } = self;
        let restarted = known.wait_for(|known| known.restarted != *seen).await;
        match restarted.map(|known| known.restarted) {
            Ok(restarted) => *seen = restarted,
            // The watcher has ended.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Whether anything may be wrong with Redis when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    Fine,
    /// It is away, or a call has failed.
    Doubtful,
}

/// An answer of Redis.
struct Answer {
    /// Which server it is; every start of one has an id of its own.
    id: String,
    /// Why it accepts no writes.
    refusal: Option<String>,
}

pub(crate) fn is_refusal(error: &redis::RedisError) -> bool {
    error.code().is_some_and(|code| ["OOM", "MISCONF", "NOREPLICAS"].contains(&code))
}

struct Watcher {
    link: Link,
    prefix: Arc<str>,
    url: Arc<str>,
    known: Arc<watch::Sender<Known>>,
    returns: Arc<AtomicU64>,
    suspicions: Suspicions,
}

impl Watcher {
    /// Asks Redis again and again; `transition.rs` concludes what the answers mean.
    async fn watch(self) {
        let mut state = State::new(Instant::now());
        let mut unanswered = None;
        loop {
            let looks = self.looks(&state.known);
            // A question is waited for beyond our patience: only a question without any answer makes the connection
            // reconnect, and no other caller may wait that long.
            let (suspicions, mut asked) =
                unanswered.take().unwrap_or_else(|| (self.suspicions.count(), self.ask(looks)));
            let event = match tokio::time::timeout(PATIENCE, &mut asked).await {
                Ok(Ok(Answer { id, refusal })) => {
                    Event::Answered { server: id, refusal, suspicions }
                }
                Ok(Err(error)) => Event::NotAnswered { reason: error.to_string() },
                Err(_) => {
                    unanswered = Some((suspicions, asked));
                    Event::NotAnswered { reason: format!("no answer within {PATIENCE:?}") }
                }
            };
            let effects;
            (state, effects) = next(state, event, Instant::now());
            effects.iter().for_each(|effect| self.log(effect));
            if effects.iter().any(|it| matches!(it, Effect::Back { .. } | Effect::Restarted)) {
                self.returns.fetch_add(1, Ordering::Relaxed);
            }
            self.known.send_replace(state.known.clone());
            if state.known.is_in_trouble() {
                tokio::time::sleep(EVERY_AWAY).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(EVERY) => {}
                    () = self.suspicions.raised.notified() => {}
                }
            }
        }
    }

    /// How closely to look: at more than whether Redis answers, if anything may be wrong.
    fn looks(&self, known: &Known) -> Looks {
        let was_refused = self.suspicions.refused.swap(false, Ordering::AcqRel);
        let is_settled = self.suspicions.count() == known.settled;
        if was_refused || known.is_in_trouble() || !is_settled {
            Looks::Doubtful
        } else {
            Looks::Fine
        }
    }

    fn log(&self, effect: &Effect) {
        let url = &self.url;
        match effect {
            Effect::Restarted => {
                tracing::info!(%url, "Redis was restarted, or another server took over");
            }
            Effect::Away { reason } => {
                tracing::warn!(%url, reason, "Redis is away; work waits for it");
            }
            Effect::StillAway { reason, away } => {
                tracing::warn!(%url, reason, away = ?rounded(*away), "Redis is still away");
            }
            Effect::Back { away } => {
                tracing::info!(%url, away = ?rounded(*away), "Redis is back");
            }
            Effect::RefusesWrites { reason } => {
                tracing::warn!(%url, reason, "Redis accepts no writes");
            }
            Effect::AcceptsWrites { refused } => {
                tracing::info!(%url, refused = ?rounded(*refused), "Redis accepts writes again");
            }
        }
    }

    /// Asks which server answers, and whether it accepts writes.
    fn ask(&self, looks: Looks) -> BoxFuture<'static, redis::RedisResult<Answer>> {
        let (mut link, prefix) = (self.link.clone(), self.prefix.clone());
        Box::pin(async move {
            let no_key = format!("{prefix}:is-it-there");
            // A server that still loads its data answers INFO, but not this; and so does a node of a Cluster that does
            // not hold the queues.
            cmd("EXISTS").arg(&no_key).query_async::<()>(&mut link).await?;
            let mut refusal = None;
            if looks == Looks::Doubtful {
                // Changes nothing, because there is no such key.
                let set =
                    cmd("SET").arg(no_key).arg("").arg("XX").query_async::<()>(&mut link).await;
                refusal = match set {
                    Err(error) if is_refusal(&error) => Some(error.to_string()),
                    // Other errors, such as that of a replica, mean that we are at the wrong server.
                    set => set.map(|()| None)?,
                };
            }
            let mut info = cmd("INFO");
            info.arg("server");
            let info: String = ask_home(link, &prefix, info).await?;
            let id = info_field(&info, "run_id").unwrap_or_default().to_owned();
            Ok(Answer { id, refusal })
        })
    }
}

fn rounded(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}
