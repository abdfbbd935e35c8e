//! Locks, and jobs whose worker is gone.

use super::packed;
use crate::link::Link;
use crate::queue::redis_keys::Keys;
use crate::{Error, Job};

script!(COUNT_CRASH);
script!(EXTEND_LOCKS);
script!(MOVE_JOB_FROM_ACTIVE_TO_WAIT);
script!(MOVE_STALLED_JOBS_TO_WAIT);
script!(TAKE_BACK);

/// Renews the locks of all jobs in one call; returns the ids whose lock is lost.
pub(crate) async fn extend_locks(
    redis: &mut Link,
    keys: &Keys,
    lock_ms: u64,
    job_ids: &[&str],
    tokens: &[&str],
) -> Result<Vec<String>, Error> {
    let mut call = EXTEND_LOCKS.prepare_invoke();
    call.key(keys.part("stalled"))
        .arg(&keys.prefix)
        .arg(packed(&tokens))
        .arg(packed(&job_ids))
        .arg(lock_ms);
    Ok(call.invoke_async(redis).await?)
}

/// A run of a job by this worker, and what tells it from other runs.
#[derive(Debug, Clone)]
pub(crate) struct OurRun {
    pub(crate) job_id: String,
    /// The lock token.
    pub(crate) token: String,
    /// When the job was added.
    added: u64,
    /// When this run of it began.
    pub(crate) began: u64,
    /// How often the job was given to a worker, this time included.
    starts: u32,
}

impl OurRun {
    pub(crate) fn of(job: &Job, token: &str) -> Self {
        Self {
            job_id: job.id.clone(),
            token: token.to_owned(),
            added: job.timestamp,
            began: job.processed_on,
            starts: job.starts,
        }
    }
}

/// Whether a job that we run is still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakenBack {
    /// It is locked for us.
    Ours,
    /// It has ended, waits again, or another worker has it.
    NotOurs,
    /// Redis has no such job, and may have forgotten it.
    Unknown,
}

/// Locks a job again that we run: its lock has expired, or Redis has forgotten that we took it.
pub(crate) async fn take_back(
    redis: &mut Link,
    keys: &Keys,
    lock_ms: u64,
    run: &OurRun,
) -> Result<TakenBack, Error> {
    let mut call = TAKE_BACK.prepare_invoke();
    for key in keys.parts(["active", "wait", "prioritized", "delayed", "stalled", &run.job_id]) {
        call.key(key);
    }
    call.key(keys.lock(&run.job_id));
    call.arg(&run.job_id).arg(&run.token).arg(lock_ms);
    call.arg(run.added).arg(run.began).arg(run.starts);
    Ok(match call.invoke_async::<i64>(redis).await? {
        1 => TakenBack::Ours,
        0 => TakenBack::NotOurs,
        _ => TakenBack::Unknown,
    })
}

/// Counts on a job that its worker died. After more than `allowed` crashes the next worker fails the job. Does
/// nothing unless `token` still holds the lock.
pub(crate) async fn count_crash(
    redis: &mut Link,
    keys: &Keys,
    token: &str,
    job_id: &str,
    allowed: u32,
) -> Result<(), Error> {
    let mut call = COUNT_CRASH.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.lock(job_id));
    Ok(call.arg(token).arg(allowed).invoke_async(redis).await?)
}

/// Puts an active job back to wait without counting an attempt. `Ok(false)`: `token` does not hold its lock.
pub(crate) async fn move_job_from_active_to_wait(
    redis: &mut Link,
    keys: &Keys,
    token: &str,
    job_id: &str,
) -> Result<bool, Error> {
    let mut call = MOVE_JOB_FROM_ACTIVE_TO_WAIT.prepare_invoke();
    for key in keys.parts([
        "active",
        "wait",
        "stalled",
        "paused",
        "meta",
        "limiter",
        "prioritized",
        "marker",
        "events",
    ]) {
        call.key(key);
    }
    call.arg(job_id).arg(token).arg(keys.part(job_id));
    let code: i64 = call.invoke_async(redis).await?;
    Ok(code >= 0)
}

