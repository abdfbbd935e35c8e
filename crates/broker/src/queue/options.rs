//! The options of a job as BullMQ writes them.

use std::time::Duration;

use crate::{Backoff, Deduplication, Error, JobSpec, Keep, Which};
use bullmq::types::{BackoffStrategy, KeepJobs, RemoveOnFinish};
use bullmq::{DeduplicationOptions, JobOptions};
use serde_json::{Map, Value, json};

use crate::queue::names::{check_deduplication_id, check_job_id, check_job_name};

/// BullMQ's scores have no room for more.
const LAST_PRIORITY: u32 = 1 << 21;
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Refuses what should not be on a queue; the payload as JSON.
pub(crate) fn check(job: &JobSpec, max_payload: usize) -> Result<String, Error> {
    check_job_id(&job.id)?;
    check_job_name(&job.name)?;
    if job.id.bytes().all(|byte| byte.is_ascii_digit()) {
        let reason = "it is a number, which BullMQ gives to jobs without an id".to_owned();
        return Err(Error::InvalidName { what: "job id", name: job.id.clone(), reason });
    }
    if let Some(Deduplication { id, .. }) = &job.deduplication {
        check_deduplication_id(id)?;
    }
    let refused = |reason: String| Error::InvalidOption { id: job.id.clone(), reason };
    if job.priority > LAST_PRIORITY {
        let reason = format!("its priority is {}, and {LAST_PRIORITY} is the last", job.priority);
        return Err(refused(reason));
    }
    if delay_of(job) > LONGEST_DELAY {
        return Err(refused("it is delayed by more than ten years".to_owned()));
    }
    payload(&job.id, &job.data, max_payload)
}

/// A payload as JSON, if it is not too large.
fn payload(id: &str, data: &Value, limit: usize) -> Result<String, Error> {
    let data = data.to_string();
    check_size(id, &data, limit)?;
    Ok(data)
}

pub(crate) fn check_size(id: &str, data: &str, limit: usize) -> Result<(), Error> {
    let bytes = data.len();
    if bytes > limit {
        return Err(Error::PayloadTooLarge { id: id.to_owned(), bytes, limit });
    }
    Ok(())
}

/// The options of a job that was checked.
pub(crate) fn options_of(spec: &JobSpec) -> JobOptions {
    let ms = |duration: Duration| duration.as_millis() as u64;
    let delay = delay_of(spec);
    JobOptions {
        job_id: Some(spec.id.clone()),
        // Without one it stands in no order of priorities at all.
        priority: (spec.priority > 0).then_some(spec.priority),
        delay: (!delay.is_zero()).then(|| ms(delay).max(1)),
        attempts: spec.attempts,
        backoff: spec.backoff.as_ref().map(|backoff| match backoff {
            Backoff::Fixed(pause) => BackoffStrategy::Fixed(ms(*pause)),
            Backoff::Exponential(first) => BackoffStrategy::Exponential(ms(*first)),
            Backoff::Named(name) => BackoffStrategy::Custom(name.clone()),
        }),
        deduplication: spec.deduplication.as_ref().map(|Deduplication { id, which }| {
            let yes = |is: bool| is.then_some(true);
            DeduplicationOptions {
                id: id.clone(),
                ttl: match which {
                    Which::FirstWithin(time) | Which::LastAfter(time) => Some(ms(*time).max(1)),
                    Which::First | Which::FirstThenLast => None,
                },
                extend: yes(matches!(which, Which::LastAfter(_))),
                replace: yes(matches!(which, Which::LastAfter(_))),
                keep_last_if_active: yes(*which == Which::FirstThenLast),
            }
        }),
        remove_on_complete: kept(spec.keep_completed),
        remove_on_fail: kept(spec.keep_failed),
        ..JobOptions::default()
    }
}

/// The last of several can only be known when it has waited for others.
fn delay_of(spec: &JobSpec) -> Duration {
    match &spec.deduplication {
        Some(Deduplication { which: Which::LastAfter(time), .. }) => spec.delay.max(*time),
        _ => spec.delay,
    }
}

fn kept(keep: Keep) -> Option<RemoveOnFinish> {
    let Keep::AtMost { age, count } = keep else { return None };
    // BullMQ's scripts read the age in seconds, whatever the crate's documentation says.
    let age = Some(age.as_secs().max(1));
    Some(RemoveOnFinish::Options(KeepJobs { age, count: Some(count), limit: None }))
}

