//! Whether Redis is there: one voice for all that wait for it.
//!
//! Everybody who talks to Redis meets its outages, a hundred slots a hundred times. So that logs stay
//! readable, only this says so: once when Redis goes, now and then while it is away, once when it is back.

use std::sync::Arc;
use std::time::Duration;

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
    loop {
        tokio::time::sleep(EVERY).await;
        let mut link = link.clone();
        let command = cmd("PING");
        let reason =
            match tokio::time::timeout(PATIENCE, command.query_async::<()>(&mut link)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some(format!("no answer within {PATIENCE:?}")),
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

fn rounded(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}
