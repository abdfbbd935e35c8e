//! The number of workers a node should have: pure rules. The default thresholds are those of older software
//! (docs/compatibility.md).
//!
//! - *Up*: more than `pressure` jobs wait for each that runs, or more than `waiting` jobs wait, and the machine is not
//!   busy. The further above the threshold, the more workers at once, so that one step answers a burst. No worker is
//!   added again for `up_cooldown`.
//! - *Down* by one: no job waits, less than the share `busy` of the slots is in use, and the last change is older than
//!   `down_cooldown`. So it cannot flap: there is at most one step down in that time, and none soon after a step up.
//!
//! Draining workers take no jobs, so they are no capacity. They use memory and processors, so their place is not free.

use std::time::Duration;

/// Thresholds of scaling.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Most waiting jobs for each that runs.
    pub pressure: f64,
    /// Most waiting jobs.
    pub waiting: u64,
    /// No worker is added while the load is above this share of the cores.
    pub load: f64,
    /// No worker is removed while more than this share of the slots is busy.
    pub busy: f64,
    /// Pause between two steps up.
    pub up_cooldown: Duration,
    /// Pause between any change and a step down.
    pub down_cooldown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pressure: 10.0,
            waiting: 100,
            load: 0.8,
            busy: 0.5,
            up_cooldown: Duration::from_secs(30),
            down_cooldown: Duration::from_secs(60),
        }
    }
}

/// The state of a node at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Jobs that could begin.
    pub waiting: u64,
    /// Jobs that run, here or elsewhere.
    pub active: u64,
    /// Workers there should be now.
    pub workers: usize,
    /// Workers that end their last jobs.
    pub draining: usize,
    /// Slots of this node that have a job.
    pub busy: usize,
    /// Slots of this node.
    pub slots: usize,
    /// Busy cores of the machine.
    pub load: f64,
    /// Cores of the machine.
    pub cores: usize,
    /// Fewest workers.
    pub min: usize,
    /// Most workers.
    pub max: usize,
    /// Time since workers were added.
    pub since_up: Option<Duration>,
    /// Time since workers were removed.
    pub since_down: Option<Duration>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// No change.
    Stay,
    /// More workers.
    Up {
        /// Workers there should be.
        to: usize,
        /// The reason, for the history.
        reason: String,
    },
    /// Fewer workers.
    Down {
        /// Workers there should be.
        to: usize,
        /// The reason, for the history.
        reason: String,
    },
}

/// The jobs there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Jobs that could begin.
    pub waiting: u64,
    /// Jobs that run.
    pub active: u64,
}

impl Demand {
    /// Waiting jobs for each that runs; the measure of older software (docs/compatibility.md).
    pub fn pressure(self) -> f64 {
        self.waiting as f64 / (self.active + 1) as f64
    }

    /// The demand divided by its threshold; above 1, more workers are needed.
    pub(crate) fn excess(self, limits: &Limits) -> f64 {
        let over = |value: f64, limit: f64| if limit > 0.0 { value / limit } else { value + 1.0 };
        let pressure = over(self.pressure(), limits.pressure);
        let waiting = over(self.waiting as f64, limits.waiting as f64);
        if self.waiting == 0 { 0.0 } else { pressure.max(waiting) }
    }

    /// Workers that would be right, if there are `now`.
    pub(crate) fn wanted(self, workers: usize, limits: &Limits) -> usize {
        let grown = (workers.max(1) as f64 * self.excess(limits)).ceil();
        // The exact value of a huge number does not matter.
        (grown.min(1e6) as usize).max(workers + 1)
    }

    pub(crate) fn reason(self) -> String {
        format!("Queue pressure: {:.1} ({} waiting)", self.pressure(), self.waiting)
    }
}

/// Whether `pause` has passed since the last change, or there was none.
pub(crate) fn is_over(since: Option<Duration>, cooldown: Duration) -> bool {
    since.is_none_or(|since| since >= cooldown)
}

