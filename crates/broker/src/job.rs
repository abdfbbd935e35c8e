//! A job taken from a queue, and the ways it can end.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// How a handler ends a job: a closed set.
#[derive(Debug)]
pub enum Outcome {
    /// Finished; the value is kept as the job's result.
    Done(Value),
    /// Did not work this time; uses up an attempt.
    Retry(String),
    /// Will never work; fails at once, whatever attempts are left.
    Discard(String),
    /// Not now (something outside is down): comes back later, costs no attempt.
    Snooze(Duration),
}

/// A job as the handler sees it.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its type.
    pub name: String,
    /// Its payload.
    pub data: Value,
    /// Attempts that have ended before this one.
    pub attempts_made: u32,
    /// Attempts it may have.
    pub attempts: u32,
    /// It was given up while nobody held it (it took down its workers); it must not run again.
    pub(crate) deferred_failure: Option<String>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) stack_trace: Vec<String>,
    pub(crate) keep_completed: KeepJobs,
    pub(crate) keep_failed: KeepJobs,
    pub(crate) parent_rules: ParentRules,
}

/// How many finished jobs to keep, as the scripts read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct KeepJobs {
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

/// What a child's failure does to its parent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ParentRules {
    pub(crate) fail: bool,
    pub(crate) go_on: bool,
    pub(crate) ignore: bool,
    pub(crate) remove: bool,
}

/// The pause before the next attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Backoff {
    exponential: bool,
    delay_ms: u64,
}

impl Backoff {
    /// Pause after the given number of attempts.
    pub(crate) fn delay_ms(&self, attempts_made: u32) -> u64 {
        if !self.exponential {
            return self.delay_ms;
        }
        let doublings = attempts_made.saturating_sub(1).min(30);
        self.delay_ms.saturating_mul(1 << doublings)
    }
}

impl Job {
    /// Reads the hash of a job. Every option is read by itself and tolerantly: one odd value, such as
    /// a fraction from JavaScript, must not reset the others.
    pub(crate) fn from_hash(id: String, mut fields: HashMap<String, String>) -> Self {
        let json = |text: Option<&String>| {
            text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or(Value::Null)
        };
        let options = json(fields.get("opts"));
        let stack_trace = json(fields.get("stacktrace"));
        let whole = |text: Option<&String>| {
            text.and_then(|n| n.parse::<f64>().ok()).map_or(0, |n| n as u32)
        };
        let flag = |name: &str| options[name].as_bool().unwrap_or(false);
        Self {
            attempts_made: whole(fields.get("atm")),
            attempts: options["attempts"].as_f64().map_or(1, |n| (n as u32).max(1)),
            backoff: read_backoff(&options["backoff"]),
            stack_trace: stack_trace
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|line| line.as_str().map(str::to_owned))
                .collect(),
            keep_completed: read_keep_jobs(&options["removeOnComplete"]),
            keep_failed: read_keep_jobs(&options["removeOnFail"]),
            parent_rules: ParentRules {
                fail: flag("fpof"),
                go_on: flag("cpof"),
                ignore: flag("idof"),
                remove: flag("rdof"),
            },
            data: json(fields.get("data")),
            deferred_failure: fields.remove("defa"),
            name: fields.remove("name").unwrap_or_default(),
            id,
        }
    }
}

fn read_backoff(option: &Value) -> Option<Backoff> {
    let delay_ms = |value: &Value| value.as_f64().map(|ms| ms.max(0.0) as u64);
    match option {
        Value::Number(_) => Some(Backoff { exponential: false, delay_ms: delay_ms(option)? }),
        Value::Object(fields) => Some(Backoff {
            exponential: fields.get("type").and_then(Value::as_str) == Some("exponential"),
            delay_ms: fields.get("delay").and_then(delay_ms).unwrap_or(0),
        }),
        _ => None,
    }
}

fn read_keep_jobs(option: &Value) -> KeepJobs {
    let count = |count| KeepJobs { count: Some(count), ..KeepJobs::default() };
    match option {
        Value::Bool(true) => count(0),
        Value::Number(n) => count(n.as_f64().unwrap_or(-1.0) as i64),
        Value::Object(fields) => {
            let number = |name: &str| fields.get(name).and_then(Value::as_f64);
            KeepJobs {
                count: number("count").map(|n| n as i64),
                age: number("age").map(|n| n as u64),
                limit: number("limit").map(|n| n as u64),
            }
        }
        _ => count(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(opts: &str) -> Job {
        let fields = [("name", "x"), ("data", "{\"a\":1}"), ("opts", opts), ("atm", "2")];
        let fields = fields.map(|(k, v)| (k.to_owned(), v.to_owned()));
        Job::from_hash("id".into(), fields.into())
    }

    #[test]
    fn one_odd_option_does_not_reset_the_others() {
        let job = job(
            r#"{"attempts":3.7,"backoff":{"type":"exponential","delay":2000.5},"removeOnComplete":"?"}"#,
        );
        assert_eq!(job.attempts, 3);
        assert_eq!(job.attempts_made, 2);
        assert_eq!(job.backoff.unwrap().delay_ms(2), 4000);
        assert_eq!(job.keep_completed.count, Some(-1));
        assert_eq!(job.data["a"], 1);
    }

    #[test]
    fn back_off_doubles_and_never_overflows() {
        let exponential = Backoff { exponential: true, delay_ms: 2000 };
        assert_eq!([1, 2, 3].map(|n| exponential.delay_ms(n)), [2000, 4000, 8000]);
        assert!(exponential.delay_ms(u32::MAX) > 0);
        let job = job(r#"{"backoff":500}"#);
        assert_eq!(job.backoff.unwrap().delay_ms(9), 500);
        assert_eq!(job.attempts, 1);
    }

    #[test]
    fn retention_has_four_spellings() {
        for (option, count, age) in [
            ("true", Some(0), None),
            ("false", Some(-1), None),
            ("100", Some(100), None),
            (r#"{"age":3600,"count":5}"#, Some(5), Some(3600)),
        ] {
            let keep = job(&format!(r#"{{"removeOnFail":{option}}}"#)).keep_failed;
            assert_eq!((keep.count, keep.age), (count, age), "{option}");
        }
    }
}
