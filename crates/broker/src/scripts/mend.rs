//! Jobs that BullMQ's scripts would stumble over.
//!
//! A script that fails in the middle undoes nothing: the job it was about is in no list any more, or
//! comes back for ever as the next one. So such a job is mended before it is touched again, and fails.

use super::Script;
use crate::Error;
use crate::connection::Link;
use crate::keys::Keys;

static MEND: Script = Script::new(|| script("mend(KEYS[1])"));

// Those without a lock are what the check for stalled jobs is about.
static MEND_STALLED: Script = Script::new(|| {
    script(
        "for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
           if redis.call('EXISTS', ARGV[1] .. id .. ':lock') == 0 then
             mend(ARGV[1] .. id)
           end
         end",
    )
});

fn script(calls: &str) -> redis::Script {
    redis::Script::new(&format!("{}\n{calls}\n", include_str!("../mend.lua")))
}

/// Mends a job, if anything is the matter with it. To be asked only for jobs that are ours.
pub(crate) async fn mend(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<(), Error> {
    Ok(MEND.prepare_invoke().key(keys.part(job_id)).invoke_async(redis).await?)
}

/// Mends all jobs whose holder may be gone.
pub(crate) async fn mend_stalled(redis: &mut Link, keys: &Keys) -> Result<(), Error> {
    let mut call = MEND_STALLED.prepare_invoke();
    call.key(keys.part("stalled")).arg(&keys.prefix);
    Ok(call.invoke_async(redis).await?)
}
