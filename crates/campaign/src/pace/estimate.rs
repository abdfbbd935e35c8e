//! When a number of messages is done: `etaAt`.
//!
//! Message `i` leaves at the earliest moment that all rules allow:
//!
//! ```text
//!   tᵢ = max( start, tᵢ₋₁ + spacing (or rest), tᵢ₋ₘₐₓ + per for every limit )      then moved out of quiet hours and full days
//! ```
//!
//! Only the first messages after such a move are computed one by one. As soon as the times repeat (`tᵢ = tᵢ₋ₙ + d` for as many
//! messages as the widest limit looks back), all later ones repeat too, until quiet hours, the end of the day or a long limit
//! such as the daily cap. The messages until then are one [`Run`], whatever their number is. So a million messages take as many
//! steps as there are days, not messages.
//!
//! The estimate is the shortest time: no message fails, spacing has its mean length, and nothing was sent before `start`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stampede_model::campaign::{Pacing, Rate, Rest, Spacing, WarmUp};

use super::quiet::{Quiet, closes_at, opens_at};
use super::warm_up::{cap_of_day, day_of, next_day};

/// Days after which an estimate is given up.
pub const HORIZON_DAYS: i64 = 3_660;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60_000;
/// A limit with a longer window, or with more messages, is looked at when it stops messages, not at every message.
const LONG_WINDOW_MS: i64 = 60 * 60_000;
const LONG_COUNT: usize = 5_000;
/// Longest repetition that is looked for.
const LONGEST_PATTERN: usize = 20_000;

/// The rules under which messages leave.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    /// All limits: the account's, the campaign's, the channel's.
    pub limits: Vec<Rate>,
    /// A pause after every message.
    pub spacing: Option<Spacing>,
    /// A long pause after so many messages.
    pub rest: Option<Rest>,
    /// Most messages in any 24 hours.
    pub daily_cap: Option<u32>,
    /// Most messages of a day, when the account sent its first message, and the zone of its days.
    pub warm_up: Option<(WarmUp, Option<Timestamp>, TimeZone)>,
    /// Hours in which nothing is sent.
    pub quiet: Vec<Quiet>,
}

impl Estimate {
    /// Adds the rules of an account or a campaign; of spacing and rest the last ones count.
    pub fn add(&mut self, pacing: &Pacing) -> &mut Self {
        self.limits.extend(pacing.limit);
        self.spacing = pacing.spacing.or(self.spacing);
        self.rest = pacing.rest.or(self.rest);
        self.daily_cap = [self.daily_cap, pacing.daily_cap].into_iter().flatten().min();
        self
    }

    /// When the last of `count` messages leaves if the first may leave at `start`; `None`: not within ten years, or never.
    pub fn done_at(&self, count: u64, start: Timestamp) -> Option<Timestamp> {
        let Some(last) = count.checked_sub(1) else { return Some(start) };
        let mut course = Course::new(self, usize::try_from(count).ok()?, start)?;
        while course.sent.count <= usize::try_from(last).ok()? {
            course.step()?;
        }
        Timestamp::from_millisecond(course.sent.time_of(usize::try_from(last).ok()?)).ok()
    }
}

/// A limit, in the units of the arithmetic.
#[derive(Clone, Copy)]
struct Window {
    max: usize,
    per: i64,
}

/// Messages that left in a repeating pattern: message `first + k` at `pattern[k mod n] + (k div n) × period`.
struct Run {
    first: usize,
    pattern: Vec<i64>,
    period: i64,
    /// The pattern repeats; else the run has as many places as messages.
    is_repeated: bool,
}

/// The times of all messages that left.
#[derive(Default)]
struct Sent {
    runs: Vec<Run>,
    count: usize,
}

impl Sent {
    fn time_of(&self, index: usize) -> i64 {
        let after = self.runs.partition_point(|run| run.first <= index);
        let Some(run) = after.checked_sub(1).and_then(|place| self.runs.get(place)) else {
            return 0;
        };
        let (turn, place) =
            ((index - run.first) / run.pattern.len(), (index - run.first) % run.pattern.len());
        run.pattern[place].saturating_add(run.period.saturating_mul(turn as i64))
    }

