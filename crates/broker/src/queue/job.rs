//! A job taken from a queue, and the ways it can end.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::queue::backoff::Pause;

/// Entries of `stacktrace` kept per job that does not say.
const STACK_TRACE_LIMIT: usize = 10;
/// Larger numbers are not whole any more where JavaScript and Lua count.
const MOST: u64 = 1 << 53;

/// How a handler ends a run.
#[derive(Debug)]
pub enum Outcome {
    /// Finished; the value is kept as the job's result.
    Done(Value),
    /// Failed this time; uses an attempt. The back-off decides when the next one is.
    Retry(String),
    /// Failed this time; uses an attempt. The next one is after this long.
    RetryAfter(String, Duration),
    /// Can never succeed; the job fails permanently, whatever attempts are left.
    Discard(String),
    /// Not now, for example because an outside service is down: comes back later, uses no attempt.
    Snooze(Duration),
}

/// A value is the result of the job; an error is worth another attempt.
impl<T: Serialize, E: Display> From<Result<T, E>> for Outcome {
    fn from(result: Result<T, E>) -> Self {
        match result.map(|value| serde_json::to_value(value)) {
            Ok(Ok(value)) => Self::Done(value),
            Ok(Err(error)) => Self::Discard(format!("its result cannot be written: {error}")),
            Err(error) => Self::Retry(error.to_string()),
        }
    }
}

/// A function of a handler can return an outcome as its error: `?` passes it up from any depth.
impl<T: Serialize> From<Result<T, Outcome>> for Outcome {
    fn from(result: Result<T, Outcome>) -> Self {
        match result {
            Ok(value) => Self::from(Ok::<T, String>(value)),
            Err(outcome) => outcome,
        }
    }
}

/// An outage of Redis is not the job's fault and costs no attempt; any other error does.
impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        if error.is_outage() {
            return Self::Snooze(Duration::from_secs(1));
        }
        Self::Retry(error.to_string())
    }
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
    /// When this run began, in milliseconds since 1970.
    pub(crate) processed_on: u64,
    /// Workers that died or lost its lock while they ran it.
    pub crashes: u32,
    /// How often it was given to a worker, this time included.
    pub(crate) starts: u32,
    /// Attempts it may have; 0 if it does not say.
    pub attempts: u32,
    /// When it was added, in milliseconds since 1970.
    pub timestamp: u64,
    /// How long after it was added it could begin, in milliseconds.
    pub(crate) delay_ms: u64,
    /// Why it must not run: it was marked as failed while no worker had it (its workers crashed, or a child of it
    /// failed), or it is malformed.
    pub(crate) deferred_failure: Option<String>,
    /// Payload and options as they stand in its hash.
    pub(crate) raw_data: String,
    pub(crate) raw_options: String,
    /// Before its next attempt, if it says so itself.
    pub(crate) pause: Option<Pause>,
    /// The schedule it comes from.
    pub(crate) schedule: Option<String>,
    /// An earlier attempt has shown how far it was, in numbers.
    pub(crate) shows_progress: bool,
    pub(crate) stack_trace_limit: usize,
    pub(crate) keep_logs: Option<u64>,
    /// It goes before others when it comes back.
    pub(crate) lifo: bool,
    /// Which attempt this is: other runs of it are the same attempt, those after it are not.
    pub(crate) attempt: String,
    /// A request to cancel an attempt, with the reason (`consumer/cancel.rs`).
    pub(crate) wish: Option<String>,
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

impl KeepJobs {
    /// Whether only so many old ones are cleared up after each job.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }
}

/// What happens to a parent when a child fails.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ParentRules {
    pub(crate) fail: bool,
    pub(crate) go_on: bool,
    pub(crate) ignore: bool,
    pub(crate) remove: bool,
}

