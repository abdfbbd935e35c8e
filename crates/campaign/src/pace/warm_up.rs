//! Warm-up: the most messages of a day grow from day to day. Days are those of the account's time zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use stampede_model::campaign::WarmUp;

/// A product such as 100 × 1.15 is 114.99999999999999 in floating point. Products this close below a whole number count as it.
const ROUNDING: f64 = 1e-9;

/// The most messages of day `day` after the account's first message, which is day 0: `min(max, floor(start × factorᵈ))`.
pub fn cap_of_day(warm_up: &WarmUp, day: u32) -> u32 {
    let WarmUp { start, factor, max } = *warm_up;
    let grown = f64::from(start) * factor.powi(i32::try_from(day).unwrap_or(i32::MAX));
    // Casts saturate: what is infinite is the greatest number, what is no number is 0.
    max.min((grown + ROUNDING * grown.abs().clamp(1.0, 1e6)).floor() as u32)
}

/// The number of the day on which `now` is, 0 on the day of the account's first message, and before it.
pub fn day_of(first_sent_at: Option<Timestamp>, now: Timestamp, zone: &TimeZone) -> u32 {
    let Some(first) = first_sent_at else { return 0 };
    let days = date(first, zone).until(date(now, zone)).map_or(0, |span| span.get_days());
    u32::try_from(days).unwrap_or(0)
}

/// The day of `now` as it stands in the name of its limit: `2026-11-18`.
pub fn day_name(now: Timestamp, zone: &TimeZone) -> String {
    date(now, zone).to_string()
}

/// The beginning of the day on which `now` is.
pub fn day_began(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let midnight = date(now, zone).to_zoned(zone.clone());
    // Only the first day of the calendar has no beginning.
    midnight.map_or(Timestamp::MIN, |midnight| midnight.timestamp())
}

/// The beginning of the day after `now`.
pub fn next_day(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let begins = date(now, zone)
        .checked_add(1.day())
        .and_then(|next| next.to_zoned(zone.clone()))
        .map(|midnight| midnight.timestamp());
    // Only the last day of the calendar has no next one.
    begins.unwrap_or(Timestamp::MAX)
}

pub(crate) fn date(at: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(at).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm_up(start: u32, factor: f64, max: u32) -> WarmUp {
        WarmUp { start, factor, max }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    #[test]
    fn the_cap_grows_by_its_factor_up_to_its_end() {
        let caps = |rule: WarmUp| [0, 1, 2, 3, 10].map(|day| cap_of_day(&rule, day));
        assert_eq!(caps(warm_up(50, 2.0, 1_000)), [50, 100, 200, 400, 1_000]);
        assert_eq!(caps(warm_up(10, 1.5, 1_000_000)), [10, 15, 22, 33, 576]);
        assert_eq!(caps(warm_up(100, 1.15, 1_000)), [100, 115, 132, 152, 404]);
        assert_eq!(caps(warm_up(7, 1.0, 100)), [7; 5]);
        assert_eq!(caps(warm_up(500, 2.0, 100)), [100; 5]);
        assert_eq!(caps(warm_up(0, 2.0, 100)), [0; 5]);
    }

    #[test]
    fn a_cap_after_very_many_days_is_the_end_of_the_growth() {
        assert_eq!(cap_of_day(&warm_up(1, 1e300, 9), u32::MAX), 9);
        assert_eq!(cap_of_day(&warm_up(u32::MAX, 3.0, u32::MAX), 1_000), u32::MAX);
        assert_eq!(cap_of_day(&warm_up(5, f64::NAN, 9), 3), 0);
    }

    #[test]
    fn days_are_counted_in_the_zone_of_the_account() {
        let berlin = zone("Europe/Berlin");
        let first = Some(at("2026-03-27T23:30:00Z"));
        // It is the 28th in Berlin already.
        assert_eq!(day_of(first, at("2026-03-28T22:59:59Z"), &berlin), 0);
        assert_eq!(day_of(first, at("2026-03-28T23:00:00Z"), &berlin), 1);
        // The 29th has 23 hours.
        assert_eq!(day_of(first, at("2026-03-29T22:00:00Z"), &berlin), 2);
        assert_eq!(day_of(first, at("2026-03-29T22:00:00Z"), &TimeZone::UTC), 2);
        assert_eq!(day_of(None, at("2026-03-29T22:00:00Z"), &berlin), 0);
        assert_eq!(day_of(first, at("2020-01-01T00:00:00Z"), &berlin), 0);
        assert_eq!(day_name(at("2026-03-27T23:30:00Z"), &berlin), "2026-03-28");
    }

    #[test]
    fn a_day_began_at_the_first_moment_that_has_its_date() {
        let began = |now, name| day_began(at(now), &zone(name)).to_string();
        assert_eq!(began("2026-03-29T12:00:00Z", "Europe/Berlin"), "2026-03-28T23:00:00Z");
        assert_eq!(began("2026-03-28T23:00:00Z", "Europe/Berlin"), "2026-03-28T23:00:00Z");
        assert_eq!(began("2026-03-29T12:00:00Z", "Asia/Beirut"), "2026-03-28T22:00:00Z");
    }

    #[test]
    fn the_next_day_begins_at_the_first_moment_that_has_its_date() {
        let next = |now, name| next_day(at(now), &zone(name)).to_string();
        assert_eq!(next("2026-03-28T12:00:00Z", "Europe/Berlin"), "2026-03-28T23:00:00Z");
        assert_eq!(next("2026-03-29T12:00:00Z", "Europe/Berlin"), "2026-03-29T22:00:00Z");
        assert_eq!(next("2026-10-25T12:00:00Z", "Europe/Berlin"), "2026-10-25T23:00:00Z");
        // Lebanon's clock goes forward at midnight: the day begins at 01:00.
        assert_eq!(next("2026-03-28T12:00:00Z", "Asia/Beirut"), "2026-03-28T22:00:00Z");
        assert_eq!(next_day(Timestamp::MAX, &TimeZone::UTC), Timestamp::MAX);
    }
}
