//! Whether Redis is there: one voice for all that wait for it.
//!
//! Everybody who talks to Redis meets its outages, a hundred slots a hundred times. So that logs stay
//! readable, only this says so: once when Redis goes, now and then while it is away, once when it is back.
//!
//! A server that comes back as another one (restarted, or a replica that took over) may have forgotten
//! what it last heard: Redis writes once a second, or later, and replicas lag. Then a job that runs may
//! stand there as waiting, and whoever takes it makes it run twice. So nobody takes jobs between the
//! first doubt and the moment when those who run them had the time to say so ([`Watched::doubt`]). Who
//! has just started knows nothing of that, nor do other people's workers: they may be too early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use redis::cmd;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::check::info_field;
use super::{Link, ask_home};

/// How often Redis is asked.
const EVERY: Duration = Duration::from_secs(1);
/// How often while it is away.
const EVERY_AWAY: Duration = Duration::from_millis(300);
/// How long those who run jobs have to take them back after a restart: who is busy hears of it only when
/// it asks the next time.
const TAKING_BACK: Duration = Duration::from_millis(2_000);
/// How long to wait before asking again whether a doubt is settled.
const SETTLING: Duration = Duration::from_millis(50);
/// Redis is away if it has not answered by then.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often an outage that goes on is mentioned.
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// Whether Redis answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// It did when it was last asked.
    Connected,
    /// It does not.
    Away {
        /// For how long.
        duration: Duration,
        /// What the last attempt met.
        reason: String,
    },
}

/// What the watcher knows. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub(super) struct Watched {
    known: Arc<watch::Sender<Known>>,
    suspicions: Suspicions,
    _task: Arc<AbortOnDropHandle<()>>,
}

/// Whatever broke, counted by those who met it.
#[derive(Clone, Default)]
pub(super) struct Suspicions {
    count: Arc<AtomicU64>,
    /// Something was refused; that puts in doubt nothing that Redis knows.
    refused: Arc<AtomicBool>,
    /// Makes the watcher look at once.
    raised: Arc<Notify>,
}

impl Suspicions {
    /// To be told when a connection broke or nobody answered.
    pub(super) fn raise(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.raised.notify_one();
    }

