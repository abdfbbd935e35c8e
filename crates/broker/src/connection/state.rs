//! Whether Redis is there: one voice for all that wait for it.
//!
//! Everybody who talks to Redis meets its outages, a hundred slots a hundred times. So that logs stay
//! readable, only this says so: once when Redis goes, now and then while it is away, once when it is back.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use redis::cmd;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Link;

/// How often Redis is asked.
const EVERY: Duration = Duration::from_secs(2);
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
    away: watch::Receiver<Option<Away>>,
    _task: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug, Clone)]
struct Away {
    since: Instant,
    reason: String,
}

impl Watched {
    pub(super) fn start(link: Link, shown_url: Arc<str>) -> Self {
        let (announce, away) = watch::channel(None);
        let task = tokio::spawn(watch(link, shown_url, announce));
        Self { away, _task: Arc::new(AbortOnDropHandle::new(task)) }
    }

    pub(super) fn now(&self) -> ConnectionState {
        match &*self.away.borrow() {
            None => ConnectionState::Connected,
            Some(away) => ConnectionState::Away {
                duration: away.since.elapsed(),
                reason: away.reason.clone(),
            },
        }
    }
}

async fn watch(link: Link, url: Arc<str>, announce: watch::Sender<Option<Away>>) {
    let mut mentioned = Instant::now();
    let mut unanswered = None;
    loop {
        tokio::time::sleep(EVERY).await;
        // It is waited for beyond our patience: that there is no answer at all makes the link connect
        // anew, and nobody else may wait that long for one.
        let mut asked = unanswered.take().unwrap_or_else(|| ask(link.clone()));
        let reason = match tokio::time::timeout(PATIENCE, &mut asked).await {
            Ok(answer) => answer.err().map(|error| error.to_string()),
            Err(_) => {
                unanswered = Some(asked);
                Some(format!("no answer within {PATIENCE:?}"))
            }
        };
        let before = announce.borrow().clone();
        match (before, reason) {
            (None, None) => {}
            (None, Some(reason)) => {
                tracing::warn!(%url, reason, "Redis is away; work waits for it");
                mentioned = Instant::now();
                announce.send_replace(Some(Away { since: mentioned, reason }));
            }
            (Some(away), None) => {
                tracing::info!(%url, away = ?rounded(away.since.elapsed()), "Redis is back");
                announce.send_replace(None);
            }
            (Some(away), Some(reason)) => {
                if mentioned.elapsed() >= REMIND_EVERY {
                    let since = rounded(away.since.elapsed());
                    tracing::warn!(%url, reason, away = ?since, "Redis is still away");
                    mentioned = Instant::now();
                }
                announce.send_replace(Some(Away { reason, ..away }));
            }
        }
    }
}

fn ask(mut link: Link) -> BoxFuture<'static, redis::RedisResult<()>> {
    Box::pin(async move { cmd("PING").query_async(&mut link).await })
}

fn rounded(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}
