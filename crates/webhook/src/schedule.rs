//! What follows from an attempt: delivered, tried again after a pause, or given up. Pure functions.

use std::time::Duration;

/// The pauses after the first, second, … failed attempt: eleven attempts over about three days.
const PAUSES: [Duration; 10] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(14 * 3_600),
    Duration::from_secs(20 * 3_600),
    Duration::from_secs(24 * 3_600),
];
/// Longest pause that an endpoint can ask for.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// An endpoint that has accepted nothing for so long is disabled.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(5 * 24 * 3_600);

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempted {
    /// The status of the answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The pause that the answer asks for.
    pub(crate) retry_after: Option<Duration>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the endpoint has accepted the message.
    Delivered,
    /// Another attempt after a pause.
    Again(Duration),
    /// Nothing: all attempts have failed.
    GiveUp,
    /// Nothing: the endpoint is gone for good.
    Gone,
}

/// Decides after an attempt; `tries` were made before it, `chance` is from 0 to 1.
///
/// Half of a pause up to one and a half are left to chance: what failed together does not come back together, and the
/// attempts still span days.
pub(crate) fn next(attempted: &Attempted, tries: u32, chance: f64) -> Next {
    match attempted.status {
        Some(200..=299) => return Next::Delivered,
        Some(410) => return Next::Gone,
        _ => {}
    }
    let Some(pause) = PAUSES.get(tries as usize) else { return Next::GiveUp };
    let pause = pause.mul_f64(0.5 + chance.clamp(0.0, 1.0));
    let asked = attempted.retry_after.unwrap_or_default().min(LONGEST);
    Next::Again(pause.max(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16) -> Attempted {
        Attempted { status: Some(status), retry_after: None }
    }

    #[test]
    fn eleven_attempts_span_days_whatever_chance_does() {
        for (chance, least, most) in [(0.0, 37, 38), (0.5, 75, 76), (1.0, 113, 114)] {
            let mut all = Duration::ZERO;
            let mut tries = 0;
            while let Next::Again(pause) = next(&answered(500), tries, chance) {
                all += pause;
                tries += 1;
            }
            assert_eq!(tries, 10);
            let hours = all.as_secs() / 3_600;
            assert!((least..=most).contains(&hours), "{hours} hours");
        }
    }

    #[test]
    fn the_status_decides() {
        for status in [200, 201, 204, 299] {
            assert_eq!(next(&answered(status), 0, 0.5), Next::Delivered, "{status}");
        }
        assert_eq!(next(&answered(410), 0, 0.5), Next::Gone);
        for status in [301, 308, 400, 401, 404, 429, 500, 503] {
            let again = Next::Again(Duration::from_secs(5));
            assert_eq!(next(&answered(status), 0, 0.5), again, "{status}");
            assert_eq!(next(&answered(status), 10, 0.5), Next::GiveUp, "{status}");
        }
        let silent = Attempted { status: None, retry_after: None };
        assert_eq!(next(&silent, 1, 0.5), Next::Again(Duration::from_secs(60)));
    }

    #[test]
    fn an_endpoint_may_ask_for_a_longer_pause_within_a_day() {
        let asks = |seconds: u64| Attempted {
            status: Some(503),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(next(&asks(90), 0, 0.5), Next::Again(Duration::from_secs(90)));
        assert_eq!(
            next(&asks(1), 1, 0.5),
            Next::Again(Duration::from_secs(60)),
            "not a shorter one"
        );
        assert_eq!(next(&asks(u64::MAX), 0, 0.5), Next::Again(LONGEST));
    }
}
