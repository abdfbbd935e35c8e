//! `WORKER_MODE=auto`: workers make way for the API, down to none if others can work.
//!
//! A ceiling over the number of workers is halved while the API is slow, every few seconds, and
//! raised again when it has been quick for a while. The ceiling is what the node announces as its
//! most, so that a coordinator sends the work elsewhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When workers make way.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiLimits {
    /// Nine of ten requests should be answered within this time.
    pub latency: Duration,
    /// Pause between two steps down.
    pub step: Duration,
    /// How long the API must have been quick before workers come back.
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

/// What the API and its machine look like.
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
    /// Since the ceiling was changed.
    pub since_change: Option<Duration>,
}

impl ApiSnapshot {
    /// Fewest workers that must stay: one, if nobody else works.
    pub fn floor(&self) -> usize {
        if self.others > 0 { self.min } else { self.min.max(1) }
    }
}

/// The ceiling there should be.
pub fn ceiling(now: &ApiSnapshot, limits: &ApiLimits) -> usize {
    let over = |pause: Duration| now.since_change.is_none_or(|since| since >= pause);
    let unchanged = now.ceiling.clamp(now.floor(), now.max);
    match now.latency {
        Some(latency) if latency > limits.latency => {
            if over(limits.step) {
                (now.ceiling.min(now.workers) / 2).clamp(now.floor(), now.max)
            } else {
                unchanged
            }
        }
        // Between the two nothing is changed, or it would go back and forth.
        Some(latency) if latency > limits.latency / 2 => unchanged,
        _ if over(limits.recovery) => (now.ceiling * 2).max(1).clamp(now.floor(), now.max),
        _ => unchanged,
    }
}

/// Requests that are remembered, and for how long.
const REMEMBERED: (usize, Duration) = (1_024, Duration::from_secs(10));
/// Fewer requests than this say nothing about the API.
const ENOUGH: usize = 10;

/// How quickly requests are answered. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LatencyMeter {
    answers: Arc<Mutex<VecDeque<(Instant, Duration)>>>,
}

impl LatencyMeter {
    /// A request was answered after this time.
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
