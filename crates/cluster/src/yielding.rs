//! `WORKER_MODE=auto`: workers make way for the API, down to none if other nodes have workers.
//!
//! The ceiling is the most workers that the node may have. While the API is slow, the ceiling is halved every few seconds;
//! when the API has been quick for a while, it is raised again. The node announces the ceiling as its `max`, so that
//! a coordinator starts workers elsewhere.
//!
//! Several such nodes see each other's workers, and may drop their last ones in the same moment. A node that is called
//! back, because no node has a worker, keeps one until its API has recovered. Otherwise all nodes would stop and start
//! workers together for as long as their APIs are slow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Thresholds of making way for the API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiLimits {
    /// Nine of ten requests should be answered within this time.
    pub latency: Duration,
    /// Pause between two steps down.
    pub step: Duration,
    /// Time for which the API must have been quick before workers come back.
    pub recovery: Duration,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(300),
            step: Duration::from_secs(4),
            recovery: Duration::from_secs(15),
        }
    }
}

/// The state of the API and its node at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiSnapshot {
    /// Nine of ten requests were answered within this time; `None`: hardly any requests.
    pub latency: Option<Duration>,
    /// The ceiling now.
    pub ceiling: usize,
    /// Workers there should be now.
    pub workers: usize,
    /// Fewest workers.
    pub min: usize,
    /// Most workers.
    pub max: usize,
    /// Workers of other nodes.
    pub others: usize,
    /// The node was called back because no node had a worker, and its API has not recovered since.
    pub called_back: bool,
    /// Time since the ceiling was changed.
    pub since_change: Option<Duration>,
}

impl ApiSnapshot {
    /// Fewest workers that must stay: one, if no other node has workers, or if none had when this node dropped its
    /// last one.
    pub fn floor(&self) -> usize {
        if self.others > 0 && !self.called_back { self.min } else { self.min.max(1) }
    }

    /// Whether a worker has to be started because no node has one.
    pub fn is_needed(&self) -> bool {
        self.others == 0 && self.workers == 0 && self.min == 0
    }

    /// Whether the node counts as called back from now on.
    pub fn is_called_back(&self, limits: &ApiLimits) -> bool {
        self.is_needed() || (self.called_back && !self.has_recovered(limits))
    }

    fn has_recovered(&self, limits: &ApiLimits) -> bool {
        self.latency.is_none_or(|latency| latency <= limits.latency / 2)
            && self.is_over(limits.recovery)
    }

    fn is_over(&self, pause: Duration) -> bool {
        self.since_change.is_none_or(|since| since >= pause)
    }
}

/// The ceiling there should be now.
pub fn ceiling(now: &ApiSnapshot, limits: &ApiLimits) -> usize {
    let unchanged = now.ceiling.clamp(now.floor(), now.max);
    match now.latency {
        Some(latency) if latency > limits.latency => {
            if now.is_over(limits.step) {
                (now.ceiling.min(now.workers) / 2).clamp(now.floor(), now.max)
            } else {
                unchanged
            }
        }
        // Between the two thresholds nothing changes, or the ceiling would go back and forth.
        Some(latency) if latency > limits.latency / 2 => unchanged,
        _ if now.has_recovered(limits) => (now.ceiling * 2).max(1).clamp(now.floor(), now.max),
        _ => unchanged,
    }
}

/// Requests that are remembered, and for how long.
const REMEMBERED: (usize, Duration) = (1_024, Duration::from_secs(10));
/// Fewer requests than this say nothing about the API.
const ENOUGH: usize = 10;

/// Measures how quickly requests are answered. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LatencyMeter {
    answers: Arc<Mutex<VecDeque<(Instant, Duration)>>>,
}

