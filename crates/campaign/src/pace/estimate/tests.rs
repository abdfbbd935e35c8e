use std::time::Instant;

use super::*;
use crate::pace::quiet::tests::quiet;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn rate(max: u32, per_ms: u64) -> Rate {
    Rate { max, per_ms }
}

fn minutes(rules: &Estimate, count: u64) -> f64 {
    let start = at("2026-05-01T12:00:00Z");
    let done = rules.done_at(count, start).unwrap();
    (done.as_millisecond() - start.as_millisecond()) as f64 / 60_000.0
}

/// The definition, one message after the other.
fn slowly(rules: &Estimate, count: usize, start: Timestamp) -> Option<Timestamp> {
    let mut times: Vec<i64> = Vec::new();
    let mut limits = rules.limits.clone();
    limits.extend(rules.daily_cap.map(|max| rate(max, DAY_MS as u64)));
    let gap = rules.spacing.map_or(0, |spacing| (spacing.min_ms + spacing.max_ms) / 2) as i64;
    for index in 0..count {
        let mut time = start.as_millisecond();
        if let Some(previous) = times.last() {
            let rests = rules.rest.filter(|rest| index % rest.every as usize == 0);
            time = previous + rests.map_or(gap, |rest| gap.max(rest.for_ms as i64));
        }
        for limit in &limits {
            if let Some(before) = index.checked_sub(limit.max as usize) {
                time = time.max(times[before] + limit.per_ms as i64);
            }
        }
        loop {
            let now = Timestamp::from_millisecond(time).unwrap();
            if time - start.as_millisecond() > HORIZON_DAYS * DAY_MS {
                return None;
            }
            if let Some(opens) = opens_at(&rules.quiet, now) {
                time = opens.as_millisecond();
                continue;
            }
            if let Some((warm_up, first, zone)) = &rules.warm_up {
                let moment = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
                let first = first.or(times.first().map(|ms| moment(*ms)));
                let day = zone.to_datetime(now).date();
                let today = times
                    .iter()
                    .rev()
                    .take_while(|ms| zone.to_datetime(moment(**ms)).date() == day);
                if today.count() >= cap_of_day(warm_up, day_of(first, now, zone)) as usize {
                    time = next_day(now, zone).as_millisecond();
                    continue;
                }
            }
            break;
        }
        times.push(time);
    }
    times.last().map(|ms| Timestamp::from_millisecond(*ms).unwrap())
}

#[test]
fn a_thousand_messages_at_twenty_a_minute_take_49_minutes() {
    let rules = Estimate { limits: vec![rate(20, 60_000)], ..Estimate::default() };
    for (count, expected) in
        [(0, 0.0), (1, 0.0), (20, 0.0), (21, 1.0), (1_000, 49.0), (1_001, 50.0)]
    {
        assert_eq!(minutes(&rules, count), expected, "{count}");
    }
    assert_eq!(minutes(&rules, 1_000_000), 49_999.0);
    assert_eq!(minutes(&Estimate::default(), 1_000_000), 0.0);
}

#[test]
fn the_slowest_of_several_rules_counts() {
    let limits = vec![rate(20, 60_000), rate(25, 1_000), rate(100, 3_600_000)];
    let rules = Estimate { limits, ..Estimate::default() };
    assert_eq!(minutes(&rules, 100), 4.0);
    assert_eq!(minutes(&rules, 101), 60.0);
    let spacing = Some(Spacing { min_ms: 1_000, max_ms: 5_000 });
    let rules = Estimate { limits: vec![rate(30, 60_000)], spacing, ..Estimate::default() };
    assert_eq!(minutes(&rules, 1_001), 50.0, "3 s on average");
    let rest = Some(Rest { every: 10, for_ms: 60_000 });
    let rules = Estimate { rest, ..Estimate::default() };
    assert_eq!(minutes(&rules, 10), 0.0);
    assert_eq!(minutes(&rules, 101), 10.0);
}

#[test]
fn caps_and_quiet_hours_move_messages_to_other_days() {
    let rules = Estimate { daily_cap: Some(1_000), ..Estimate::default() };
    assert_eq!(minutes(&rules, 1_000), 0.0);
    assert_eq!(minutes(&rules, 10_000), 9.0 * 1_440.0);
    let night = quiet("21:00", "09:00", None, "UTC");
    let rules =
        Estimate { limits: vec![rate(1, 60_000)], quiet: vec![night], ..Estimate::default() };
    // 9 hours on the first day, then 12 a day.
    assert_eq!(rules.done_at(540, at("2026-05-01T12:00:00Z")), Some(at("2026-05-01T20:59:00Z")));
    assert_eq!(rules.done_at(541, at("2026-05-01T12:00:00Z")), Some(at("2026-05-02T09:00:00Z")));
    assert_eq!(
        rules.done_at(541 + 720, at("2026-05-01T12:00:00Z")),
        Some(at("2026-05-03T09:00:00Z"))
    );
    let warm_up = WarmUp { start: 50, factor: 2.0, max: 1_000 };
    let rules = Estimate { warm_up: Some((warm_up, None, TimeZone::UTC)), ..Estimate::default() };
    assert_eq!(rules.done_at(50, at("2026-05-01T12:00:00Z")), Some(at("2026-05-01T12:00:00Z")));
    assert_eq!(rules.done_at(150, at("2026-05-01T12:00:00Z")), Some(at("2026-05-02T00:00:00Z")));
    assert_eq!(rules.done_at(351, at("2026-05-01T12:00:00Z")), Some(at("2026-05-04T00:00:00Z")));
}

