//! Taking the next job.

use redis::Value;

use super::Claim;
use crate::Error;
use crate::link::Link;
use crate::queue::job::Job;
use crate::queue::names::is_part_of_queue;
use crate::queue::redis_keys::Keys;

script!(MOVE_TO_ACTIVE);

/// The answer of a script that takes the next job.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// A job, now active and locked by us.
    Job(Box<Job>),
    /// An id that no job can have, now active and locked by us: it is to be removed.
    NoJob(Vec<u8>),
    /// No job is ready. `due_ms`: when the next delayed job is due; `limited_ms`: how long the queue's rate limit
    /// lasts.
    Nothing { due_ms: Option<u64>, limited_ms: u64 },
}

impl Fetched {
    /// No job, and no time at which there will be one.
    pub(super) const NOTHING: Self = Self::Nothing { due_ms: None, limited_ms: 0 };
}

/// Takes the next job, if there is one.
pub(crate) async fn move_to_active(
    redis: &mut Link,
    keys: &Keys,
    claim: &Claim,
    now_ms: u64,
) -> Result<Fetched, Error> {
    let mut call = MOVE_TO_ACTIVE.prepare_invoke();
    for key in keys.parts([
        "wait",
        "active",
        "prioritized",
        "events",
        "stalled",
        "limiter",
        "delayed",
        "paused",
        "meta",
        "pc",
        "marker",
    ]) {
        call.key(key);
    }
    call.arg(&keys.prefix).arg(now_ms).arg(claim.packed());
    let answer = call.invoke_async(redis).await?;
    parse_fetched("moveToActive", answer)
}

/// Reads `{fields, id, rate-limit ms, next due ms}`; without a job, fields and id are 0.
pub(super) fn parse_fetched(script: &'static str, answer: Value) -> Result<Fetched, Error> {
    let unexpected =
        |answer: &dyn std::fmt::Debug| Error::Protocol { script, answer: format!("{answer:?}") };
    let Value::Array(parts) = answer else { return Err(unexpected(&answer)) };
    let [fields, id, limited_ms, due_ms] = parts.as_slice() else { return Err(unexpected(&parts)) };
    if let Value::Int(0) = fields {
        return Ok(Fetched::Nothing {
            due_ms: number(due_ms).filter(|due| *due > 0),
            limited_ms: number(limited_ms).unwrap_or(0),
        });
    }
    let Value::Array(fields) = fields else { return Err(unexpected(&parts)) };
    let garbled = fields.chunks_exact(2).find(|pair| !is_text(&pair[1])).map(|pair| text(&pair[0]));
    let fields = fields.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    if let Value::BulkString(raw) = id
        && std::str::from_utf8(raw).ok().is_none_or(is_part_of_queue)
    {
        return Ok(Fetched::NoJob(raw.clone()));
    }
    let mut job = Job::from_hash(text(id), fields);
    if let Some(field) = garbled {
        let reason = || format!("unreadable job: its field {field} is not UTF-8");
        job.deferred_failure.get_or_insert_with(reason);
    }
    Ok(Fetched::Job(Box::new(job)))
}

fn is_text(value: &Value) -> bool {
    !matches!(value, Value::BulkString(bytes) if std::str::from_utf8(bytes).is_err())
}

/// Bytes that are not UTF-8 are replaced: a job that cannot be read must fail, not block the queue.
fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Lua numbers arrive as integers, or as text when they have a fraction.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).ok()?.parse::<f64>().ok().map(|n| n as u64)
        }
        Value::Double(n) => Some(*n as u64),
        _ => None,
    }
}
