//! The rules of values that people enter.

use jiff::tz::TimeZone;
use stampede_model::campaign::Pacing;

use crate::Mistake;

/// Longest name in letters.
const LONGEST_NAME: usize = 200;
/// Longest window, pause and rest: a limit that is longer is a mistake.
const LONGEST_MS: u64 = 31 * 24 * 60 * 60 * 1_000;

/// The rules of a name.
pub(crate) fn name(name: &str) -> Vec<Mistake> {
    let told = if name.trim().is_empty() {
        "must not be empty"
    } else if name.chars().count() > LONGEST_NAME {
        "must have at most 200 letters"
    } else if name.chars().any(char::is_control) {
        "must not contain control characters"
    } else {
        return Vec::new();
    };
    vec![Mistake::new("name", told)]
}

/// The rules of a time zone.
pub(crate) fn time_zone(field: &str, name: Option<&str>) -> Option<Mistake> {
    let name = name?;
    let told = "must be an IANA time zone such as Europe/Berlin";
    TimeZone::get(name).is_err().then(|| Mistake::new(field, told))
}

/// The rules of a country: telephone numbers must be readable as its own.
pub(crate) fn country(field: &str, code: Option<&str>) -> Option<Mistake> {
    let code = code?;
    let is_code = code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_uppercase());
    let is_known = is_code && stampede_audience::check_country(code).is_ok();
    (!is_known).then(|| Mistake::new(field, "must be a country's two letters, such as DE or GB"))
}

/// The rules of pacing. A limit of 0 is allowed: it stops everything.
pub(crate) fn pacing(field: &str, pacing: &Pacing) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut must = |is_right: bool, part: &str, told: &str| {
        if !is_right {
            mistakes.push(Mistake::new(format!("{field}.{part}"), told));
        }
    };
    let ms = 1..=LONGEST_MS;
    if let Some(limit) = pacing.limit {
        must(ms.contains(&limit.per_ms), "limit.perMs", "must be from 1 ms to 31 days");
        must(limit.max <= 1_000_000, "limit.max", "must be at most 1,000,000");
    }
    if let Some(spacing) = pacing.spacing {
        must(spacing.max_ms <= LONGEST_MS, "spacing.maxMs", "must be at most 31 days");
        must(spacing.min_ms <= spacing.max_ms, "spacing.minMs", "must not be greater than maxMs");
    }
    if let Some(rest) = pacing.rest {
        must(rest.every > 0, "rest.every", "must be at least 1");
        must(ms.contains(&rest.for_ms), "rest.forMs", "must be from 1 ms to 31 days");
    }
    if let Some(warm_up) = pacing.warm_up {
        let is_growing = warm_up.factor.is_finite() && warm_up.factor >= 1.0;
        must(is_growing, "warmUp.factor", "must be at least 1");
        must(warm_up.start > 0, "warmUp.start", "must be at least 1");
        must(warm_up.max >= warm_up.start, "warmUp.max", "must not be less than start");
    }
    if let Some(hours) = &pacing.quiet_hours {
        let has_days = hours.days.as_ref().is_none_or(|days| !days.is_empty());
        must(has_days, "quietHours.days", "must name a day; leave it out for every day");
        let zone = time_zone("", hours.time_zone.as_deref()).is_none();
        must(zone, "quietHours.timeZone", "must be an IANA time zone such as Europe/Berlin");
        must(
            hours.from != hours.to || hours.days.is_some(),
            "quietHours.to",
            "must not be the same as from: nothing would ever be sent",
        );
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign::{Rate, Rest, Spacing, WarmUp};

    use super::*;

    #[test]
    fn values_that_mean_nothing_are_named() {
        let wrong = Pacing {
            limit: Some(Rate { max: 20, per_ms: 0 }),
            spacing: Some(Spacing { min_ms: 2, max_ms: 1 }),
            rest: Some(Rest { every: 0, for_ms: 10 }),
            warm_up: Some(WarmUp { start: 10, factor: f64::NAN, max: 5 }),
            ..Pacing::default()
        };
        let fields: Vec<String> =
            pacing("pacing", &wrong).into_iter().map(|mistake| mistake.field).collect();
        assert_eq!(
            fields,
            [
                "pacing.limit.perMs",
                "pacing.spacing.minMs",
                "pacing.rest.every",
                "pacing.warmUp.factor",
                "pacing.warmUp.max"
            ]
        );
        let stopped = Pacing { limit: Some(Rate { max: 0, per_ms: 1 }), ..Pacing::default() };
        assert_eq!(pacing("pacing", &stopped), []);
        assert_eq!(time_zone("timeZone", Some("Europe/Berlin")), None);
        assert!(time_zone("timeZone", Some("Mars/Base")).is_some());
        for code in ["DE", "GB", "RU", "US"] {
            assert_eq!(country("country", Some(code)), None, "{code}");
        }
        // Those of the second row have two letters, and no telephone number could be read.
        for code in ["Germany", "de", " DE", "", "UK", "XX", "EN"] {
            assert!(country("country", Some(code)).is_some(), "{code}");
        }
        assert_eq!(name("  ").len() + name(&"x".repeat(201)).len() + name("Ann\n").len(), 3);
    }
}