/// Options as they stand in a job's hash, for the same job once more. Each is read by itself: one odd
/// value resets no other. Whatever belonged to its time, its delay, its parent, its twins, is not kept.
pub(crate) fn options_again(text: &str) -> JobOptions {
    let Ok(Value::Object(all)) = serde_json::from_str(text) else {
        return JobOptions::default();
    };
    let readable = |(name, value): &(String, Value)| {
        let alone = json!({ name: value });
        !matches!(name.as_str(), "delay" | "parent" | "timestamp" | "de")
            && serde_json::from_value::<JobOptions>(alone).is_ok()
    };
    let kept: Map<_, _> = all.into_iter().filter(readable).collect();
    serde_json::from_value(kept.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_the_options_that_bullmq_reads() {
        let job = JobSpec { id: "a".into(), ..JobSpec::new("n", json!({})) };
        let twin = |which| Some(Deduplication { id: "twin".into(), which });
        let second = Duration::from_secs(1);
        let day = json!({"age": 86_400, "count": 10_000});
        let week = json!({"age": 604_800, "count": 100_000});
        let written = |job: JobSpec| json!(options_of(&job));
        assert_eq!(
            written(job.clone()),
            json!({"jobId": "a", "removeOnComplete": day, "removeOnFail": week})
        );
        let kept = JobSpec {
            keep_completed: Keep::Forever,
            keep_failed: Keep::AtMost { age: Duration::from_millis(5), count: 0 },
            ..job
        };
        let gone = json!({"age": 1, "count": 0});
        for (spec, options) in [
            (kept.clone(), json!({})),
            (JobSpec { priority: 7, ..kept.clone() }, json!({"priority": 7})),
            (JobSpec { attempts: Some(4), ..kept.clone() }, json!({"attempts": 4})),
            (JobSpec { delay: second, ..kept.clone() }, json!({"delay": 1000})),
            (JobSpec { delay: Duration::from_nanos(1), ..kept.clone() }, json!({"delay": 1})),
            (
                JobSpec { backoff: Some(Backoff::Fixed(second)), ..kept.clone() },
                json!({"backoff": {"type": "fixed", "delay": 1000}}),
            ),
            (
                JobSpec { backoff: Some(Backoff::Named("mine".into())), ..kept.clone() },
                json!({"backoff": {"type": "mine", "delay": 0}}),
            ),
            (
                JobSpec { deduplication: twin(Which::First), ..kept.clone() },
                json!({"de": {"id": "twin"}}),
            ),
            (
                JobSpec { deduplication: twin(Which::FirstWithin(second)), ..kept.clone() },
                json!({"de": {"id": "twin", "ttl": 1000}}),
            ),
            (
                JobSpec { deduplication: twin(Which::LastAfter(second)), ..kept.clone() },
                json!({"delay": 1000, "de": {"id": "twin", "ttl": 1000, "extend": true, "replace": true}}),
            ),
            (
                JobSpec { deduplication: twin(Which::FirstThenLast), ..kept.clone() },
                json!({"de": {"id": "twin", "keepLastIfActive": true}}),
            ),
        ] {
            let mut expected = json!({"jobId": "a", "removeOnFail": gone});
            expected.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
            assert_eq!(written(spec), expected);
        }
    }

    #[test]
    fn what_a_queue_has_no_room_for_is_refused() {
        let job = JobSpec { id: "a".into(), ..JobSpec::new("n", json!({})) };
        let twin = |id: &str, which| Some(Deduplication { id: id.into(), which });
        let ages = LONGEST_DELAY * 2;
        for (job, told) in [
            (JobSpec { id: "12".into(), ..job.clone() }, "job id"),
            (JobSpec { priority: LAST_PRIORITY + 1, ..job.clone() }, "2097152 is the last"),
            (JobSpec { delay: Duration::MAX, ..job.clone() }, "ten years"),
            (
                JobSpec { deduplication: twin("a", Which::LastAfter(ages)), ..job.clone() },
                "ten years",
            ),
            (
                JobSpec { deduplication: twin("a:b", Which::First), ..job.clone() },
                "deduplication id",
            ),
            (
                JobSpec { data: "x".repeat(999).into(), ..job.clone() },
                "has 1001 bytes, and 1000 is",
            ),
        ] {
            let error = check(&job, 1000).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let largest = JobSpec { data: "x".repeat(998).into(), ..job };
        check(&JobSpec { priority: LAST_PRIORITY, delay: LONGEST_DELAY, ..largest }, 1000).unwrap();
    }

    #[test]
    fn a_job_once_more_keeps_what_can_be_read() {
        let text = r#"{"attempts":3,"delay":5000,"priority":"high","de":{"id":"x"},"removeOnFail":true,
                       "backoff":{"type":"exponential","delay":70}}"#;
        let again = json!(options_again(text));
        let backoff = json!({"type": "exponential", "delay": 70});
        assert_eq!(again, json!({"attempts": 3, "removeOnFail": true, "backoff": backoff}));
        assert_eq!(json!(options_again("nonsense")), json!({}));
    }
}