    /// How many left at or before a time.
    fn until(&self, time: i64) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time_of(middle) <= time { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// How many messages from `index` on, which repeat a pattern, a limit allows because the messages before its window repeat
    /// the same pattern, so that the distance stays.
    fn alike(&self, index: usize, window: &Window, pattern: &[i64], period: i64) -> usize {
        let Some(before) = index.checked_sub(window.max) else { return 0 };
        let after = self.runs.partition_point(|run| run.first <= before);
        let Some(run) = after.checked_sub(1).and_then(|place| self.runs.get(place)) else {
            return 0;
        };
        let ends = self.runs.get(after).map_or(self.count, |next| next.first);
        let is_alike =
            run.period == period && run.pattern.len() == pattern.len() && run.is_repeated;
        let is_allowed = |(place, time): (usize, &i64)| {
            self.time_of(before + place).saturating_add(window.per) <= *time
        };
        let is_whole = ends - before >= pattern.len();
        if is_alike && is_whole && pattern.iter().enumerate().all(is_allowed) {
            ends - before
        } else {
            0
        }
    }

    /// Adds one message.
    fn push(&mut self, time: i64) {
        match self.runs.last_mut() {
            Some(run) if !run.is_repeated => run.pattern.push(time),
            _ => {
                let (first, pattern) = (self.count, vec![time]);
                self.runs.push(Run { first, pattern, period: 0, is_repeated: false });
            }
        }
        self.count += 1;
    }
}

/// A schedule that is being computed.
struct Course<'e> {
    rules: &'e Estimate,
    wanted: usize,
    start: i64,
    horizon: i64,
    /// Limits that every message looks at.
    short: Vec<Window>,
    /// Limits that are looked at when messages repeat.
    long: Vec<Window>,
    gap: i64,
    /// After so many messages the gap is another.
    rest: Option<(usize, i64)>,
    /// The length of the repetition that is looked for; 0: none is.
    pattern: usize,
    /// How far the short limits look back.
    reach: usize,
    sent: Sent,
    /// The first message after the last move: those after it follow from the short rules alone.
    settled: usize,
    /// How many messages in a row repeated, and the period.
    repeats: usize,
    period: i64,
    /// When quiet hours begin or the day ends, and how many messages may still leave until then.
    stretch: Option<Stretch>,
}

/// A time without quiet hours within one day.
struct Stretch {
    end: i64,
    left: usize,
}

impl<'e> Course<'e> {
    fn new(rules: &'e Estimate, wanted: usize, start: Timestamp) -> Option<Self> {
        let mut windows = Vec::new();
        let cap = rules.daily_cap.map(|max| Rate { max, per_ms: DAY_MS as u64 });
        for rate in rules.limits.iter().chain(&cap).filter(|rate| rate.per_ms > 0) {
            if rate.max == 0 {
                return None;
            }
            let per = i64::try_from(rate.per_ms).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            windows.push(Window { max: rate.max as usize, per });
        }
        let is_short = |window: &Window| window.per <= LONG_WINDOW_MS && window.max <= LONG_COUNT;
        let (short, long): (Vec<_>, Vec<_>) = windows.into_iter().partition(is_short);
        let gap = rules.spacing.map_or(0, |spacing| {
            spacing.min_ms / 2 + spacing.max_ms / 2 + (spacing.min_ms % 2 + spacing.max_ms % 2) / 2
        });
        let gap = i64::try_from(gap).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let rest = rules.rest.filter(|rest| rest.every > 0).map(|rest| {
            let pause = i64::try_from(rest.for_ms).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            (rest.every as usize, pause.max(gap))
        });
        let start = ceil_ms(start);
        Some(Self {
            pattern: pattern(&short, gap, rest),
            reach: short.iter().map(|window| window.max).max().unwrap_or(1),
            horizon: start.saturating_add(HORIZON_DAYS * DAY_MS),
            sent: Sent::default(),
            settled: 0,
            repeats: 0,
            period: 0,
            stretch: None,
            rules,
            wanted,
            start,
            short,
            long,
            gap,
            rest,
        })
    }

    /// Lets one message leave, or one and all that repeat after it; `None` beyond the horizon.
    fn step(&mut self) -> Option<()> {
        let index = self.sent.count;
        let mut time = self.by_short_rules(index);
        let by_long = self.long.iter().filter(|window| index >= window.max);
        let by_long = by_long.map(|w| self.sent.time_of(index - w.max).saturating_add(w.per)).max();
        let mut is_moved = index == 0;
        if by_long.is_some_and(|moment| moment > time) {
            (time, is_moved) = (by_long.unwrap_or(time), true);
        }
        while self.stretch.as_ref().is_none_or(|stretch| time >= stretch.end || stretch.left == 0) {
            is_moved = true;
            time = self.open_stretch(time)?;
        }
        if time > self.horizon {
            return None;
        }
        self.sent.push(time);
        if let Some(stretch) = &mut self.stretch {
            stretch.left -= 1;
        }
        if is_moved {
            (self.settled, self.repeats) = (index, 0);
        }
        if self.repeats_at(index) {
            self.leap();
        }
        Some(())
    }

    /// The earliest time of a message by spacing, rest and the short limits.
    fn by_short_rules(&self, index: usize) -> i64 {
        let Some(previous) = index.checked_sub(1) else { return self.start };
        let gap = match self.rest {
            Some((every, pause)) if index.is_multiple_of(every) => pause,
            _ => self.gap,
        };
        let by_gap = self.sent.time_of(previous).saturating_add(gap);
        let limits = self.short.iter().filter(|window| index >= window.max);
        let by_limits = limits.map(|w| self.sent.time_of(index - w.max).saturating_add(w.per));
        by_limits.fold(by_gap, i64::max)
    }

