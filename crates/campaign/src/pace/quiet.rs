//! Quiet hours: when nothing is sent, and when sending goes on.
//!
//! On each of its days, quiet hours begin at `from` and end before `to`; over midnight if `to` is not later than `from`. `days`
//! are the days on which they begin: Friday 21:00 to 09:00 is quiet on Saturday morning, too.
//!
//! When the clock changes:
//! - A time that the clock skips stands for the moment of the change.
//! - A time that comes twice begins quiet hours the first time and ends them the second time. So nothing is ever sent while a clock
//!   on the wall shows a quiet time.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};
use stampede_model::campaign::{Day, QuietHours};

use super::warm_up::date;

/// Intervals that follow one another without a gap are joined up to this number: a bit more than a week of days.
const JOINED: usize = 40;
/// Days in which the next quiet hours are looked for: `days` repeat every week.
const AHEAD: i32 = 8;

/// Time zones by which quiet hours may be read, each by its IANA name.
///
/// The first one that is given counts: the recipient's, that of the quiet hours themselves, the campaign's, the account's; UTC
/// if there is none. A name that is unknown counts as not given: names are checked where people enter them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zones<'z> {
    /// The recipient's own zone.
    pub recipient: Option<&'z str>,
    /// The campaign's zone.
    pub campaign: Option<&'z str>,
    /// The account's zone.
    pub account: Option<&'z str>,
}

impl Zones<'_> {
    /// The zone in which quiet hours are read.
    pub fn for_quiet_hours(&self, hours: &QuietHours) -> TimeZone {
        first([self.recipient, hours.time_zone.as_deref(), self.campaign, self.account])
    }

    /// The zone of the days of an account, for its warm-up: only the account's own counts, because all campaigns share them.
    pub fn for_days(&self) -> TimeZone {
        first([self.account])
    }
}

fn first<'z>(names: impl IntoIterator<Item = Option<&'z str>>) -> TimeZone {
    names.into_iter().flatten().find_map(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Quiet hours with the zone in which they are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Quiet {
    /// The hours.
    pub hours: QuietHours,
    /// The zone.
    pub zone: TimeZone,
}

impl Quiet {
    /// Quiet hours, read in the zone that [`Zones`] gives.
    pub fn new(hours: &QuietHours, zones: &Zones<'_>) -> Self {
        Self { hours: hours.clone(), zone: zones.for_quiet_hours(hours) }
    }

    /// The first quiet interval that ends after `now`, from its beginning until before its end. Intervals that touch are one.
    fn next_interval(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let today = date(now, &self.zone);
        // Two days back: hours over midnight, and zones in which a day was skipped.
        let mut intervals = (-2..=AHEAD)
            .filter_map(|days| self.interval(today.checked_add(days.days()).ok()?))
            .filter(|(_, end)| *end > now);
        let (begin, mut end) = intervals.next()?;
        for (next_begin, next_end) in intervals {
            if next_begin > end {
                break;
            }
            end = end.max(next_end);
        }
        Some((begin, end))
    }

    /// The quiet interval that begins on a day.
    fn interval(&self, day: jiff::civil::Date) -> Option<(Timestamp, Timestamp)> {
        let QuietHours { from, to, ref days, .. } = self.hours;
        if days.as_ref().is_some_and(|days| !days.contains(&day_of_week(day.weekday()))) {
            return None;
        }
        let last = if to > from { day } else { day.tomorrow().ok()? };
        let begin = moment(day.to_datetime(from), &self.zone, Edge::Begin)?;
        let end = moment(last.to_datetime(to), &self.zone, Edge::End)?;
        (begin < end).then_some((begin, end))
    }
}

/// Which edge of quiet hours a time is.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Begin,
    End,
}

/// The moment at which a clock on the wall reaches a time.
fn moment(time: DateTime, zone: &TimeZone, edge: Edge) -> Option<Timestamp> {
    let offset = match zone.to_ambiguous_timestamp(time).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Fold { before, after } => match edge {
            Edge::Begin => before,
            Edge::End => after,
        },
        AmbiguousOffset::Gap { after, .. } => {
            // By the later offset, a skipped time lies before the change.
            let earlier = after.to_timestamp(time).ok()?;
            return zone.following(earlier).next().map(|change| change.timestamp());
        }
    };
    offset.to_timestamp(time).ok()
}

