//! When Redis was last away for long, as this consumer saw it.
//!
//! After an outage locks may have expired although their workers live. Before a job counts as stalled, its worker
//! gets a moment to finish it or to renew its lock. A connection that breaks and is replaced at once is no outage.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long workers need to come back: their longest pause between two tries, and some more.
const GRACE: Duration = Duration::from_secs(3);

/// A call that takes longer may have waited for Redis to come back.
const SLOW: Duration = Duration::from_millis(200);

/// Outages of Redis as this consumer saw them.
pub(super) struct Outages {
    /// In an outage that is shorter no lock expires.
    harmless: Duration,
    state: Mutex<State>,
}

struct State {
    worked: Instant,
    failing: bool,
    grace_until: Option<Instant>,
}

impl Outages {
    /// Locks live for `lock` and are renewed three times within that.
    pub(super) fn new(lock: Duration) -> Self {
        let state = State { worked: Instant::now(), failing: false, grace_until: None };
        Self { harmless: lock / 3, state: Mutex::new(state) }
    }

    /// Redis has just answered.
    pub(super) fn worked(&self) {
        let now = Instant::now();
        self.worked_at(now, now);
    }

    /// Redis has just answered a call that was made then. A call does not always fail in an outage: it may wait for a
    /// new connection, and succeed right after.
    pub(super) fn worked_since(&self, asked: Instant) {
        self.worked_at(asked, Instant::now());
    }

    fn worked_at(&self, asked: Instant, now: Instant) {
        let mut state = self.state();
        let was_away = state.failing || now.duration_since(asked) >= SLOW;
        if was_away && now.duration_since(state.worked) >= self.harmless {
            state.grace_until = Some(now + GRACE);
        }
        state.failing = false;
        state.worked = now;
    }

    /// Redis works again, and accepted no writes since then: locks may not have been renewed.
    pub(super) fn was_unwell(&self, since: Instant) {
        if since.elapsed() >= self.harmless {
            self.state().grace_until = Some(Instant::now() + GRACE);
        }
    }

    /// Redis has just failed to answer.
    pub(super) fn failed(&self) {
        self.state().failing = true;
    }

    /// How long to wait until an expired lock means that its worker is gone.
    pub(super) fn grace_left(&self) -> Option<Duration> {
        self.grace_left_at(Instant::now())
    }

    fn grace_left_at(&self, now: Instant) -> Option<Duration> {
        let left = self.state().grace_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_get_a_moment_after_an_outage_and_none_after_a_hiccup() {
        let outages = Outages::new(Duration::from_secs(15));
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        outages.worked_at(at(0), at(0));
        outages.failed();
        outages.worked_at(at(1), at(1));
        assert_eq!(outages.grace_left_at(at(1)), None, "a hiccup");

        outages.failed();
        outages.worked_at(at(11), at(11));
        assert_eq!(outages.grace_left_at(at(12)), Some(Duration::from_secs(2)));
        assert_eq!(outages.grace_left_at(at(14)), None);

        outages.worked_at(at(20), at(20));
        assert_eq!(outages.grace_left_at(at(20)), None, "idle, not away");
        outages.worked_at(at(21), at(30));
        assert_eq!(outages.grace_left_at(at(30)), Some(GRACE), "it has waited for Redis");
    }
}