/// The number of workers this node should have.
pub fn decide(now: &Snapshot, limits: &Limits) -> Plan {
    let demand = Demand { waiting: now.waiting, active: now.active };
    if now.workers < now.min {
        let reason = format!("fewer than MIN_WORKERS={}", now.min);
        return Plan::Up { to: now.min, reason };
    }
    if now.workers > now.max {
        return Plan::Down { to: now.max, reason: format!("more than {} allowed now", now.max) };
    }
    if demand.excess(limits) > 1.0 {
        let room = now.max.saturating_sub(now.draining);
        let to = demand.wanted(now.workers, limits).min(room);
        let calm = now.load < limits.load * now.cores as f64;
        if to > now.workers && calm && is_over(now.since_up, limits.up_cooldown) {
            return Plan::Up { to, reason: demand.reason() };
        }
        return Plan::Stay;
    }
    let idle = now.waiting == 0 && (now.busy as f64) < now.slots as f64 * limits.busy;
    let settled = is_over(now.since_up, limits.down_cooldown)
        && is_over(now.since_down, limits.down_cooldown)
        && now.draining == 0;
    if idle && settled && now.workers > now.min {
        let reason = format!("Low activity: {} of {} slots busy", now.busy, now.slots);
        return Plan::Down { to: now.workers - 1, reason };
    }
    Plan::Stay
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn calm() -> Snapshot {
        Snapshot {
            waiting: 0,
            active: 0,
            workers: 4,
            draining: 0,
            busy: 0,
            slots: 64,
            load: 0.1,
            cores: 4,
            min: 2,
            max: 8,
            since_up: None,
            since_down: None,
        }
    }

    #[test]
    fn the_rules_of_seed_000() {
        let busy = Snapshot { busy: 64, active: 64, ..calm() };
        let table = [
            ("nothing to do", Snapshot { workers: 2, ..calm() }, None),
            ("idle, above the minimum", calm(), Some(3)),
            ("idle, but changed lately", Snapshot { since_up: Some(s(59)), ..calm() }, None),
            ("idle long enough", Snapshot { since_up: Some(s(60)), ..calm() }, Some(3)),
            ("idle, a step down a while ago", Snapshot { since_down: Some(s(20)), ..calm() }, None),
            ("idle, one still drains", Snapshot { draining: 1, ..calm() }, None),
            ("half busy", Snapshot { busy: 32, active: 32, ..calm() }, None),
            ("less than half busy", Snapshot { busy: 31, active: 31, ..calm() }, Some(3)),
            ("something waits", Snapshot { waiting: 1, ..calm() }, None),
            ("100 wait", Snapshot { waiting: 100, ..busy.clone() }, None),
            ("101 wait", Snapshot { waiting: 101, ..busy.clone() }, Some(5)),
            ("pressure of 10", Snapshot { waiting: 10, ..calm() }, None),
            ("pressure above 10", Snapshot { waiting: 11, ..calm() }, Some(5)),
            ("three times too many", Snapshot { waiting: 300, ..busy.clone() }, Some(8)),
            ("the machine is busy", Snapshot { waiting: 300, load: 3.2, ..busy.clone() }, None),
            (
                "added a moment ago",
                Snapshot { waiting: 300, since_up: Some(s(29)), ..busy.clone() },
                None,
            ),
            (
                "a step down is no reason to wait",
                Snapshot { waiting: 300, since_down: Some(s(1)), ..busy.clone() },
                Some(8),
            ),
            ("at the maximum", Snapshot { waiting: 9999, workers: 8, ..busy.clone() }, None),
            (
                "places still taken",
                Snapshot { waiting: 9999, draining: 3, ..busy.clone() },
                Some(5),
            ),
            ("no place at all", Snapshot { waiting: 9999, draining: 5, ..busy.clone() }, None),
            ("below the minimum", Snapshot { workers: 1, ..calm() }, Some(2)),
            ("above the maximum", Snapshot { workers: 9, ..busy }, Some(8)),
            ("from none", Snapshot { workers: 0, min: 0, waiting: 11, ..calm() }, Some(2)),
        ];
        for (what, snapshot, wanted) in table {
            let found = match decide(&snapshot, &Limits::default()) {
                Plan::Stay => None,
                Plan::Up { to, .. } | Plan::Down { to, .. } => Some(to),
            };
            assert_eq!(found, wanted, "{what}");
        }
    }

    /// A node on which a worker finishes so many jobs a second; every tick is two seconds.
    struct Simulated {
        workers: usize,
        waiting: u64,
        seconds: u64,
        changed: (Option<u64>, Option<u64>),
        steps: Vec<(u64, usize)>,
    }

    impl Simulated {
        const TICK: u64 = 2;

        fn new(workers: usize) -> Self {
            Self { workers, waiting: 0, seconds: 0, changed: (None, None), steps: Vec::new() }
        }

        fn tick(&mut self, arriving: u64, rate: u64) {
            self.seconds += Self::TICK;
            self.waiting += arriving;
            let capacity = self.workers as u64 * rate * Self::TICK;
            let done = self.waiting.min(capacity);
            self.waiting -= done;
            let slots = self.workers * 16;
            let busy = slots * done as usize / capacity.max(1) as usize;
            let since = |at: Option<u64>| at.map(|at| s(self.seconds - at));
            let snapshot = Snapshot {
                waiting: self.waiting,
                active: busy as u64,
                workers: self.workers,
                busy,
                slots,
                min: 1,
                max: 8,
                since_up: since(self.changed.0),
                since_down: since(self.changed.1),
                ..calm()
            };
            match decide(&snapshot, &Limits::default()) {
                Plan::Stay => return,
                Plan::Up { to, .. } => (self.workers, self.changed.0) = (to, Some(self.seconds)),
                Plan::Down { to, .. } => (self.workers, self.changed.1) = (to, Some(self.seconds)),
            }
            self.steps.push((self.seconds, self.workers));
        }
    }

    #[test]
    fn a_burst_is_answered_at_once_and_forgotten_slowly() {
        let mut node = Simulated::new(1);
        node.tick(2_000, 4);
        assert_eq!(node.workers, 8, "{:?}", node.steps);
        for _ in 0..1_000 {
            node.tick(0, 4);
        }
        assert_eq!((node.waiting, node.workers), (0, 1));
        let downs: Vec<u64> = node.steps[1..].iter().map(|(at, _)| *at).collect();
        assert_eq!(downs.len(), 7, "one by one: {:?}", node.steps);
        assert!(downs.windows(2).all(|pair| pair[1] - pair[0] >= 60), "{downs:?}");
    }

    #[test]
    fn it_does_not_flap_whatever_the_load_does() {
        let mut random: u64 = 7;
        for pattern in 0..4 {
            let mut node = Simulated::new(1);
            for tick in 0..5_400 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let arriving = match pattern {
                    // Every other tick, waves of a minute, noise, and a steady flow.
                    0 => (tick % 2) * 100,
                    1 => {
                        if tick / 30 % 2 == 0 {
                            60
                        } else {
                            0
                        }
                    }
                    2 => (random >> 33) % 100,
                    _ => 30,
                };
                node.tick(arriving, 4);
            }
            // Three hours: a direction may change once in a cool-down at the very most.
            let turns = node.steps.windows(3).filter(|w| (w[0].1 < w[1].1) != (w[1].1 < w[2].1));
            let turns = turns.count();
            assert!(turns <= 2 * 3 * 60, "pattern {pattern}: {turns} turns");
            for pair in node.steps.windows(2) {
                let ((before, more), (at, fewer)) = (pair[0], pair[1]);
                assert!(fewer > more || at - before >= 60, "a step down too soon: {pair:?}");
            }
            if pattern == 3 {
                assert!(turns <= 4, "a steady load needs no turns: {:?}", node.steps);
            }
            assert!(node.waiting < 2_000, "and the work gets done: {} wait", node.waiting);
        }
    }
}
