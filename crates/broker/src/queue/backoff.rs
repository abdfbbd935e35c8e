//! Retries: how many attempts a job has, and the pause before the next one.
//!
//! The options of a job name both, as BullMQ's clients write them; the [`RetryPolicy`] of its type is for jobs whose
//! options do not.

use std::time::Duration;

use crate::Backoff;
use serde_json::Value;

/// No pause is longer, however often it was doubled.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Attempts and back-off of a job type, for jobs whose own options do not name them.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts: u32,
    /// The pause between them.
    pub backoff: Backoff,
    /// The share of every pause, from 0 to 1, that is left to chance: a crowd that failed together does
    /// not come back together.
    pub jitter: f64,
    /// No pause is longer than this, or than 30 days.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    /// One attempt, as BullMQ has it.
    fn default() -> Self {
        Self { attempts: 1, backoff: Backoff::Fixed(Duration::ZERO), jitter: 0.0, cap: LONGEST }
    }
}

impl RetryPolicy {
    pub(crate) fn pause(&self) -> Pause {
        Pause { backoff: self.backoff.clone(), jitter: self.jitter, cap: self.cap }
    }
}

/// The pause before the next attempt of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pause {
    backoff: Backoff,
    jitter: f64,
    cap: Duration,
}

impl Pause {
    /// Reads BullMQ's option: milliseconds, or `{type, delay, jitter}`.
    pub(crate) fn read(option: &Value) -> Option<Self> {
        let delay = |value: &Value| {
            let ms = value.as_f64().filter(|ms| ms.is_finite() && *ms > 0.0).unwrap_or(0.0);
            Duration::from_millis(ms as u64)
        };
        let (backoff, jitter) = match option {
            Value::Number(_) => (Backoff::Fixed(delay(option)), 0.0),
            Value::Object(fields) => {
                let delay = fields.get("delay").map(delay).unwrap_or_default();
                let backoff = match fields.get("type").and_then(Value::as_str) {
                    Some("fixed") | None => Backoff::Fixed(delay),
                    Some("exponential") => Backoff::Exponential(delay),
                    Some(name) => Backoff::Named(name.to_owned()),
                };
                (backoff, fields.get("jitter").and_then(Value::as_f64).unwrap_or(0.0))
            }
            _ => return None,
        };
        Some(Self { backoff, jitter, cap: LONGEST })
    }

    /// How long it is after so many attempts; `chance` is from 0 to 1, and `named` knows the rules that
    /// only the handler knows.
    pub(crate) fn after(
        &self,
        attempts_made: u32,
        chance: f64,
        named: impl FnOnce(&str) -> Duration,
    ) -> Duration {
        let whole = match &self.backoff {
            Backoff::Named(name) => named(name),
            Backoff::Fixed(pause) => *pause,
            Backoff::Exponential(first) => {
                let doublings = attempts_made.saturating_sub(1).min(30);
                first.saturating_mul(1 << doublings)
            }
        };
        let whole = whole.min(self.cap).min(LONGEST);
        // As in BullMQ: somewhere between the pause without its jittery share and the whole pause.
        let jitter = self.jitter.clamp(0.0, 1.0);
        whole.mul_f64(1.0 - jitter * (1.0 - chance.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn nobody(name: &str) -> Duration {
        panic!("nobody knows {name}")
    }

    #[test]
    fn back_off_doubles_up_to_its_cap_and_never_overflows() {
        let policy =
            RetryPolicy { backoff: Backoff::Exponential(ms(2000)), ..RetryPolicy::default() };
        let pauses = [1, 2, 3].map(|n| policy.pause().after(n, 1.0, nobody));
        assert_eq!(pauses, [ms(2000), ms(4000), ms(8000)]);
        assert_eq!(policy.pause().after(u32::MAX, 1.0, nobody), LONGEST);
        let capped = RetryPolicy { cap: ms(3000), ..policy };
        assert_eq!(capped.pause().after(2, 1.0, nobody), ms(3000));
        let named = RetryPolicy { backoff: Backoff::Named("mine".into()), ..capped };
        assert_eq!(named.pause().after(2, 1.0, |_| ms(9000)), ms(3000), "by name, too");
        let huge = Pause::read(&json!({"type": "exponential", "delay": 1e300}));
        assert_eq!(huge.unwrap().after(9, 1.0, nobody), LONGEST);
    }

    #[test]
    fn jitter_leaves_a_share_to_chance() {
        let policy = RetryPolicy { backoff: Backoff::Fixed(ms(1000)), ..RetryPolicy::default() };
        let half = RetryPolicy { jitter: 0.5, ..policy.clone() }.pause();
        assert_eq!(half.after(1, 0.0, nobody), ms(500));
        assert_eq!(half.after(1, 1.0, nobody), ms(1000));
        for odd in [7.0, f64::INFINITY] {
            let odd = RetryPolicy { jitter: odd, ..policy.clone() };
            assert_eq!(odd.pause().after(1, 0.0, nobody), ms(0));
        }
    }

    #[test]
    fn every_spelling_of_the_option_is_understood() {
        for (option, pause) in [
            (json!(500), ms(500)),
            (json!(500.7), ms(500)),
            (json!(-1), ms(0)),
            (json!({"type": "fixed", "delay": 70}), ms(70)),
            (json!({"delay": 70}), ms(70)),
            (json!({"delay": 70, "jitter": 1}), ms(0)),
            (json!({"type": "exponential", "delay": 70}), ms(140)),
            (json!({"type": "mine", "delay": 70}), ms(4)),
            (json!({"type": "mine", "jitter": 1}), ms(0)),
            (json!({"type": 5}), ms(0)),
        ] {
            let chance = if option["jitter"] == 1 { 0.0 } else { 1.0 };
            assert_eq!(
                Pause::read(&option).unwrap().after(2, chance, |name| ms(name.len() as u64)),
                pause,
                "{option}"
            );
        }
        assert_eq!(Pause::read(&json!("soon")), None);
    }
}