fn day_of_week(day: Weekday) -> Day {
    match day {
        Weekday::Monday => Day::Monday,
        Weekday::Tuesday => Day::Tuesday,
        Weekday::Wednesday => Day::Wednesday,
        Weekday::Thursday => Day::Thursday,
        Weekday::Friday => Day::Friday,
        Weekday::Saturday => Day::Saturday,
        Weekday::Sunday => Day::Sunday,
    }
}

/// When sending may go on under all of these quiet hours, the account's and the campaign's; `None`: it may now.
///
/// Quiet hours that never end ([`never_opens`]) give a moment about a week ahead, at which the caller asks again.
pub fn opens_at(quiet: &[Quiet], now: Timestamp) -> Option<Timestamp> {
    let mut at = now;
    for _ in 0..JOINED {
        let ends = quiet.iter().filter_map(|one| one.next_interval(at));
        let Some(end) = ends.filter(|(begin, _)| *begin <= at).map(|(_, end)| end).max() else {
            break;
        };
        at = end;
    }
    (at > now).then_some(at)
}

/// When the next quiet hours begin after `now`, at which it is not quiet; `None`: not within a week.
pub(crate) fn closes_at(quiet: &[Quiet], now: Timestamp) -> Option<Timestamp> {
    quiet.iter().filter_map(|one| one.next_interval(now)).map(|(begin, _)| begin).min()
}