#[test]
fn what_never_ends_has_no_estimate() {
    let start = at("2026-05-01T12:00:00Z");
    let stopped = Estimate { limits: vec![rate(0, 60_000)], ..Estimate::default() };
    assert_eq!(stopped.done_at(1, start), None);
    assert_eq!(stopped.done_at(0, start), Some(start));
    let always =
        Estimate { quiet: vec![quiet("09:00", "09:00", None, "UTC")], ..Estimate::default() };
    assert_eq!(always.done_at(1, start), None);
    let slow = Estimate { daily_cap: Some(1), ..Estimate::default() };
    assert_eq!(slow.done_at(1_000_000, start), None);
    let none = WarmUp { start: 0, factor: 1.0, max: 10 };
    let none = Estimate { warm_up: Some((none, None, TimeZone::UTC)), ..Estimate::default() };
    assert_eq!(none.done_at(1, start), None);
    let huge = Estimate { limits: vec![rate(1, u64::MAX)], ..Estimate::default() };
    assert_eq!(huge.done_at(2, start), None);
}

#[test]
fn the_estimate_is_that_of_a_simulation_message_by_message() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..150 {
        let mut rules = Estimate::default();
        for _ in 0..random.usize(..3) {
            let per = [1_000, 7_000, 60_000, 3_600_000, 86_400_000][random.usize(..5)];
            rules.limits.push(rate(random.u32(1..40), per));
        }
        if random.u8(..4) == 0 {
            let min_ms = random.u64(..5_000);
            rules.spacing = Some(Spacing { min_ms, max_ms: min_ms + 2 * random.u64(..5_000) });
        }
        if random.u8(..4) == 0 {
            rules.rest = Some(Rest { every: random.u32(1..30), for_ms: random.u64(..600_000) });
        }
        if random.u8(..3) == 0 {
            rules.daily_cap = Some(random.u32(1..300));
        }
        if random.u8(..3) == 0 {
            let warm_up = WarmUp { start: random.u32(1..40), factor: 1.3, max: 200 };
            let zone = TimeZone::get("America/New_York").unwrap();
            rules.warm_up = Some((warm_up, None, zone));
        }
        for _ in 0..random.usize(..3) {
            let time = |random: &mut fastrand::Rng| {
                format!("{:02}:{:02}", random.u8(..24), random.u8(..60))
            };
            let (from, to) = (time(&mut random), time(&mut random));
            rules.quiet.push(quiet(&from, &to, None, ["Europe/Berlin", "UTC"][random.usize(..2)]));
        }
        let start =
            Timestamp::from_millisecond(1_774_500_000_000 + random.i64(0..3 * DAY_MS)).unwrap();
        let count = random.usize(1..900);
        let expected = slowly(&rules, count, start);
        assert_eq!(
            rules.done_at(count as u64, start),
            expected,
            "round {round}, {count}: {rules:?}"
        );
    }
}

#[test]
fn a_million_messages_are_estimated_in_a_few_steps_a_day() {
    let night = quiet("21:00", "09:00", None, "Europe/Berlin");
    let limits = vec![rate(20, 60_000), rate(25, 1_000)];
    let cases = [
        Estimate { limits: vec![rate(20, 60_000)], ..Estimate::default() },
        Estimate { limits: limits.clone(), quiet: vec![night.clone()], ..Estimate::default() },
        Estimate { limits: limits.clone(), daily_cap: Some(1_000), ..Estimate::default() },
        Estimate { limits, daily_cap: Some(1_000), quiet: vec![night], ..Estimate::default() },
        Estimate { daily_cap: Some(2_000), ..Estimate::default() },
        Estimate { spacing: Some(Spacing { min_ms: 500, max_ms: 900 }), ..Estimate::default() },
    ];
    for rules in cases {
        let began = Instant::now();
        let start = at("2026-05-01T12:00:00Z");
        let mut course = Course::new(&rules, 1_000_000, start).unwrap();
        let mut steps = 0;
        while course.sent.count < 1_000_000 {
            course.step().unwrap();
            steps += 1;
        }
        let days = 1 + (course.sent.time_of(999_999) - start.as_millisecond()) / DAY_MS;
        println!("{steps} steps for {days} days in {:?}", began.elapsed());
        assert!(steps < 100 + 150 * days, "{steps} steps for {days} days");
    }
}
