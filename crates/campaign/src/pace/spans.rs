//! How long the spans of a report are: a minute, or more if the campaign lasts so long that there would be too many.

use std::time::Duration;

use stampede_model::Timestamp;

/// Most spans of a report: half a day of minutes.
const MOST: u64 = 720;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Lengths that people read easily, in seconds.
const LENGTHS: [u64; 9] =
    [MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY];

/// The length of a span of a campaign whose first and last attempt began then; a campaign of years has days.
pub fn span_of_report(first_and_last: Option<(Timestamp, Timestamp)>) -> Duration {
    let lasted = first_and_last.map_or(0, |(first, last)| last.as_second() - first.as_second());
    let lasted = u64::try_from(lasted).unwrap_or_default();
    let fits = |length: &&u64| lasted / **length < MOST;
    Duration::from_secs(*LENGTHS.iter().find(fits).unwrap_or(&DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_minutes_until_there_are_too_many_of_them() {
        let span = |seconds: u64| {
            let first = Timestamp::UNIX_EPOCH;
            span_of_report(Some((first, first + Duration::from_secs(seconds)))).as_secs()
        };
        assert_eq!(span_of_report(None), Duration::from_secs(MINUTE));
        assert_eq!(span(0), MINUTE);
        assert_eq!(span(12 * HOUR - 1), MINUTE);
        assert_eq!(span(12 * HOUR), 2 * MINUTE);
        assert_eq!(span(7 * DAY), 15 * MINUTE);
        assert_eq!(span(10_000 * DAY), DAY);
        let back = span_of_report(Some((Timestamp::MAX, Timestamp::UNIX_EPOCH)));
        assert_eq!(back, Duration::from_secs(MINUTE), "a clock that was set back");
    }
}
