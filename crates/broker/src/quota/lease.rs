//! What a node knows of one subject in one window: permits that it has leased and not used, and whether there are more.
//!
//! ```text
//!              no permits, or the window is over
//!   granted ◀──────────── Lease ────────────▶ ask Redis ──▶ portion ──▶ Lease
//!              a permit is left                    └─ no answer ──▶ a portion counted here alone
//! ```
//! Pure: times are passed in.

use std::time::{Duration, Instant};

/// The answer of Redis to a request for permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Portion {
    /// Permits that the node has from now on.
    pub(super) granted: u64,
    /// Permits that are left for others, and for later.
    pub(super) left: u64,
    /// When the window ends, by the clock of this process; never later than by the clock of Redis.
    pub(super) ends: Instant,
}

/// How a subject stands after it asked for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether the permit was granted.
    pub granted: bool,
    /// Permits that are left in the window, as far as this node knows.
    pub left: u64,
    /// Until the window ends.
    pub resets_in: Duration,
}

/// What a node knows of one subject.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// Permits that were leased and not used.
    unused: u64,
    /// Permits that were left when Redis was last asked.
    left: u64,
    /// Permits that this node has granted in this window.
    used: u64,
    ends: Instant,
}

impl Lease {
    /// Nothing is known but that permits may be left: the window is over, also for a task that read the clock a moment before.
    pub(super) fn unknown(now: Instant) -> Self {
        Self { unused: 0, left: 1, used: 0, ends: now }
    }

    /// Takes a permit; `None`: Redis has to be asked.
    pub(super) fn take(&mut self, now: Instant) -> Option<Standing> {
        if now >= self.ends {
            return None;
        }
        match (self.unused, self.left) {
            (0, 0) => Some(self.standing(false, now)),
            (0, _) => None,
            _ => Some(self.use_one(now)),
        }
    }

    /// Whether this node knows that nothing is left.
    pub(super) fn exhausted(&self, now: Instant) -> Option<Standing> {
        let is_out = now < self.ends && self.unused + self.left == 0;
        is_out.then(|| self.standing(false, now))
    }

    /// Adds a portion, and takes the permit for which it was asked. That one counts as taken when Redis granted it, so it is
    /// good even if the window has ended since.
    pub(super) fn add(&mut self, portion: Portion, now: Instant) -> Standing {
        if now >= self.ends {
            self.used = 0;
        }
        (self.unused, self.left, self.ends) = (portion.granted, portion.left, portion.ends);
        if portion.granted == 0 {
            return self.standing(false, now);
        }
        self.use_one(now)
    }

    /// Counts alone, because Redis does not: at most as much as one window allows, less what this node has granted in it.
    pub(super) fn add_alone(
        &mut self,
        most: u64,
        portion: u64,
        window: Duration,
        now: Instant,
    ) -> Standing {
        let is_over = now >= self.ends;
        let used = if is_over { 0 } else { self.used };
        let ends = if is_over { now + window } else { self.ends };
        let granted = portion.min(most.saturating_sub(used));
        self.add(Portion { granted, left: most.saturating_sub(used + granted), ends }, now)
    }

    fn use_one(&mut self, now: Instant) -> Standing {
        self.unused = self.unused.saturating_sub(1);
        self.used += 1;
        self.standing(true, now)
    }

    fn standing(&self, granted: bool, now: Instant) -> Standing {
        let resets_in = self.ends.saturating_duration_since(now);
        Standing { granted, left: self.unused + self.left, resets_in }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn permits_of_a_portion_are_used_without_asking() {
        let now = Instant::now();
        let mut lease = Lease::unknown(now);
        assert_eq!(lease.take(now), None);
        let first = lease.add(Portion { granted: 3, left: 7, ends: now + SECOND }, now);
        assert_eq!(first, Standing { granted: true, left: 9, resets_in: SECOND });
        assert_eq!(lease.take(now).map(|standing| standing.left), Some(8));
        assert_eq!(lease.take(now).map(|standing| standing.left), Some(7));
        assert_eq!(lease.take(now), None, "Redis has more");
        let last = lease.add(Portion { granted: 1, left: 0, ends: now + SECOND }, now);
        assert_eq!((last.granted, last.left), (true, 0));
        let refused = Standing { granted: false, left: 0, resets_in: SECOND };
        assert_eq!((lease.take(now), lease.exhausted(now)), (Some(refused), Some(refused)));
    }

    #[test]
    fn a_task_that_read_the_clock_before_the_lease_was_made_is_not_refused() {
        let now = Instant::now();
        let mut lease = Lease::unknown(now + SECOND);
        assert_eq!((lease.take(now), lease.exhausted(now)), (None, None));
    }

    #[test]
    fn permits_of_a_window_that_is_over_are_not_used() {
        let now = Instant::now();
        let mut lease = Lease::unknown(now);
        lease.add(Portion { granted: 3, left: 7, ends: now + SECOND }, now);
        assert_eq!(lease.take(now + SECOND), None);
        lease.add(Portion { granted: 0, left: 0, ends: now + SECOND }, now);
        assert_eq!((lease.take(now + SECOND), lease.exhausted(now + SECOND)), (None, None));
        let late = lease.add(Portion { granted: 1, left: 7, ends: now }, now + SECOND);
        assert!(late.granted, "it was granted in time");
        assert_eq!(lease.take(now + SECOND), None);
    }

    #[test]
    fn alone_a_node_grants_no_more_than_one_window_allows() {
        let now = Instant::now();
        for used_before in [0, 4] {
            let mut lease = Lease::unknown(now);
            if used_before > 0 {
                lease.add(Portion { granted: used_before, left: 6, ends: now + SECOND }, now);
                for _ in 1..used_before {
                    assert!(lease.take(now).is_some());
                }
            }
            let mut granted = used_before;
            for _ in 0..50 {
                let standing =
                    lease.take(now).unwrap_or_else(|| lease.add_alone(10, 3, SECOND, now));
                granted += u64::from(standing.granted);
            }
            assert_eq!(granted, 10);
            assert!(lease.add_alone(10, 3, SECOND, now + SECOND).granted, "the next window");
        }
    }
}