    /// To be told when Redis has answered, and taken nothing.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Release);
        self.raised.notify_one();
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

#[derive(Debug, Clone, Default)]
struct Known {
    away: Option<Away>,
    /// It answers, and takes nothing new: it is out of memory or disk, or misses its replicas. What it knows
    /// is not in doubt, and jobs that end make room.
    refusing: Option<Away>,
    /// How many suspicions there were when Redis was asked last: of later ones nobody knows what they
    /// meant.
    settled: u64,
    /// When a server was first seen that was not the one before.
    restarted: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Away {
    since: Instant,
    reason: String,
}

impl Known {
    fn is_in_trouble(&self) -> bool {
        self.away.is_some() || self.refusing.is_some()
    }
}

impl Watched {
    /// Watches the server that has the keys with this prefix.
    pub(super) fn start(
        link: Link,
        prefix: Arc<str>,
        url: Arc<str>,
        suspicions: Suspicions,
    ) -> Self {
        let known = Arc::new(watch::Sender::new(Known::default()));
        let watcher =
            Watcher { link, prefix, url, known: known.clone(), suspicions: suspicions.clone() };
        let task = tokio::spawn(watcher.watch());
        Self { known, suspicions, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }

    pub(super) fn now(&self) -> ConnectionState {
        let known = self.known.borrow();
        match known.away.as_ref().or(known.refusing.as_ref()) {
            None => ConnectionState::Connected,
            Some(away) => ConnectionState::Away {
                duration: away.since.elapsed(),
                reason: away.reason.clone(),
            },
        }
    }

    /// For how long jobs should not be taken yet, if so.
    pub(super) fn doubt(&self) -> Option<Duration> {
        let known = self.known.borrow();
        if known.away.is_some() || self.suspicions.count() > known.settled {
            return Some(SETTLING);
        }
        let left = (known.restarted? + TAKING_BACK).saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn restarts(&self) -> Restarts {
        let known = self.known.subscribe();
        let seen = known.borrow().restarted;
        Restarts { known, seen }
    }
}

/// Tells of servers that are not the ones before.
pub(crate) struct Restarts {
    known: watch::Receiver<Known>,
    seen: Option<Instant>,
}

impl Restarts {
    /// Returns when the server is another one than before.
    pub(crate) async fn next(&mut self) {
        let Self { known, seen } = self;
        let restarted = known.wait_for(|known| known.restarted != *seen).await;
        match restarted.map(|known| known.restarted) {
            Ok(restarted) => *seen = restarted,
            // Nobody watches any more.
            Err(_) => std::future::pending().await,
        }
    }
}

/// What is known of Redis when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    Fine,
    /// It is away, or somebody's call has failed.
    Doubtful,
}

/// What Redis said.
struct Answer {
    /// Which server it is; every start of one has an id of its own.
    id: String,
    /// Why it takes nothing new.
    refusal: Option<String>,
}

pub(super) fn is_refusal(error: &redis::RedisError) -> bool {
    error.code().is_some_and(|code| ["OOM", "MISCONF", "NOREPLICAS"].contains(&code))
}

struct Watcher {
    link: Link,
    prefix: Arc<str>,
    url: Arc<str>,
    known: Arc<watch::Sender<Known>>,
    suspicions: Suspicions,
}

impl Watcher {
    async fn watch(self) {
        let mut server = None;
        let mut mentioned = Instant::now();
        let mut unanswered = None;
        loop {
            let looks = {
                let known = self.known.borrow();
                let is_fine = !self.suspicions.refused.swap(false, Ordering::AcqRel)
                    && !known.is_in_trouble()
                    && self.suspicions.count() == known.settled;
                if is_fine { Looks::Fine } else { Looks::Doubtful }
            };
            // It is waited for beyond our patience: that there is no answer at all makes the link connect
            // anew, and nobody else may wait that long for one.
            let (suspicions, mut asked) =
                unanswered.take().unwrap_or_else(|| (self.suspicions.count(), self.ask(looks)));
            let answer = match tokio::time::timeout(PATIENCE, &mut asked).await {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(_) => {
                    unanswered = Some((suspicions, asked));
                    Err(format!("no answer within {PATIENCE:?}"))
                }
            };
            let now = Instant::now();
            let url = &self.url;
            self.known.send_modify(|known| {
                match answer {
                    Ok(Answer { id, refusal }) => {
                        if server.as_ref().is_some_and(|before| *before != id) {
                            tracing::info!(%url, "Redis was restarted, or another server took over");
                            known.restarted = Some(now);
                        }
                        server = Some(id);
                        known.settled = suspicions;
                        if let Some(away) = known.away.take() {
                            tracing::info!(%url, away = ?rounded(away.since.elapsed()), "Redis is back");
                        }
                        let before = known.refusing.take();
                        known.refusing = refusal.map(|reason| {
                            let since = before.as_ref().map_or(now, |before| before.since);
                            if before.is_none() || mentioned.elapsed() >= REMIND_EVERY {
                                tracing::warn!(%url, reason, "Redis takes nothing new");
                                mentioned = now;
                            }
                            Away { since, reason }
                        });
                        if let Some(before) = before.filter(|_| known.refusing.is_none()) {
                            let refused = rounded(before.since.elapsed());
                            tracing::info!(%url, ?refused, "Redis takes everything again");
                        }
                    }
                    Err(reason) => {
                        let since = known.away.as_ref().map_or(now, |away| away.since);
                        if known.away.is_none() {
                            tracing::warn!(%url, reason, "Redis is away; work waits for it");
                            mentioned = now;
                        } else if mentioned.elapsed() >= REMIND_EVERY {
                            let away = rounded(since.elapsed());
                            tracing::warn!(%url, reason, ?away, "Redis is still away");
                            mentioned = now;
                        }
                        known.away = Some(Away { since, reason });
                    }
                }
            });
            let is_in_trouble = self.known.borrow().is_in_trouble();
            if is_in_trouble {
                tokio::time::sleep(EVERY_AWAY).await;
            } else {
                tokio::select! {
                    () = tokio::time::sleep(EVERY) => {}
                    () = self.suspicions.raised.notified() => {}
                }
            }
        }
    }

    /// Which server answers, and whether it takes anything.
    fn ask(&self, looks: Looks) -> BoxFuture<'static, redis::RedisResult<Answer>> {
        let (mut link, prefix) = (self.link.clone(), self.prefix.clone());
        Box::pin(async move {
            let no_key = format!("{prefix}:is-it-there");
            // While it still reads its data, it answers the last question, and not this one; and so do nodes of
            // a Cluster that do not have the queues.
            cmd("EXISTS").arg(&no_key).query_async::<()>(&mut link).await?;
            let mut refusal = None;
            if looks == Looks::Doubtful {
                // It changes nothing, for there is no such key.
                let set =
                    cmd("SET").arg(no_key).arg("").arg("XX").query_async::<()>(&mut link).await;
                refusal = match set {
                    Err(error) if is_refusal(&error) => Some(error.to_string()),
                    // A replica, for example, is not where we should be.
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
