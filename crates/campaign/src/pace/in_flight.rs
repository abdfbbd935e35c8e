//! How many messages of an account are on their way at once: so many may still arrive after a pause.

use stampede_model::campaign::Rate;

/// Most messages on their way at once, whatever the limit is.
const MOST: u32 = 100;
/// Up to this many messages a minute are sent one after the other.
const ONE_BY_ONE: u128 = 60;

/// Most messages that are on their way at once under a limit; `None` is no limit.
///
/// One up to 60 messages a minute, else the messages of two seconds, at most 100.
pub fn in_flight(limit: Option<Rate>) -> u32 {
    let Some(Rate { max, per_ms }) = limit else { return MOST };
    if per_ms == 0 {
        return MOST;
    }
    let (max, per) = (u128::from(max), u128::from(per_ms));
    if max * 60_000 <= ONE_BY_ONE * per {
        return 1;
    }
    u32::try_from((2_000 * max).div_ceil(per)).unwrap_or(MOST).min(MOST)
}

/// The slowest of several limits that all apply: the account's, the campaign's, the channel's.
pub fn slowest(limits: impl IntoIterator<Item = Option<Rate>>) -> Option<Rate> {
    // max₁ / per₁ < max₂ / per₂, without division.
    let scaled = |one: &Rate, other: &Rate| u128::from(one.max) * u128::from(other.per_ms);
    limits.into_iter().flatten().min_by(|a, b| scaled(a, b).cmp(&scaled(b, a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(max: u32, per_ms: u64) -> Option<Rate> {
        Some(Rate { max, per_ms })
    }

    #[test]
    fn slow_accounts_have_one_message_on_its_way_and_fast_ones_two_seconds_of_them() {
        for (limit, expected) in [
            (rate(20, 60_000), 1),
            (rate(60, 60_000), 1),
            (rate(1, 1_000), 1),
            (rate(61, 60_000), 3),
            (rate(25, 1_000), 50),
            (rate(49, 1_000), 98),
            (rate(60, 1_000), 100),
            (rate(u32::MAX, 1), 100),
            (rate(0, 60_000), 1),
            (rate(1, u64::MAX), 1),
            (rate(5, 0), 100),
            (None, 100),
        ] {
            assert_eq!(in_flight(limit), expected, "{limit:?}");
        }
    }

    #[test]
    fn the_slowest_limit_is_found_whatever_its_window_is() {
        assert_eq!(slowest([rate(20, 60_000), None, rate(25, 1_000)]), rate(20, 60_000));
        assert_eq!(slowest([rate(1_000, 86_400_000), rate(20, 60_000)]), rate(1_000, 86_400_000));
        assert_eq!(slowest([rate(0, 1), rate(1, 60_000)]), rate(0, 1));
        assert_eq!(slowest([None, None]), None);
    }
}
