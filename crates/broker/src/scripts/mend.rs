//! Jobs that BullMQ's scripts would stumble over.
//!
//! A script that fails in the middle undoes nothing: the job it was about is in no list any more, or
//! comes back for ever as the next one. So such a job is mended before it is touched again, and fails.

use super::Script;
use crate::Error;
use crate::connection::Link;
use crate::keys::Keys;

/// Functions in Lua: `mend`, and `mended` for [`careful`] scripts.
pub(super) const FUNCTIONS: &str = include_str!("../mend.lua");

static MEND: Script = Script::new(|| script("mend(KEYS[1], ARGV[1])"));

// Those without a lock are what the check for stalled jobs is about.
static MEND_STALLED: Script = Script::new(|| {
    script(
        "-- The check itself comes no sooner either.
         if redis.call('EXISTS', KEYS[2]) == 1 then
           return
         end
         for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
           if redis.call('EXISTS', ARGV[1] .. id .. ':lock') == 0 then
             mend(ARGV[1], id)
           end
         end",
    )
});

fn script(calls: &str) -> redis::Script {
    redis::Script::new(&format!("{FUNCTIONS}\n{calls}\n"))
}

/// A script of BullMQ that mends delayed jobs before it promotes them.
pub(super) fn careful(script: &str) -> redis::Script {
    let (before, rest) =
        script.split_once("local function promoteDelayedJobs(").unwrap_or_default();
    let (function, after) = rest.split_once("\nend\n").unwrap_or_default();
    redis::Script::new(&format!(
        "{FUNCTIONS}\n{before}local function promoteDelayedJobs({function}\nend\n\
         promoteDelayedJobs = mended(promoteDelayedJobs)\n{after}"
    ))
}

/// Mends a job, if anything is the matter with it. To be asked only for jobs that are ours.
pub(crate) async fn mend(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<(), Error> {
    Ok(MEND.prepare_invoke().key(&keys.prefix).arg(job_id).invoke_async(redis).await?)
}

/// Mends all jobs whose holder may be gone.
pub(crate) async fn mend_stalled(redis: &mut Link, keys: &Keys) -> Result<(), Error> {
    let mut call = MEND_STALLED.prepare_invoke();
    call.key(keys.part("stalled")).key(keys.part("stalled-check")).arg(&keys.prefix);
    Ok(call.invoke_async(redis).await?)
}

#[cfg(test)]
mod tests {
    use super::super::{
        MOVE_TO_ACTIVE_TEXT, MOVE_TO_DELAYED_TEXT, MOVE_TO_FINISHED_TEXT, RETRY_JOB_TEXT,
    };

    #[test]
    fn the_pinned_scripts_can_be_made_careful() {
        for script in
            [MOVE_TO_ACTIVE_TEXT, MOVE_TO_DELAYED_TEXT, MOVE_TO_FINISHED_TEXT, RETRY_JOB_TEXT]
        {
            let (_, rest) = script.split_once("local function promoteDelayedJobs(").unwrap();
            let arguments = "delayedKey, markerKey, targetKey, prioritizedKey,\n                                  \
                             eventStreamKey, prefix, timestamp, priorityCounterKey, isPaused)";
            assert!(rest.starts_with(arguments), "{rest}");
            let (function, after) = rest.split_once("\nend\n").unwrap();
            assert!(!function.contains("local function "), "{function}");
            assert!(after.contains("promoteDelayedJobs("), "it is called after that");
            assert!(function.contains("(timestamp + 1) * 0x1000 - 1, \"LIMIT\", 0, 1000)"));
        }
    }
}
