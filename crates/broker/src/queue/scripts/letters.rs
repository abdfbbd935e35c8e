//! Failing a job permanently: its dead letter is written in the same transaction, so that there is never one
//! without the other.

use redis::Value;

use super::finish::{
    FinishReply, FinishRequest, Run, Target, finish_arguments, finish_keys, parse_finished,
};
use crate::Error;
use crate::link::Link;
use crate::queue::redis_keys::Keys;

/// A dead letter to be written.
pub(crate) struct NewLetter<'a> {
    /// The name of the job.
    pub(crate) name: &'a str,
    /// Why the job failed.
    pub(crate) reason: &'a str,
    /// The letter as JSON.
    pub(crate) data: String,
    /// The channel on which the letter is announced, and the message.
    pub(crate) channel: &'a str,
    pub(crate) message: String,
}

/// Moves a job from active to failed, and writes its dead letter.
pub(crate) async fn fail_permanently(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    letter: &NewLetter<'_>,
) -> Result<FinishReply, Error> {
    let job_id = &run.job.id;
    let dead = keys.dead();
    let mut letter_keys = vec![keys.lock(job_id), keys.part("active"), dead.part(job_id)];
    letter_keys.extend(dead.parts(["wait", "meta", "events", "marker"]));
    letter_keys.push(keys.part(job_id));
    let request = FinishRequest::failed(run, letter.reason);
    let arguments = finish_arguments(keys, Target::Failed, &request, run.now_ms);
    let keys = finish_keys(keys, Target::Failed, job_id);
    // By text, not by hash: inside a transaction a missing script cannot be loaded.
    let mut write = redis::cmd("EVAL");
    write.arg(stampede_scripts::queue::DEAD_LETTER).arg(letter_keys.len()).arg(letter_keys);
    write.arg(&run.claim.token).arg(job_id).arg(letter.name).arg(&letter.data);
    write.arg(r#"{"attempts":1}"#).arg(run.now_ms).arg(letter.channel).arg(&letter.message);
    let mut finish = redis::cmd("EVAL");
    finish.arg(stampede_scripts::queue::MOVE_TO_FINISHED_UNCHANGED);
    finish.arg(keys.len()).arg(&keys).arg(&arguments);
    let mut pipe = redis::pipe();
    pipe.atomic().add_command(write).ignore().add_command(finish);
    let (answer,): (Value,) = pipe.query_async(redis).await?;
    parse_finished("moveToFinished", answer)
}
