//! How long to wait before the next attempt, and how many attempts there are.
//!
//! A job says it in its options, as BullMQ's clients write them; a job type's [`RetryPolicy`] says it
//! for jobs that do not.

use std::time::Duration;

use serde_json::Value;

/// No pause is longer, however often it was doubled.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a job type does when an attempt fails, unless the job's own options say otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts: u32,
    /// The pause between them.
    pub backoff: Backoff,
}

impl Default for RetryPolicy {
    /// One attempt, as BullMQ has it.
    fn default() -> Self {
        Self { attempts: 1, backoff: Backoff::fixed(Duration::ZERO) }
    }
}

/// The pause before the next attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    shape: Shape,
    delay: Duration,
    /// Share of the pause that is left to chance, from 0 to 1.
    jitter: f64,
    cap: Duration,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Fixed,
    Exponential,
    /// Known by name to whoever handles the job.
    Named(String),
}

impl Backoff {
    /// Always the same pause.
    pub fn fixed(delay: Duration) -> Self {
        Self { shape: Shape::Fixed, delay, jitter: 0.0, cap: LONGEST }
    }

    /// `base`, then twice that, four times, …
    pub fn exponential(base: Duration) -> Self {
        Self { shape: Shape::Exponential, ..Self::fixed(base) }
    }

    /// Leaves a share of every pause, from 0 to 1, to chance: a crowd that failed together does not
    /// come back together.
    pub fn with_jitter(self, share: f64) -> Self {
        Self { jitter: share.clamp(0.0, 1.0), ..self }
    }

    /// No pause longer than this.
    pub fn with_cap(self, cap: Duration) -> Self {
        Self { cap: cap.min(LONGEST), ..self }
    }

    /// Reads BullMQ's option: milliseconds, or `{type, delay, jitter}`.
    pub(crate) fn read(option: &Value) -> Option<Self> {
        let delay = |value: &Value| {
            let ms = value.as_f64().filter(|ms| ms.is_finite() && *ms > 0.0).unwrap_or(0.0);
            Duration::from_millis(ms as u64)
        };
        match option {
            Value::Number(_) => Some(Self::fixed(delay(option))),
            Value::Object(fields) => {
                let delay = fields.get("delay").map(delay).unwrap_or_default();
                let backoff = match fields.get("type").and_then(Value::as_str) {
                    Some("fixed") | None => Self::fixed(delay),
                    Some("exponential") => Self::exponential(delay),
                    Some(name) => {
                        Self { shape: Shape::Named(name.to_owned()), ..Self::fixed(delay) }
                    }
                };
                let jitter = fields.get("jitter").and_then(Value::as_f64).unwrap_or(0.0);
                Some(backoff.with_jitter(jitter))
            }
            _ => None,
        }
    }

    /// The name of the strategy that only the handler knows.
    pub(crate) fn custom_name(&self) -> Option<&str> {
        match &self.shape {
            Shape::Named(name) => Some(name),
            _ => None,
        }
    }

    /// Pause after so many attempts; `chance` is from 0 to 1. `None`: ask the handler.
    pub(crate) fn delay(&self, attempts_made: u32, chance: f64) -> Option<Duration> {
        let whole = match self.shape {
            Shape::Named(_) => return None,
            Shape::Fixed => self.delay,
            Shape::Exponential => {
                let doublings = attempts_made.saturating_sub(1).min(30);
                self.delay.saturating_mul(1 << doublings)
            }
        };
        let whole = whole.min(self.cap);
        // As in BullMQ: somewhere between the pause without its jittery share and the whole pause.
        Some(whole.mul_f64(1.0 - self.jitter * (1.0 - chance.clamp(0.0, 1.0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn back_off_doubles_up_to_its_cap_and_never_overflows() {
        let exponential = Backoff::exponential(ms(2000));
        let delays = [1, 2, 3].map(|n| exponential.delay(n, 1.0).unwrap());
        assert_eq!(delays, [ms(2000), ms(4000), ms(8000)]);
        assert_eq!(exponential.delay(u32::MAX, 1.0), Some(LONGEST));
        assert_eq!(exponential.with_cap(ms(3000)).delay(2, 1.0), Some(ms(3000)));
        let huge = Backoff::read(&json!({"type": "exponential", "delay": 1e300}));
        assert_eq!(huge.unwrap().delay(9, 1.0), Some(LONGEST));
    }

    #[test]
    fn jitter_leaves_a_share_to_chance() {
        let half = Backoff::fixed(ms(1000)).with_jitter(0.5);
        assert_eq!(half.delay(1, 0.0), Some(ms(500)));
        assert_eq!(half.delay(1, 1.0), Some(ms(1000)));
        assert_eq!(Backoff::fixed(ms(1000)).with_jitter(7.0).delay(1, 0.0), Some(ms(0)));
    }

    #[test]
    fn every_spelling_of_the_option_is_understood() {
        for (option, delay) in [
            (json!(500), Some(ms(500))),
            (json!(500.7), Some(ms(500))),
            (json!(-1), Some(ms(0))),
            (json!({"type": "fixed", "delay": 70}), Some(ms(70))),
            (json!({"delay": 70}), Some(ms(70))),
            (json!({"type": "exponential", "delay": 70}), Some(ms(140))),
            (json!({"type": "mine", "delay": 70}), None),
            (json!({"type": 5}), Some(ms(0))),
        ] {
            assert_eq!(Backoff::read(&option).unwrap().delay(2, 1.0), delay, "{option}");
        }
        assert_eq!(Backoff::read(&json!("soon")), None);
        assert_eq!(Backoff::read(&json!({"type": "mine"})).unwrap().custom_name(), Some("mine"));
    }
}