/// Whether quiet hours leave no time to send at all: from a time to the same time, on every day. Such hours are to be refused.
pub fn never_opens(hours: &QuietHours) -> bool {
    let all = [
        Day::Monday,
        Day::Tuesday,
        Day::Wednesday,
        Day::Thursday,
        Day::Friday,
        Day::Saturday,
        Day::Sunday,
    ];
    let is_daily = hours.days.as_ref().is_none_or(|days| all.iter().all(|day| days.contains(day)));
    hours.from == hours.to && is_daily
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    pub(crate) fn quiet(from: &str, to: &str, days: Option<Vec<Day>>, zone: &str) -> Quiet {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let hours = QuietHours { from, to, days, time_zone: None };
        Quiet { hours, zone: TimeZone::get(zone).unwrap() }
    }

    fn opens(quiet: &Quiet, now: &str) -> Option<String> {
        opens_at(std::slice::from_ref(quiet), at(now)).map(|at| at.to_string())
    }

    #[test]
    fn quiet_hours_are_half_open() {
        let noon = quiet("12:00", "13:00", None, "UTC");
        assert_eq!(opens(&noon, "2026-05-01T11:59:59.999Z"), None);
        let end = Some("2026-05-01T13:00:00Z".to_owned());
        assert_eq!(opens(&noon, "2026-05-01T12:00:00Z"), end);
        assert_eq!(opens(&noon, "2026-05-01T12:59:59.999Z"), end);
        assert_eq!(opens(&noon, "2026-05-01T13:00:00Z"), None);
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        let night = quiet("21:00", "09:00", None, "Europe/Berlin");
        let end = Some("2026-05-02T07:00:00Z".to_owned());
        assert_eq!(opens(&night, "2026-05-01T19:00:00Z"), end);
        assert_eq!(opens(&night, "2026-05-02T01:00:00Z"), end);
        assert_eq!(opens(&night, "2026-05-02T07:00:00Z"), None);
        assert_eq!(opens(&night, "2026-05-02T18:59:59Z"), None);
        let until_midnight = quiet("22:00", "00:00", None, "UTC");
        assert_eq!(
            opens(&until_midnight, "2026-05-01T23:00:00Z"),
            Some("2026-05-02T00:00:00Z".into())
        );
        assert_eq!(opens(&until_midnight, "2026-05-02T00:00:00Z"), None);
    }

    #[test]
    fn days_are_those_on_which_quiet_hours_begin() {
        // 1 May 2026 is a Friday.
        let friday = quiet("21:00", "09:00", Some(vec![Day::Friday]), "UTC");
        assert_eq!(opens(&friday, "2026-05-01T05:00:00Z"), None, "Thursday's night is not quiet");
        assert_eq!(opens(&friday, "2026-05-02T05:00:00Z"), Some("2026-05-02T09:00:00Z".into()));
        assert_eq!(opens(&friday, "2026-05-02T22:00:00Z"), None);
        let weekend = quiet("00:00", "00:00", Some(vec![Day::Saturday, Day::Sunday]), "UTC");
        assert_eq!(opens(&weekend, "2026-05-02T12:00:00Z"), Some("2026-05-04T00:00:00Z".into()));
        assert_eq!(opens(&weekend, "2026-05-01T23:59:59Z"), None);
        assert_eq!(
            opens(&quiet("10:00", "11:00", Some(vec![]), "UTC"), "2026-05-01T10:30:00Z"),
            None
        );
    }

    #[test]
    fn a_night_in_which_the_clock_goes_forward_is_an_hour_shorter() {
        let night = quiet("21:00", "09:00", None, "Europe/Berlin");
        assert_eq!(opens(&night, "2026-03-28T20:00:00Z"), Some("2026-03-29T07:00:00Z".into()));
        assert_eq!(opens(&night, "2026-03-28T19:59:59Z"), None);
        // 02:30 does not exist on 29 March: the clock goes from 02:00 to 03:00 at 01:00 UTC.
        let begins = quiet("02:30", "05:00", None, "Europe/Berlin");
        assert_eq!(opens(&begins, "2026-03-29T00:59:59Z"), None);
        assert_eq!(opens(&begins, "2026-03-29T01:00:00Z"), Some("2026-03-29T03:00:00Z".into()));
        let ends = quiet("01:00", "02:30", None, "Europe/Berlin");
        assert_eq!(opens(&ends, "2026-03-29T00:30:00Z"), Some("2026-03-29T01:00:00Z".into()));
        assert_eq!(opens(&ends, "2026-03-29T01:00:00Z"), None);
        // Hours that lie in the skipped hour alone are none on that day.
        let skipped = quiet("02:10", "02:50", None, "Europe/Berlin");
        assert_eq!(opens(&skipped, "2026-03-29T01:00:00Z"), None);
    }

    #[test]
    fn a_night_in_which_the_clock_goes_back_is_an_hour_longer() {
        let night = quiet("21:00", "09:00", None, "Europe/Berlin");
        assert_eq!(opens(&night, "2026-10-24T19:00:00Z"), Some("2026-10-25T08:00:00Z".into()));
        // 02:30 comes twice on 25 October: at 00:30 and at 01:30 UTC.
        let ends = quiet("01:00", "02:30", None, "Europe/Berlin");
        assert_eq!(opens(&ends, "2026-10-25T00:45:00Z"), Some("2026-10-25T01:30:00Z".into()));
        let begins = quiet("02:30", "05:00", None, "Europe/Berlin");
        assert_eq!(opens(&begins, "2026-10-25T00:29:59Z"), None);
        assert_eq!(opens(&begins, "2026-10-25T00:30:00Z"), Some("2026-10-25T04:00:00Z".into()));
    }

    #[test]
    fn work_waits_for_the_end_of_all_quiet_hours() {
        let account = quiet("21:00", "09:00", None, "UTC");
        let campaign = quiet("08:30", "10:00", None, "UTC");
        let opens = opens_at(&[campaign, account], at("2026-05-01T22:00:00Z"));
        assert_eq!(opens, Some(at("2026-05-02T10:00:00Z")));
        assert_eq!(opens_at(&[], at("2026-05-01T22:00:00Z")), None);
    }

    #[test]
    fn the_recipients_zone_goes_before_all_others() {
        let mut hours = quiet("21:00", "09:00", None, "UTC").hours;
        let zones = |recipient, campaign, account| Zones { recipient, campaign, account };
        let name = |hours: &QuietHours, zones: Zones<'_>| {
            zones.for_quiet_hours(hours).iana_name().map(str::to_owned).unwrap()
        };
        assert_eq!(name(&hours, zones(None, None, None)), "UTC");
        assert_eq!(name(&hours, zones(None, None, Some("Asia/Tokyo"))), "Asia/Tokyo");
        let both = zones(None, Some("Europe/Paris"), Some("Asia/Tokyo"));
        assert_eq!(name(&hours, both), "Europe/Paris");
        hours.time_zone = Some("Europe/Berlin".to_owned());
        assert_eq!(name(&hours, both), "Europe/Berlin");
        let all = zones(Some("America/Lima"), Some("Europe/Paris"), Some("Asia/Tokyo"));
        assert_eq!(name(&hours, all), "America/Lima");
        let unknown = zones(Some("Mars/Base"), None, None);
        assert_eq!(name(&hours, unknown), "Europe/Berlin");
        assert_eq!(both.for_days().iana_name(), Some("Asia/Tokyo"));
    }

    #[test]
    fn hours_that_never_end_are_known_and_asked_again_after_a_week() {
        let always = quiet("09:00", "09:00", None, "UTC");
        assert!(never_opens(&always.hours));
        let now = at("2026-05-01T12:00:00Z");
        let again = opens_at(std::slice::from_ref(&always), now).unwrap();
        assert!(again.duration_since(now).as_hours() >= 24 * 7);
        assert!(!never_opens(&quiet("09:00", "09:00", Some(vec![Day::Monday]), "UTC").hours));
        assert!(!never_opens(&quiet("09:00", "08:59", None, "UTC").hours));
        assert_eq!(opens(&quiet("09:00", "08:59", None, "UTC"), "2026-05-01T08:59:30Z"), None);
    }

    /// Whether a clock on the wall shows a quiet time, on the days that count.
    fn is_quiet_on_the_wall(quiet: &Quiet, now: Timestamp) -> bool {
        let wall = quiet.zone.to_datetime(now);
        let QuietHours { from, to, ref days, .. } = quiet.hours;
        let counts = |date: jiff::civil::Date| {
            days.as_ref().is_none_or(|days| days.contains(&day_of_week(date.weekday())))
        };
        let (date, time) = (wall.date(), wall.time());
        let before = date.yesterday().unwrap();
        if to > from {
            counts(date) && time >= from && time < to
        } else {
            counts(date) && time >= from || counts(before) && time < to
        }
    }

    #[test]
    fn nothing_is_sent_while_a_clock_on_the_wall_shows_a_quiet_time() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let zones =
            ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "UTC"];
        // A day before each change of the clock, for two to three days.
        let begins = ["2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z", "2026-04-04T00:00:00Z"];
        let (mut compared, mut differed) = (0_u32, 0_u32);
        for _ in 0..40 {
            let time = |random: &mut fastrand::Rng| {
                format!("{:02}:{:02}", random.u8(..24), 10 * random.u8(..6))
            };
            let (from, to) = (time(&mut random), time(&mut random));
            let days = random.bool().then(|| vec![Day::Friday, Day::Saturday, Day::Sunday]);
            let quiet = quiet(&from, &to, days, zones[random.usize(..zones.len())]);
            let begin = at(begins[random.usize(..begins.len())]);
            for minutes in (0..3 * 24 * 60).step_by(10) {
                let now = begin + minutes.minutes();
                let is_quiet = opens_at(std::slice::from_ref(&quiet), now).is_some();
                let on_the_wall = is_quiet_on_the_wall(&quiet, now);
                assert!(is_quiet || !on_the_wall, "{quiet:?} at {now}");
                compared += 1;
                differed += u32::from(is_quiet != on_the_wall);
            }
        }
        // It may only be quiet for longer in the hour that comes twice.
        assert!(differed < compared / 100, "{differed} of {compared}");
    }
}
