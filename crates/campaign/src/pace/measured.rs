//! How fast a campaign really is: by its last attempts, not by its limits. A provider that answers slowly is slower than any limit.

use std::time::Duration;

use stampede_model::Timestamp;
use stampede_model::campaign::Rate;

/// Attempts that began in this time are looked at.
pub const MEASURED_OVER: Duration = Duration::from_secs(120);
/// Most attempts that are looked at.
pub const MOST_MEASURED: u32 = 500;
/// Fewer say nothing.
const FEWEST: u64 = 10;

/// The last attempts of a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// How many there are.
    pub attempts: u64,
    /// When the first of them began.
    pub first: Timestamp,
    /// When the last of them ended.
    pub last: Timestamp,
    /// Messages that are on their way.
    pub sending: u64,
}

/// How fast messages leave; `None`: it cannot be said yet, or they are so fast that only the limits count.
///
/// The time while nothing is on its way does not count: the campaign waits for a limit then, and limits have their own arithmetic.
pub fn measured_rate(measured: &Measured, now: Timestamp) -> Option<Rate> {
    let Measured { attempts, first, last, sending } = *measured;
    // The first messages are answered at the same time: before that, only the fastest of them are known.
    if attempts < FEWEST.max(sending) {
        return None;
    }
    let end = if sending > 0 { now.max(last) } else { last };
    let span = u128::try_from(end.duration_since(first).as_millis()).unwrap_or_default();
    let attempts = u128::from(attempts);
    // In steps of a tenth of a second at most, so that the last message of a step is not told to leave with its first.
    let (max, per) = match attempts * 100 / span.max(1) {
        0 => (1, span / attempts),
        in_a_tenth => (in_a_tenth, 100),
    };
    let max = u32::try_from(max).ok()?;
    Some(Rate { max, per_ms: u64::try_from(per).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(attempts: u64, sending: u64, last: i64, now: i64) -> Option<(u32, u64)> {
        let at = |ms| Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap();
        let measured = Measured { attempts, first: at(0), last: at(last), sending };
        measured_rate(&measured, at(now)).map(|rate| (rate.max, rate.per_ms))
    }

    #[test]
    fn a_slow_provider_is_seen_in_the_last_attempts() {
        // 32 at a time, 4 s each.
        assert_eq!(rate(64, 32, 8_000, 8_000), Some((1, 125)));
        assert_eq!(rate(64, 32, 8_000, 16_000), Some((1, 250)), "the provider hangs");
        assert_eq!(rate(480, 8, 60_000, 60_000), Some((1, 125)));
        assert_eq!(rate(500, 10, 1_000, 1_000), Some((50, 100)));
    }

    #[test]
    fn the_time_while_a_campaign_waits_for_a_limit_does_not_count() {
        assert_eq!(rate(20, 0, 1_000, 59_000), Some((2, 100)));
    }

    #[test]
    fn too_few_attempts_say_nothing() {
        assert_eq!(rate(9, 0, 4_000, 4_000), None);
        assert_eq!(
            rate(20, 32, 4_000, 4_000),
            None,
            "the others of the first ones are not answered"
        );
        assert_eq!(rate(10, 0, 0, 0), Some((1_000, 100)), "all in the same millisecond");
        assert_eq!(rate(10, 0, -5, -5), Some((1_000, 100)), "a clock that was set back");
    }
}
