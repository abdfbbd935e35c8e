//! Failed jobs run again. That a job waits and that its dead letter is gone is one step: whoever does it at the
//! same time, or dies in the middle, neither runs it twice nor loses it.

use redis::Value;

use super::add::{NewJob, Way};
use super::many::for_many;
use super::{ADD_PRIORITIZED_JOB_TEXT, ADD_STANDARD_JOB_TEXT, REPROCESS_JOB_TEXT, Script};
use crate::Error;
use crate::connection::Link;
use crate::keys::Keys;

const LETTERS: &str = include_str!("letters.lua");

static FORGET: Script = Script::new(|| {
    redis::Script::new(&format!(
        "{LETTERS}
         if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'data') ~= ARGV[2] then
           return 0
         end
         local gone = forgetLetter(KEYS[1], KEYS[2], KEYS[3], ARGV[1])
         -- An entry without a letter says nothing, and would be counted for ever.
         return gone == 1 and 1 or redis.call('LREM', KEYS[2], 0, ARGV[1])"
    ))
});

static REPLAY: Script = Script::new(|| script(REPROCESS_JOB_TEXT, include_str!("replay.lua")));

static ADD_STANDARD: Script =
    Script::new(|| script(ADD_STANDARD_JOB_TEXT, include_str!("replay_anew.lua")));

static ADD_PRIORITIZED: Script =
    Script::new(|| script(ADD_PRIORITIZED_JOB_TEXT, include_str!("replay_anew.lua")));

fn script(text: &str, calls: &str) -> redis::Script {
    redis::Script::new(&for_many(text, &[], &format!("{LETTERS}{calls}")))
}

/// What became of a job that should run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    /// It waits, for a worker or for its children.
    Waits,
    /// It has not failed, or not any more; its letter is gone.
    NotFailed,
    /// There is no such job (any more).
    Missing,
    /// Its letter is another one than the one that was read, or was replayed by somebody else.
    Changed,
    /// It cannot run: a child of it has failed, whose key this is.
    Blocked(String),
}

/// Runs a failed job again with all its attempts, with other data if given. `letter` is what its dead letter says:
/// unless it still does, nothing happens.
pub(crate) async fn replay(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    letter: Option<&str>,
    data: Option<&str>,
    now_ms: u64,
) -> Result<Again, Error> {
    let mut call = REPLAY.prepare_invoke();
    for key in keys.parts([
        job_id,
        "events",
        "failed",
        "wait",
        "meta",
        "active",
        "marker",
        "prioritized",
        "pc",
    ]) {
        call.key(key);
    }
    call.key(&letter_keys(keys, job_id)).key(keys.part("waiting-children"));
    // The attempts are counted anew, the starts are not: by them a run that somebody was cut off in the middle of
    // is told from those after it (`take_back.lua`).
    call.arg(job_id).arg("LPUSH").arg("failedReason").arg("failed").arg("1").arg("0");
    call.arg(letter.unwrap_or_default()).arg(data.unwrap_or_default()).arg(now_ms);
    Ok(match call.invoke_async(redis).await? {
        Value::Int(1 | 2) => Again::Waits,
        Value::Int(0) => Again::NotFailed,
        Value::Int(-1) => Again::Missing,
        Value::BulkString(child) => Again::Blocked(String::from_utf8_lossy(&child).into_owned()),
        // -3, of reprocessJob: it was in its list a moment ago, so this does not happen.
        _ => Again::Changed,
    })
}

/// Adds a job anew of whose record nothing is left but its letter.
pub(crate) async fn replay_anew(
    redis: &mut Link,
    keys: &Keys,
    job: &NewJob<'_>,
    letter: &str,
    now_ms: u64,
) -> Result<Again, Error> {
    let way = Way::of(&job.options);
    let (script, parts) = match way {
        Way::Prioritized => (&ADD_PRIORITIZED, way.keys()),
        // What was delayed once has waited long enough.
        _ => (&ADD_STANDARD, Way::Standard.keys()),
    };
    let id = job.options.job_id.as_deref().unwrap_or_default();
    let mut call = script.prepare_invoke();
    for part in parts.split(' ') {
        call.key(keys.part(part));
    }
    call.key(keys.part(id)).key(&letter_keys(keys, id));
    for argument in job.arguments(keys, now_ms) {
        call.arg(argument);
    }
    Ok(match call.arg(letter).arg(id).invoke_async(redis).await? {
        Value::Int(1) => Again::Waits,
        _ => Again::Changed,
    })
}

/// Takes a letter out of its queue; with `letter`, only if it still says that.
pub(crate) async fn forget_letter(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    letter: Option<&str>,
) -> Result<bool, Error> {
    let mut call = FORGET.prepare_invoke();
    call.key(&letter_keys(keys, job_id)).arg(job_id).arg(letter.unwrap_or_default());
    Ok(call.invoke_async(redis).await?)
}

/// The letter of a job, and the list and the events of its queue.
fn letter_keys(keys: &Keys, job_id: &str) -> [String; 3] {
    keys.dead().parts([job_id, "wait", "events"])
}
