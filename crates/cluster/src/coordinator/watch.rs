//! What a coordinator notices besides: nodes that died, queues in which nothing moves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use stampede_broker::{Alert, Level};

/// Notices queues in which jobs wait and none ends.
#[derive(Default)]
pub(crate) struct StuckQueues {
    seen: BTreeMap<String, Seen>,
}

struct Seen {
    last_ended: String,
    since: Instant,
    raised: bool,
}

impl StuckQueues {
    /// Looks at the queues; returns what an operator should know.
    pub(crate) fn look(&mut self, levels: &[Level], after: Duration, now: Instant) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for level in levels {
            let idle = level.waiting == 0 || level.paused;
            let seen = self.seen.entry(level.queue.clone()).or_insert_with(|| Seen {
                last_ended: level.last_ended.clone(),
                since: now,
                raised: false,
            });
            if idle || seen.last_ended != level.last_ended {
                if seen.raised {
                    alerts.push(Alert {
                        kind: "queue-moves",
                        subject: level.queue.clone(),
                        message: format!("queue {} moves again", level.queue),
                    });
                }
                *seen = Seen { last_ended: level.last_ended.clone(), since: now, raised: false };
            } else if !seen.raised && now.duration_since(seen.since) >= after {
                seen.raised = true;
                alerts.push(Alert {
                    kind: "queue-stuck",
                    subject: level.queue.clone(),
                    message: format!(
                        "queue {} is stuck: {} jobs wait, {} are being worked on, and none has ended for {} s",
                        level.queue,
                        level.waiting,
                        level.active,
                        now.duration_since(seen.since).as_secs()
                    ),
                });
            }
        }
        alerts
    }
}

/// Nodes that were there before and are not now.
pub(crate) fn missing(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    before.difference(now).cloned().collect()
}

/// What an operator should know about a node that vanished without a word.
pub(crate) fn dead_node(name: &str) -> Alert {
    Alert {
        kind: "node-dead",
        subject: name.to_owned(),
        message: format!(
            "node {name} is gone without a word; its jobs are taken over by others as their locks expire"
        ),
    }
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
            last_ended: last_ended.to_owned(),
        }
    }

    #[test]
    fn a_queue_is_stuck_when_jobs_wait_and_none_ends_and_that_is_told_once() {
        let start = Instant::now();
        let mut queues = StuckQueues::default();
        let mut at = |second: u64, level: Level| {
            let now = start + Duration::from_secs(second);
            let alerts = queues.look(&[level], Duration::from_secs(60), now);
            alerts.into_iter().map(|alert| alert.kind).collect::<Vec<_>>()
        };
        assert!(at(0, level(5, "a")).is_empty());
        assert!(at(59, level(5, "a")).is_empty());
        assert!(at(60, level(5, "b")).is_empty(), "it moved just in time");
        assert!(at(100, level(0, "b")).is_empty(), "nothing waits");
        assert!(at(169, level(0, "b")).is_empty(), "still nothing waits");
        assert!(at(170, level(3, "b")).is_empty(), "only just waits again");
        assert_eq!(at(229, level(3, "b")), ["queue-stuck"]);
        assert!(at(300, level(9, "b")).is_empty(), "told once");
        assert_eq!(at(301, level(9, "c")), ["queue-moves"]);
        let paused = Level { paused: true, ..level(9, "c") };
        assert!(at(900, paused).is_empty(), "somebody wanted that");
    }
}
