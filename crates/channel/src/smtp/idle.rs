//! Connections that wait for the next message, for a minute.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::session::Session;

/// The connections of one account that wait.
pub(super) struct Idle {
    waiting: Arc<Mutex<Waiting>>,
    patience: Duration,
}

#[derive(Default)]
struct Waiting {
    sessions: Vec<(Instant, Session)>,
    is_swept: bool,
}

impl Idle {
    pub(super) fn new(patience: Duration) -> Self {
        Self { waiting: Arc::default(), patience }
    }

    /// The connection that was used last.
    pub(super) fn take(&self) -> Option<Session> {
        let mut waiting = self.waiting.lock();
        let (since, session) = waiting.sessions.pop()?;
        (since.elapsed() < self.patience).then_some(session)
    }

    pub(super) fn put(&self, session: Session) {
        let mut waiting = self.waiting.lock();
        waiting.sessions.push((Instant::now(), session));
        if !waiting.is_swept {
            waiting.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.waiting), self.patience));
        }
    }
}

/// Ends connections that have waited too long, in good order, until none waits.
async fn sweep(waiting: Weak<Mutex<Waiting>>, patience: Duration) {
    loop {
        sleep(patience / 4).await;
        let Some(waiting) = waiting.upgrade() else { return };
        let mut waiting = waiting.lock();
        let all = std::mem::take(&mut waiting.sessions);
        let (old, young): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(since, _)| since.elapsed() >= patience);
        waiting.sessions = young;
        for (_, session) in old {
            tokio::spawn(session.quit());
        }
        if waiting.sessions.is_empty() {
            waiting.is_swept = false;
            return;
        }
    }
}
