//! How long tasks take: percentiles of the last thousand, and a histogram of all.

use std::time::Duration;

/// Upper bounds of the histogram, in seconds.
pub const BOUNDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Percentiles are of so many durations, the last ones.
const RECENT: usize = 1_024;

/// Durations as they are counted.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    recent: Vec<Duration>,
    /// Which of the recent ones is the oldest, once there are enough.
    oldest: usize,
    recent_sum: Duration,
    sum: Duration,
    count: u64,
    buckets: [u64; BOUNDS.len()],
}

impl Durations {
    pub(crate) fn record(&mut self, duration: Duration) {
        self.sum += duration;
        self.count += 1;
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.recent_sum += duration;
        if self.recent.len() < RECENT {
            self.recent.push(duration);
        } else {
            let forgotten = std::mem::replace(&mut self.recent[self.oldest], duration);
            self.recent_sum -= forgotten;
            self.oldest = (self.oldest + 1) % RECENT;
        }
    }

    /// The mean of the recent ones; zero if there are none.
    pub(crate) fn mean(&self) -> Duration {
        self.recent_sum.checked_div(self.recent.len() as u32).unwrap_or_default()
    }

    pub(crate) fn timing(&self) -> Timing {
        let mut sorted = self.recent.clone();
        sorted.sort_unstable();
        let mut cumulative = self.buckets;
        for at in 1..cumulative.len() {
            cumulative[at] += cumulative[at - 1];
        }
        Timing {
            p50: percentile(&sorted, 50),
            p95: percentile(&sorted, 95),
            p99: percentile(&sorted, 99),
            count: self.count,
            sum: self.sum,
            cumulative,
        }
    }
}

/// The smallest duration that so many percent do not exceed; zero if there are none.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// How long tasks take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timing {
    /// Half of the last 1,024 took at most so long.
    pub p50: Duration,
    /// 95 % of the last 1,024 took at most so long.
    pub p95: Duration,
    /// 99 % of the last 1,024 took at most so long.
    pub p99: Duration,
    /// How many there were since the start.
    pub count: u64,
    /// All of them together.
    pub sum: Duration,
    /// How many since the start took at most as long as each of [`BOUNDS`].
    pub cumulative: [u64; BOUNDS.len()],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn percentiles_are_durations_that_occurred() {
        let mut durations = Durations::default();
        assert_eq!(durations.timing(), Timing::default());
        for ms in (1..=100).rev() {
            durations.record(millis(ms));
        }
        let timing = durations.timing();
        assert_eq!([timing.p50, timing.p95, timing.p99], [50, 95, 99].map(millis));
        assert_eq!(
            (timing.count, timing.sum, durations.mean()),
            (100, millis(5_050), millis(50) + Duration::from_micros(500))
        );
        assert_eq!(timing.cumulative[..7], [1, 2, 5, 10, 25, 50, 100]);
    }

    #[test]
    fn only_the_last_thousand_count_for_percentiles_and_mean() {
        let mut durations = Durations::default();
        for _ in 0..RECENT {
            durations.record(Duration::from_secs(60));
        }
        for _ in 0..RECENT {
            durations.record(millis(2));
        }
        let timing = durations.timing();
        assert_eq!((timing.p99, durations.mean()), (millis(2), millis(2)));
        assert_eq!(timing.count, 2 * RECENT as u64);
        assert_eq!(timing.cumulative[12], RECENT as u64, "60 s are above all bounds");
    }
}
