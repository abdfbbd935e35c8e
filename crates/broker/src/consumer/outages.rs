//! When Redis was last away, as this consumer saw it.
//!
//! After an outage every lock may have expired although its holder lives: before anybody's job is
//! taken for abandoned, the holders get a moment to finish or to renew.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long holders need to come back: their pauses between two tries, and some more.
const GRACE: Duration = Duration::from_secs(3);

/// The last outage.
#[derive(Default)]
pub(super) struct Outages {
    last: Mutex<Option<Instant>>,
}

impl Outages {
    /// Redis has just failed to answer.
    pub(super) fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// How long to wait yet before a lock that has expired means that its holder is gone; locks live
    /// for `lock`.
    pub(super) fn grace_left(&self, lock: Duration) -> Option<Duration> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let left = GRACE.min(lock).checked_sub(last?.elapsed())?;
        (!left.is_zero()).then_some(left)
    }
}
