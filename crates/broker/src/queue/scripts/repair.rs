//! Repairing malformed jobs, then failing them: a Lua script that aborts is not rolled back, and would leave the
//! job in no list, or as the next one for ever.

use crate::Error;
use crate::link::Link;
use crate::queue::redis_keys::Keys;

script!(REPAIR_ONE);
script!(REPAIR_STALLED);

/// Repairs a job, if it is malformed. Only for jobs that are locked for us.
pub(crate) async fn repair(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<(), Error> {
    Ok(REPAIR_ONE.prepare_invoke().key(&keys.prefix).arg(job_id).invoke_async(redis).await?)
}

/// Repairs all malformed jobs without a lock.
pub(crate) async fn repair_stalled(redis: &mut Link, keys: &Keys) -> Result<(), Error> {
    let mut call = REPAIR_STALLED.prepare_invoke();
    call.key(keys.part("stalled")).key(keys.part("stalled-check")).arg(&keys.prefix);
    Ok(call.invoke_async(redis).await?)
}