impl LatencyMeter {
    /// Records that a request was answered after this time.
    pub fn record(&self, took: Duration) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() == REMEMBERED.0 {
            answers.pop_front();
        }
        answers.push_back((Instant::now(), took));
    }

    /// Nine of ten requests of the last seconds were answered within this time.
    pub fn ninth_of_ten(&self) -> Option<Duration> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        while answers.front().is_some_and(|(at, _)| at.elapsed() > REMEMBERED.1) {
            answers.pop_front();
        }
        if answers.len() < ENOUGH {
            return None;
        }
        let mut times: Vec<Duration> = answers.iter().map(|(_, took)| *took).collect();
        times.sort_unstable();
        times.get(times.len() * 9 / 10).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn quick() -> ApiSnapshot {
        ApiSnapshot {
            latency: Some(ms(20)),
            ceiling: 8,
            workers: 4,
            min: 0,
            max: 8,
            others: 3,
            called_back: false,
            since_change: None,
        }
    }

    #[test]
    fn workers_make_way_for_a_slow_api_and_come_back() {
        let slow = ApiSnapshot { latency: Some(ms(900)), ..quick() };
        let table = [
            ("quick", quick(), 8),
            ("nobody asks", ApiSnapshot { latency: None, ..quick() }, 8),
            ("slow", slow.clone(), 2),
            (
                "still slow, too soon",
                ApiSnapshot { since_change: Some(ms(900)), ..slow.clone() },
                8,
            ),
            ("the last one", ApiSnapshot { ceiling: 1, workers: 1, ..slow.clone() }, 0),
            (
                "the last one of all",
                ApiSnapshot { ceiling: 1, workers: 1, others: 0, ..slow.clone() },
                1,
            ),
            (
                "the last one, called back before",
                ApiSnapshot { ceiling: 1, workers: 1, called_back: true, ..slow.clone() },
                1,
            ),
            ("the minimum stays", ApiSnapshot { min: 2, ceiling: 2, workers: 2, ..slow }, 2),
            ("neither slow nor quick", ApiSnapshot { latency: Some(ms(200)), ..quick() }, 8),
            (
                "quick, but only just",
                ApiSnapshot { ceiling: 0, since_change: Some(ms(3_000)), ..quick() },
                0,
            ),
            (
                "quick for a while",
                ApiSnapshot { ceiling: 0, since_change: Some(ms(15_000)), ..quick() },
                1,
            ),
            (
                "and further up",
                ApiSnapshot { ceiling: 3, since_change: Some(ms(15_000)), ..quick() },
                6,
            ),
            (
                "the others are gone",
                ApiSnapshot { ceiling: 0, others: 0, since_change: Some(ms(10)), ..quick() },
                1,
            ),
        ];
        for (what, snapshot, wanted) in table {
            assert_eq!(ceiling(&snapshot, &ApiLimits::default()), wanted, "{what}");
        }
    }

    /// Two nodes that see what the other announced a second ago; returns how often the number of
    /// workers was changed, and how many seconds nobody worked.
    fn two_nodes(seconds: u64, latency: impl Fn(u64) -> Duration) -> (usize, usize, [usize; 2]) {
        let limits = ApiLimits::default();
        let node = ApiSnapshot { ceiling: 2, workers: 2, max: 2, others: 2, ..quick() };
        let (mut nodes, mut changed) = ([node.clone(), node], [None::<u64>; 2]);
        let (mut changes, mut nobody) = (0, 0);
        for second in 0..seconds {
            let announced = [nodes[0].workers, nodes[1].workers];
            for (me, node) in nodes.iter_mut().enumerate() {
                node.latency = Some(latency(second));
                node.others = announced[1 - me];
                node.since_change = changed[me].map(|at| Duration::from_secs(second - at));
                let ceiling = ceiling(node, &limits);
                let workers = if node.is_needed() { 1 } else { node.workers.min(ceiling) };
                node.called_back = node.is_called_back(&limits);
                changes += usize::from(workers != node.workers);
                if ceiling != node.ceiling {
                    changed[me] = Some(second);
                }
                (node.ceiling, node.workers) = (ceiling, workers);
            }
            nobody += usize::from(nodes.iter().all(|node| node.workers == 0));
        }
        (changes, nobody, nodes.map(|node| node.ceiling))
    }

    #[test]
    fn two_nodes_with_slow_apis_do_not_stop_and_start_together_for_ever() {
        let (changes, nobody, _) = two_nodes(600, |_| ms(900));
        assert!(changes <= 6, "2 to 1, 1 to 0 and back, each: {changes}");
        assert!(nobody <= 1, "{nobody} s without a worker");
        let slow_then_quick = |second| if second < 100 { ms(900) } else { ms(20) };
        assert_eq!(two_nodes(200, slow_then_quick).2, [2, 2], "both come back as a whole");
    }

    #[test]
    fn a_node_that_was_called_back_may_drop_its_last_worker_once_its_api_has_recovered() {
        let limits = ApiLimits::default();
        let back = ApiSnapshot { ceiling: 1, workers: 1, called_back: true, ..quick() };
        let just = ApiSnapshot { since_change: Some(ms(14_000)), ..back.clone() };
        let slow = ApiSnapshot { latency: Some(ms(900)), ..back.clone() };
        let needed = ApiSnapshot { called_back: false, others: 0, workers: 0, ..quick() };
        assert!(needed.is_called_back(&limits) && slow.is_called_back(&limits));
        assert!(just.is_called_back(&limits) && !back.is_called_back(&limits));
        assert!(!ApiSnapshot { min: 1, ..needed }.is_called_back(&limits), "others see to that");
    }

    #[test]
    fn one_slow_request_of_many_is_no_slow_api() {
        let meter = LatencyMeter::default();
        for _ in 0..9 {
            meter.record(ms(5));
        }
        assert_eq!(meter.ninth_of_ten(), None, "too few to tell");
        meter.record(ms(5));
        meter.record(ms(5_000));
        assert_eq!(meter.ninth_of_ten(), Some(ms(5)));
        for _ in 0..3 {
            meter.record(ms(800));
        }
        assert_eq!(meter.ninth_of_ten(), Some(ms(800)));
    }
}