impl Job {
    /// Reads the hash of a job. Every option is read by itself and tolerantly: one odd value, such as
    /// a fraction from JavaScript, must not reset the others.
    pub(crate) fn from_hash(id: String, mut fields: HashMap<String, String>) -> Self {
        let json = |text: Option<&String>| {
            text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or(Value::Null)
        };
        let options = fields.get("opts").map_or(Ok(Value::Null), |text| read_options(text));
        let unreadable_options = options.as_ref().err().cloned();
        let options = options.unwrap_or_default();
        let data = fields.get("data").map(|data| serde_json::from_str::<Value>(data));
        let deferred_failure = fields
            .remove("defa")
            .or_else(|| unreadable(&fields, &data))
            .or_else(|| unreadable_options.map(|why| format!("unreadable job: its opts {why}")));
        let stack_trace = json(fields.get("stacktrace"));
        let whole = |text: Option<&String>| {
            text.and_then(|n| n.parse::<f64>().ok()).map_or(0, |n| n as u32)
        };
        let ms = |text: Option<&String>| {
            text.and_then(|n| n.parse::<f64>().ok()).map_or(0, |n| n as u64)
        };
        let flag = |name: &str| options[name].as_bool().unwrap_or(false);
        Self {
            attempts_made: whole(fields.get("atm")),
            processed_on: ms(fields.get("processedOn")),
            crashes: whole(fields.get("stc")),
            starts: whole(fields.get("ats")),
            attempts: options["attempts"].as_f64().map_or(0, |n| n as u32),
            delay_ms: options["delay"].as_f64().map_or(0, |n| n as u64),
            pause: Pause::read(&options["backoff"]),
            shows_progress: json(fields.get("progress")).as_f64().is_some_and(|n| n > 0.0),
            stack_trace_limit: options["stackTraceLimit"]
                .as_f64()
                .map_or(STACK_TRACE_LIMIT, |n| n as usize),
            keep_logs: options["kl"].as_f64().map(|n| n as u64).filter(|keep| *keep > 0),
            lifo: flag("lifo"),
            attempt: {
                let field = |name| fields.get(name).map_or("0", String::as_str);
                format!("{}-{}", field("timestamp"), field("atm"))
            },
            wish: fields.remove("cxl"),
            timestamp: ms(fields.get("timestamp")),
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
            data: data.and_then(Result::ok).unwrap_or_default(),
            deferred_failure,
            schedule: fields.remove("rjk"),
            raw_data: fields.remove("data").unwrap_or_default(),
            raw_options: fields.remove("opts").unwrap_or_else(|| "{}".to_owned()),
            name: fields.remove("name").unwrap_or_default(),
            id,
        }
    }
}

/// The options of a job, or why they are unreadable: without them the job would run with other attempts, retention or
/// parent than its producer asked for.
fn read_options(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        // As BullMQ reads it.
        _ if text.is_empty() => Ok(Value::Null),
        Ok(options @ Value::Object(_)) => Ok(options),
        Ok(_) => Err("are no JSON object".to_owned()),
        Err(error) => Err(format!("are not JSON ({error})")),
    }
}

/// Why a hash that other software has left behind is not a job.
fn unreadable(
    fields: &HashMap<String, String>,
    data: &Option<serde_json::Result<Value>>,
) -> Option<String> {
    if !fields.contains_key("name") {
        return Some("unreadable job: its hash has no name".to_owned());
    }
    match data {
        None => Some("unreadable job: its hash has no data".to_owned()),
        Some(Err(error)) => Some(format!("unreadable job: its data are not JSON ({error})")),
        Some(Ok(_)) => unusable(fields),
    }
}

/// A field that would make the scripts abort when the job ends (`repair.lua`).
fn unusable(fields: &HashMap<String, String>) -> Option<String> {
    #[derive(Deserialize)]
    struct Parent {
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "queueKey")]
        _queue_key: String,
    }
    let is_count = |text: &str| {
        // As Redis writes it; it reads no other form.
        text.len() <= 15 && text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
    };
    let is_finite = |text: &str| text.parse::<f64>().is_ok_and(|number| number.abs() < MOST as f64);
    let is_fine = |name: &str| {
        fields.get(name).is_none_or(|text| match name {
            "priority" => is_finite(text),
            _ => is_count(text),
        })
    };
    if let Some(name) = ["atm", "stc", "priority"].iter().find(|name| !is_fine(name)) {
        return Some(format!("unreadable job: its field {name} is no number"));
    }
    let parent = fields.get("parent")?;
    let error = serde_json::from_str::<Parent>(parent).err()?;
    Some(format!("unreadable job: its field parent is not readable ({error})"))
}