/// Puts jobs without a lock back to wait; returns their ids.
pub(crate) async fn move_stalled_jobs_to_wait(
    redis: &mut Link,
    keys: &Keys,
    max_stalled: u32,
    interval_ms: u64,
    now_ms: u64,
) -> Result<Vec<String>, Error> {
    let mut call = MOVE_STALLED_JOBS_TO_WAIT.prepare_invoke();
    for key in keys.parts([
        "stalled",
        "wait",
        "active",
        "stalled-check",
        "meta",
        "paused",
        "marker",
        "events",
        "repeat",
    ]) {
        call.key(key);
    }
    call.arg(max_stalled).arg(&keys.prefix).arg(now_ms).arg(interval_ms);
    let ids: Vec<Vec<u8>> = call.invoke_async(redis).await?;
    Ok(ids.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use stampede_testkit::Redis;

    use super::*;
    use crate::{Broker, Config};

    /// What happened to the job since our second run of it began, and whether it is still ours.
    const STORIES: [(&str, &[&str], TakenBack); 11] = [
        ("its lock expired", &["LPUSH @active j"], TakenBack::Ours),
        ("its lock is ours", &["LPUSH @active j", "SET @j:lock ours"], TakenBack::Ours),
        ("its taking was forgotten", &["LPUSH @wait j x y", "HSET @j ats 1"], TakenBack::Ours),
        ("the same, with priority", &["ZADD @prioritized 1 j", "HSET @j ats 1"], TakenBack::Ours),
        ("the same, delayed before", &["ZADD @delayed 1 j", "HSET @j ats 1"], TakenBack::Ours),
        ("it went back to wait", &["LPUSH @wait j"], TakenBack::NotOurs),
        ("another has it", &["LPUSH @active j", "SET @j:lock theirs"], TakenBack::NotOurs),
        ("another had it", &["LPUSH @active j", "HSET @j ats 3"], TakenBack::NotOurs),
        ("it is done", &["HSET @j finishedOn 9"], TakenBack::NotOurs),
        ("it is another", &["LPUSH @active j", "HSET @j timestamp 8"], TakenBack::NotOurs),
        ("it was forgotten altogether", &["DEL @j"], TakenBack::Unknown),
    ];

    #[tokio::test]
    async fn a_job_is_taken_back_by_its_run_and_by_no_other() {
        let redis = Redis::start().await;
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        let keys = Keys::new("bull", "q");
        let mut link = broker.redis();
        let run = OurRun {
            job_id: "j".to_owned(),
            token: "ours".to_owned(),
            added: 5,
            began: 7,
            starts: 2,
        };
        for (story, commands, whose) in STORIES {
            let first = ["FLUSHALL", "HSET @j name job timestamp 5 ats 2 processedOn 7"];
            for command in first.iter().chain(commands) {
                let mut words = command.split(' ').map(|word| word.replace('@', &keys.prefix));
                let mut command = redis::cmd(&words.next().unwrap());
                command.arg(words.collect::<Vec<_>>()).exec_async(&mut link).await.unwrap();
            }
            let taken = take_back(&mut link, &keys, 10_000, &run).await.unwrap();
            assert_eq!(taken, whose, "{story}");
            let mut pipe = redis::pipe();
            pipe.lrange(keys.part("active"), 0, -1).get(keys.lock("j"));
            pipe.hget(keys.part("j"), "ats").lrange(keys.part("wait"), 0, -1);
            let (active, lock, ats, wait): (Vec<String>, Option<String>, Option<u32>, Vec<String>) =
                pipe.query_async(&mut link).await.unwrap();
            if whose == TakenBack::Ours {
                assert_eq!(
                    (active, lock.as_deref(), ats),
                    (vec!["j".into()], Some("ours"), Some(2))
                );
                assert!(!wait.contains(&"j".to_owned()), "{story}");
            } else {
                assert_ne!(lock.as_deref(), Some("ours"), "{story}");
            }
        }
    }
}
