//! How many jobs of a campaign wait in the queue, and how long its feeder sleeps before it looks again.

use std::time::Duration;

use stampede_model::Timestamp;
use stampede_model::campaign::Rate;

/// The time whose messages are queued in advance.
const AHEAD_MS: u128 = 2 * 60_000;
/// Fewest jobs of a campaign in the queue.
const FEWEST: u32 = 50;
/// Most jobs of a campaign in the queue.
const MOST: u32 = 1_000;

/// Shortest sleep of a feeder.
const SHORTEST: Duration = Duration::from_millis(200);
/// Longest sleep of a feeder while recipients are due.
const LONGEST: Duration = Duration::from_secs(2);
/// Longest sleep of a feeder while no recipient is due: people may add or retry some meanwhile.
const LONGEST_IDLE: Duration = Duration::from_secs(30);

/// Most recipients of a campaign that are queued at once (K): two minutes of the limit, at least 50, at most 1,000.
pub fn portion(limit: Option<Rate>) -> u32 {
    let Some(Rate { max, per_ms }) = limit.filter(|limit| limit.per_ms > 0) else { return MOST };
    let ahead = u128::from(max) * AHEAD_MS / u128::from(per_ms);
    u32::try_from(ahead).unwrap_or(MOST).clamp(FEWEST, MOST)
}

/// How long a feeder sleeps after it has fed.
///
/// While recipients are due: until about half of its portion is sent, from 200 ms to 2 s. While none is due: until `next_at`, at
/// most 30 s.
pub fn feeder_sleep(limit: Option<Rate>, now: Timestamp, next_at: Option<Timestamp>) -> Duration {
    if let Some(next_at) = next_at {
        let wait = Duration::try_from(next_at.duration_since(now)).unwrap_or(Duration::ZERO);
        return wait.clamp(SHORTEST, LONGEST_IDLE);
    }
    let Some(Rate { max, per_ms }) = limit.filter(|limit| limit.per_ms > 0) else {
        return SHORTEST;
    };
    if max == 0 {
        return LONGEST;
    }
    let half = u128::from(portion(limit) / 2) * u128::from(per_ms) / u128::from(max);
    let half = Duration::from_millis(u64::try_from(half).unwrap_or(u64::MAX));
    half.clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(max: u32, per_ms: u64) -> Option<Rate> {
        Some(Rate { max, per_ms })
    }

    #[test]
    fn two_minutes_of_the_limit_are_queued() {
        for (limit, expected) in [
            (rate(20, 60_000), 50),
            (rate(100, 60_000), 200),
            (rate(25, 1_000), 1_000),
            (rate(0, 60_000), 50),
            (rate(u32::MAX, 1), 1_000),
            (rate(1, u64::MAX), 50),
            (rate(1, 0), 1_000),
            (None, 1_000),
        ] {
            assert_eq!(portion(limit), expected, "{limit:?}");
        }
    }

    #[test]
    fn a_feeder_sleeps_longer_when_messages_leave_slowly() {
        let now = Timestamp::UNIX_EPOCH;
        let ms = Duration::from_millis;
        assert_eq!(feeder_sleep(None, now, None), ms(200));
        assert_eq!(feeder_sleep(rate(5_000, 1_000), now, None), ms(200));
        assert_eq!(feeder_sleep(rate(1_000, 1_000), now, None), ms(500));
        assert_eq!(feeder_sleep(rate(20, 60_000), now, None), ms(2_000));
        assert_eq!(feeder_sleep(rate(0, 60_000), now, None), ms(2_000));
    }

    #[test]
    fn a_feeder_with_nothing_due_sleeps_until_something_is() {
        let now = Timestamp::UNIX_EPOCH;
        let at = |ms: i64| Some(Timestamp::from_millisecond(ms).unwrap());
        let sleeps = |next| feeder_sleep(rate(20, 60_000), now, next).as_millis();
        assert_eq!(sleeps(at(12_345)), 12_345);
        assert_eq!(sleeps(at(3_600_000)), 30_000);
        assert_eq!(sleeps(at(-5)), 200);
        assert_eq!(sleeps(Some(Timestamp::MAX)), 30_000);
    }
}
