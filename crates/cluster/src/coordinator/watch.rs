//! Alerts of a coordinator: nodes that died, queues in which no job ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use stampede_broker::Level;
use stampede_wire::cluster::Alert;

use crate::ENTRY_LIVES;

/// Notices queues in which jobs wait and none ends.
#[derive(Default)]
pub(crate) struct StuckQueues {
    seen: BTreeMap<String, Seen>,
}

struct Seen {
    last_ended: Option<String>,
    since: Instant,
    raised: bool,
}

impl StuckQueues {
    /// Compares the queues with the last look; returns alerts.
    pub(crate) fn look(&mut self, levels: &[Level], after: Duration, now: Instant) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for level in levels {
            let idle = level.waiting == 0 || level.paused;
            let seen = self.seen.entry(level.queue.clone()).or_insert_with(|| Seen {
                last_ended: level.last_ended.clone(),
                since: now,
                raised: false,
            });
            // Events of added jobs may push the last ended one out of the window; that is no movement.
            let moved = level.last_ended.is_some() && seen.last_ended != level.last_ended;
            if idle || moved {
                if seen.raised {
                    let message = format!("queue {} moves again", level.queue);
                    alerts.push(Alert::new("queue-moves", &level.queue, message));
                }
                let last_ended = level.last_ended.clone().or_else(|| seen.last_ended.take());
                *seen = Seen { last_ended, since: now, raised: false };
            } else if !seen.raised && now.duration_since(seen.since) >= after {
                seen.raised = true;
                let message = format!(
                    "queue {} is stuck: {} jobs wait, {} are being worked on, and none has ended for {} s",
                    level.queue,
                    level.waiting,
                    level.active,
                    now.duration_since(seen.since).as_secs()
                );
                alerts.push(Alert::new("queue-stuck", &level.queue, message));
            }
        }
        alerts
    }
}

/// The nodes that should be there. A missing node counts as gone only when the cluster could be read without a
/// break for as long as an entry lives: after an outage of Redis all entries are old, and living nodes need time to
/// announce themselves again.
pub(crate) struct Attendance {
    expected: BTreeSet<String>,
    /// The cluster could be read since then without a break.
    since: Instant,
    last_look: Option<Instant>,
}

impl Attendance {
    pub(crate) fn new(expected: BTreeSet<String>, now: Instant) -> Self {
        Self { expected, since: now, last_look: None }
    }

    /// The cluster could not be read.
    pub(crate) fn interrupt(&mut self, now: Instant) {
        (self.since, self.last_look) = (now, None);
    }

    /// Compares with the nodes that are there. Returns those that are gone; each stays expected until struck off.
    pub(crate) fn look(&mut self, there: &BTreeSet<String>, now: Instant) -> Vec<String> {
        // A look that hung counts like one that failed.
        if self.last_look.is_some_and(|last| now.duration_since(last) > ENTRY_LIVES) {
            self.interrupt(now);
        }
        self.last_look = Some(now);
        self.expected.extend(there.iter().cloned());
        if !self.is_trusted(now) {
            return Vec::new();
        }
        self.missing(there)
    }

    /// Whether a missing node counts as gone.
    pub(crate) fn is_trusted(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= ENTRY_LIVES
    }

    /// Nodes that should be there and are not, gone or not.
    pub(crate) fn missing(&self, there: &BTreeSet<String>) -> Vec<String> {
        self.expected.difference(there).cloned().collect()
    }

    pub(crate) fn strike_off(&mut self, name: &str) {
        self.expected.remove(name);
    }
}

/// The alert for a node that is gone and did not leave in good order.
pub(crate) fn dead_node(name: &str) -> Alert {
    let message = format!(
        "node {name} is gone without a word; its jobs are taken over by others as their locks expire"
    );
    Alert::new("node-dead", name, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(waiting: u64, last_ended: &str) -> Level {
        Level {
            queue: "tickets".to_owned(),
            waiting,
            active: 2,
            completed: 0,
            failed: 0,
            paused: false,
            last_ended: Some(last_ended.to_owned()).filter(|id| !id.is_empty()),
        }
    }

    #[test]
    fn a_node_is_gone_only_when_the_cluster_could_be_seen_for_long_enough() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let (all, one) = (names(&["a", "b"]), names(&["a"]));
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second);
        let mut attendance = Attendance::new(all.clone(), start);
        assert!(attendance.look(&one, at(1)).is_empty(), "the term has only begun");
        assert!(attendance.missing(&one) == ["b"] && attendance.missing(&all).is_empty());
        assert!(attendance.look(&all, at(10)).is_empty());
        assert_eq!(attendance.look(&one, at(20)), ["b"], "seen all the time");
        assert_eq!(attendance.look(&one, at(21)), ["b"], "until somebody was told");
        attendance.strike_off("b");
        assert!(attendance.look(&one, at(22)).is_empty() && attendance.missing(&one).is_empty());

        attendance.look(&all, at(23));
        attendance.interrupt(at(60));
        assert!(attendance.look(&names(&[]), at(61)).is_empty(), "Redis was away");
        assert!(attendance.look(&one, at(70)).is_empty());
        assert_eq!(attendance.look(&one, at(75)), ["b"], "it had time to come back");
        assert!(attendance.look(&names(&[]), at(95)).is_empty(), "a look that hung");
    }

    #[test]
    fn a_queue_is_stuck_when_jobs_wait_and_none_ends_and_that_is_told_once() {
        let start = Instant::now();
        let mut queues = StuckQueues::default();
        let mut at = |second: u64, level: Level| {
            let now = start + Duration::from_secs(second);
            let alerts = queues.look(&[level], Duration::from_secs(60), now);
            alerts.into_iter().filter_map(|alert| alert.kind).collect::<Vec<_>>()
        };
        assert!(at(0, level(5, "a")).is_empty());
        assert!(at(59, level(5, "a")).is_empty());
        assert!(at(60, level(5, "b")).is_empty(), "it moved just in time");
        assert!(at(100, level(0, "b")).is_empty(), "nothing waits");
        assert!(at(169, level(0, "b")).is_empty(), "still nothing waits");
        assert!(at(170, level(3, "b")).is_empty(), "only just waits again");
        assert_eq!(at(229, level(3, "b")), ["queue-stuck"]);
        assert!(at(300, level(9, "b")).is_empty(), "told once");
        assert!(at(300, level(900, "")).is_empty(), "more were added, none has ended");
        assert_eq!(at(301, level(9, "c")), ["queue-moves"]);
        let paused = Level { paused: true, ..level(9, "c") };
        assert!(at(900, paused).is_empty(), "somebody wanted that");
    }
}