    /// Opens the stretch in which `time` is, or the next one; returns the first moment in it.
    fn open_stretch(&mut self, time: i64) -> Option<i64> {
        let full_until =
            self.stretch.take().filter(|stretch| stretch.left == 0).map(|full| full.end);
        let mut time = time.max(full_until.unwrap_or(time));
        let mut now = Timestamp::from_millisecond(time).ok()?;
        if let Some(opens) = opens_at(&self.rules.quiet, now) {
            (now, time) = (opens, ceil_ms(opens));
        }
        if time > self.horizon {
            return None;
        }
        let mut end = closes_at(&self.rules.quiet, now).map_or(i64::MAX, ceil_ms);
        if !self.rules.quiet.is_empty() {
            // Quiet hours are known a week ahead.
            end = end.min(time.saturating_add(7 * DAY_MS));
        }
        let mut left = usize::MAX;
        if let Some((warm_up, first_sent_at, zone)) = &self.rules.warm_up {
            let first =
                first_sent_at.or_else(|| Timestamp::from_millisecond(self.sent_first()).ok());
            let midnight = ceil_ms(next_day(now, zone));
            let cap = cap_of_day(warm_up, day_of(first.filter(|first| *first <= now), now, zone))
                as usize;
            let begin = day_begin(now, zone);
            let today = self.sent.count - self.sent.until(begin - 1);
            left = cap.saturating_sub(today);
            // A full day is over at midnight, not when quiet hours begin.
            end = if left == 0 { midnight } else { end.min(midnight) };
        }
        self.stretch = Some(Stretch { end, left });
        Some(time)
    }

    fn sent_first(&self) -> i64 {
        if self.sent.count == 0 { i64::MAX } else { self.sent.time_of(0) }
    }

    /// Whether the times repeat, so that all later ones do.
    fn repeats_at(&mut self, index: usize) -> bool {
        let n = self.pattern;
        // The message a pattern ago must follow from the short rules.
        if n == 0 || index < self.settled + n + 1 {
            return false;
        }
        let period = self.sent.time_of(index) - self.sent.time_of(index - n);
        self.repeats = if period == self.period { self.repeats + 1 } else { 1 };
        self.period = period;
        self.repeats >= self.reach.max(n)
    }

    /// Adds all messages that repeat, up to what ends the repetition.
    fn leap(&mut self) {
        let (n, period, index) = (self.pattern, self.period, self.sent.count);
        let pattern: Vec<i64> = (0..n)
            .map(|place| self.sent.time_of(index - n + place).saturating_add(period))
            .collect();
        let now = self.sent.time_of(index - 1);
        let Some(stretch) = &mut self.stretch else { return };
        let mut most = (self.wanted - index).min(stretch.left);
        for window in &self.long {
            // Messages whose predecessor left long enough ago already.
            let free = self.sent.until(now.saturating_sub(window.per)) + window.max;
            let alike = self.sent.alike(index, window, &pattern, period);
            most = most.min(free.saturating_sub(index).max(alike));
        }
        let end = stretch.end.min(self.horizon);
        let time = |k: usize| pattern[k % n].saturating_add(period.saturating_mul((k / n) as i64));
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if time(middle) < end { low = middle + 1 } else { high = middle }
        }
        if low == 0 {
            return;
        }
        stretch.left -= low;
        self.sent.runs.push(Run { first: index, pattern, period, is_repeated: true });
        self.sent.count += low;
        (self.settled, self.repeats) = (self.sent.count - 1, 0);
    }
}

/// The number of messages after which the times repeat: that of the rule that slows down most.
fn pattern(short: &[Window], gap: i64, rest: Option<(usize, i64)>) -> usize {
    let (every, pause) = rest.unwrap_or((1, gap));
    // Time of so many messages under the gaps, and under a limit: compared as fractions.
    let by_gap = (i128::from(gap) * (every as i128 - 1) + i128::from(pause), every as i128);
    let slowest = short.iter().max_by(|a, b| {
        (i128::from(a.per) * b.max as i128).cmp(&(i128::from(b.per) * a.max as i128))
    });
    let n = match slowest {
        Some(limit) if i128::from(limit.per) * by_gap.1 > by_gap.0 * limit.max as i128 => {
            every / gcd(every, limit.max) * limit.max
        }
        _ => every,
    };
    if n <= LONGEST_PATTERN { n } else { 0 }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The first whole millisecond that is not before a moment.
fn ceil_ms(at: Timestamp) -> i64 {
    let ms = at.as_millisecond();
    if Timestamp::from_millisecond(ms).is_ok_and(|whole| whole < at) { ms + 1 } else { ms }
}

fn day_begin(now: Timestamp, zone: &TimeZone) -> i64 {
    let day = super::warm_up::date(now, zone);
    day.to_zoned(zone.clone()).map_or(i64::MIN, |begin| ceil_ms(begin.timestamp()))
}

#[cfg(test)]
mod tests;