fn read_keep_jobs(option: &Value) -> KeepJobs {
    let count = |count| KeepJobs { count: Some(count), ..KeepJobs::default() };
    match option {
        Value::Bool(true) => count(0),
        Value::Number(n) => count((n.as_f64().unwrap_or(-1.0) as i64).min(MOST as i64)),
        Value::Object(fields) => {
            let number = |name: &str| fields.get(name).and_then(Value::as_f64);
            KeepJobs {
                count: number("count").map(|n| (n as i64).min(MOST as i64)),
                // Half a second is not none at all.
                age: number("age").map(|n| (n.ceil() as u64).min(MOST)),
                limit: number("limit").map(|n| (n as u64).min(MOST)),
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
        assert_eq!(
            job.pause.unwrap().after(2, 0.5, |_| Duration::ZERO),
            Duration::from_millis(4000)
        );
        assert_eq!(job.keep_completed.count, Some(-1));
        assert_eq!(job.data["a"], 1);
    }

    #[test]
    fn numbers_are_read_in_every_shape_that_javascript_writes() {
        for (attempts, wanted) in [
            ("3", 3),
            ("3.0", 3),
            ("3e0", 3),
            ("2.9", 2),
            ("-1", 0),
            ("1e300", u32::MAX),
            ("null", 0),
        ] {
            let options = format!(
                r#"{{"attempts":{attempts},"stackTraceLimit":1e1,"kl":5.5,"removeOnFail":{{"age":1.5e3,"count":7.0}}}}"#
            );
            let job = job(&options);
            assert_eq!(job.attempts, wanted, "{attempts}");
            assert_eq!((job.stack_trace_limit, job.keep_logs), (10, Some(5)));
            assert_eq!((job.keep_failed.age, job.keep_failed.count), (Some(1500), Some(7)));
        }
    }

    #[test]
    fn what_is_not_a_job_says_so() {
        let hash = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Job::from_hash("id".into(), fields).deferred_failure
        };
        assert_eq!(hash(&[("name", "x"), ("data", "{}")]), None);
        assert!(hash(&[("data", "{}")]).unwrap().contains("no name"));
        assert!(hash(&[("name", "x")]).unwrap().contains("no data"));
        // The second is half a letter, as JavaScript cuts it; the last is larger than any number.
        for data in ["{oops", r#"{"a":"x\ud83d"}"#, "1e400"] {
            assert!(hash(&[("name", "x"), ("data", data)]).unwrap().contains("not JSON"), "{data}");
        }
        let with = |field, value| hash(&[("name", "x"), ("data", "{}"), (field, value)]);
        assert_eq!((with("opts", ""), with("opts", "{}")), (None, None));
        for opts in ["not json", "[]", "7", "null"] {
            assert!(with("opts", opts).unwrap().contains("its opts are no"), "{opts}");
        }
        assert_eq!(with("atm", "2"), None);
        assert_eq!(with("parent", r#"{"id":"p","queueKey":"bull:q","fpof":true}"#), None);
        for (field, value) in [
            ("atm", "many"),
            ("atm", "2.0"),
            ("atm", "02"),
            ("atm", "+2"),
            ("stc", "-0"),
            ("priority", "nan"),
            ("priority", "1e300"),
            ("atm", "9999999999999999999"),
            ("stc", ""),
            ("parent", "{"),
            ("parent", r#"{"id":"p"}"#),
            ("parent", "7"),
        ] {
            assert!(with(field, value).unwrap().contains(field), "{field} {value}");
        }
    }

    #[test]
    fn a_result_is_an_outcome() {
        let outcome = |result: Result<u32, &str>| Outcome::from(result);
        assert!(matches!(outcome(Ok(7)), Outcome::Done(value) if value == 7));
        assert!(matches!(outcome(Err("busy")), Outcome::Retry(reason) if reason == "busy"));
        let never = Err::<u32, _>(Outcome::Discard("no such card".to_owned()));
        assert!(
            matches!(Outcome::from(never), Outcome::Discard(reason) if reason == "no such card")
        );
        let keys_that_are_no_text = HashMap::from([(vec![1], 2)]);
        let unwritable = Outcome::from(Ok::<_, String>(keys_that_are_no_text));
        assert!(matches!(unwritable, Outcome::Discard(_)));
    }

    #[test]
    fn retention_has_four_spellings() {
        for (option, count, age) in [
            ("1e300", Some(MOST as i64), None),
            (r#"{"age":1e300}"#, None, Some(MOST)),
            ("true", Some(0), None),
            ("false", Some(-1), None),
            ("100", Some(100), None),
            (r#"{"age":3600,"count":5}"#, Some(5), Some(3600)),
            (r#"{"age":0.5}"#, None, Some(1)),
        ] {
            let keep = job(&format!(r#"{{"removeOnFail":{option}}}"#)).keep_failed;
            assert_eq!((keep.count, keep.age), (count, age), "{option}");
        }
    }
}
