//! What our consumer does right where the official crate's `Worker` (1.4.4) does not.
//!
//! Every scenario runs with both: that the crate's worker fails it shows that the test can fail. When
//! a newer version of the crate gets one right, its half of the assertion says so.

mod arm;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use redis::cmd;
use serde_json::{Value, json};
use stampede_broker::JobSpec;
use stampede_broker::Schedule;
use stampede_testkit::eventually;
use tokio::sync::Semaphore;

use self::arm::{Arm, SHORT, Times, Work, Worker, work};
use crate::stage::{SOON, Stage, job, jobs, throughout};

/// Long enough to see that something does not happen: several locks and renewals.
const A_WHILE: Duration = Duration::from_millis(2_000);

async fn both<T>(scenario: impl AsyncFn(Arm) -> T) -> (T, T) {
    tokio::join!(scenario(Arm::Ours), scenario(Arm::TheCrates))
}

/// Adds a job with options in any form, as a client in another language might.
async fn put(stage: &Stage, id: &str, options: &Value) {
    let mut raw = stage.raw().await;
    let mut command = cmd("HSET");
    command.arg(format!("bull:tickets:{id}")).arg("name").arg("x").arg("data").arg("{}");
    command.arg("opts").arg(options.to_string()).arg("timestamp").arg("1").arg("priority").arg("0");
    let _: i64 = command.query_async(&mut raw).await.unwrap();
    stage.ask::<()>(&format!("LPUSH @wait {id}")).await;
    stage.ask::<()>("ZADD @marker 0 0").await;
}

/// Counts its runs, and fails each.
fn failing(runs: &Arc<AtomicUsize>) -> Work {
    let runs = runs.clone();
    work(move |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        async { Err("out of paper".to_owned()) }
    })
}

/// Runs until it is let go; counts its runs.
fn held(runs: &Arc<AtomicUsize>, go: &Arc<Semaphore>) -> Work {
    let (runs, go) = (runs.clone(), go.clone());
    work(move |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        let go = go.clone();
        async move {
            go.acquire().await.unwrap().forget();
            Ok(json!("done"))
        }
    })
}

async fn until_runs(runs: &AtomicUsize, wanted: usize) {
    eventually(SOON, || async move {
        let found = runs.load(Ordering::SeqCst);
        if found >= wanted { Ok(()) } else { Err(format!("{found} runs")) }
    })
    .await;
}

#[tokio::test]
async fn fact_1_a_panic_leaves_no_zombie() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let panics = work(|_| async { panic!("on purpose") });
        let worker = Worker::start(arm, &stage, SHORT, panics).await;
        stage.enqueue(&[JobSpec { attempts: Some(1), ..job("a") }]).await;
        if arm == Arm::Ours {
            stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
        } else {
            stage.until("taken", |counts| counts.active == 1).await;
            // Much longer than the lock lives without being renewed.
            throughout(A_WHILE, async || {}).await;
            let locked = || async { stage.ask::<bool>("EXISTS @a:lock").await.then_some(()) };
            eventually(SOON, locked).await;
        }
        let counts = stage.queue.counts().await.unwrap();
        drop(worker);
        (counts.failed, counts.active)
    })
    .await;
    assert_eq!((ours, crates), ((1, 0), (0, 1)));
}

#[tokio::test]
async fn fact_2_a_completion_that_meets_a_restart_of_redis_is_not_dropped() {
    let (ours, crates) = both(async |arm| {
        let mut stage = Stage::durable().await;
        let (runs, go) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let times = Times { stalled_interval: Duration::from_millis(300), ..SHORT };
        let _worker = Worker::start(arm, &stage, times, held(&runs, &go)).await;
        stage.enqueue(&[job("a")]).await;
        until_runs(&runs, 1).await;
        stage.redis.kill();
        go.add_permits(9);
        // Longer than the lock lives.
        throughout(Duration::from_millis(1_000), async || {}).await;
        stage.redis.start_again().await;
        stage.until_completed(1).await;
        runs.load(Ordering::SeqCst)
    })
    .await;
    assert_eq!((ours, crates), (1, 2), "runs");
}

#[tokio::test]
async fn fact_3_a_lost_lock_is_noticed() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let (gone, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (guard, count) = (gone.clone(), runs.clone());
        let stays = work(move |visit| {
            let guard = Gone(guard.clone());
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                let _guard = guard;
                visit.for_ever().await;
                Ok(json!(null))
            }
        });
        let worker = Worker::start(arm, &stage, SHORT, stays).await;
        stage.enqueue(&[job("a")]).await;
        until_runs(&runs, 1).await;
        gone.store(false, Ordering::SeqCst);
        stage.ask::<()>("SET @a:lock thief").await;
        let noticed = async {
            eventually(SOON, || async { gone.load(Ordering::SeqCst).then_some(()) }).await;
        };
        let noticed = tokio::time::timeout(A_WHILE, noticed).await.is_ok();
        drop(worker);
        noticed
    })
    .await;
    assert_eq!((ours, crates), (true, false));
}

#[tokio::test]
async fn fact_4_all_locks_are_renewed_in_one_call() {
    const JOBS: usize = 20;
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let (runs, go) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let times = Times { slots: JOBS, ..SHORT };
        let worker = Worker::start(arm, &stage, times, held(&runs, &go)).await;
        stage.enqueue(&jobs(JOBS)).await;
        until_runs(&runs, JOBS).await;
        stage.ask::<()>("CONFIG RESETSTAT").await;
        throughout(Duration::from_millis(1_000), async || {}).await;
        let stats: String = stage.ask("INFO commandstats").await;
        let scripts = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let scripts: usize = scripts.unwrap().split(',').next().unwrap().parse().unwrap();
        go.add_permits(JOBS);
        stage.until_completed(JOBS as u64).await;
        drop(worker);
        scripts
    })
    .await;
    assert!((1..JOBS).contains(&ours), "{ours} calls in a second");
    assert!(crates >= JOBS, "{crates} calls in a second");
}

#[tokio::test]
async fn fact_5_events_that_nobody_reads_do_not_pile_up() {
    const JOBS: usize = 1_500;
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let done = work(|_| async { Ok(json!(null)) });
        let times = Times { slots: 20, lock: Duration::from_secs(30), ..SHORT };
        let mut worker = Worker::start(arm, &stage, times, done).await;
        stage.enqueue(&jobs(JOBS)).await;
        stage.until_completed(JOBS as u64).await;
        worker.unread().await.0
    })
    .await;
    assert!(ours <= 1_024, "{ours}");
    assert!(crates >= 2 * JOBS, "{crates}");
}

#[tokio::test]
async fn fact_6_reason_and_trace_are_written_on_every_attempt() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let runs = Arc::default();
        let worker = Worker::start(arm, &stage, SHORT, failing(&runs)).await;
        put(&stage, "a", &json!({"attempts": 2, "backoff": {"type": "fixed", "delay": 60_000}}))
            .await;
        stage.until("to be tried again", |counts| counts.delayed == 1).await;
        drop(worker);
        (stage.field("a", "failedReason").await, stage.field("a", "stacktrace").await)
    })
    .await;
    let written = (Some("out of paper".to_owned()), Some(r#"["out of paper"]"#.to_owned()));
    assert_eq!((ours, crates), (written, (None, None)));
}

#[tokio::test]
async fn fact_7_one_odd_option_does_not_reset_the_others() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let runs = Arc::default();
        let worker = Worker::start(arm, &stage, SHORT, failing(&runs)).await;
        // All of them numbers that JavaScript writes without a thought.
        let options = json!({"attempts": 3, "backoff": {"type": "fixed", "delay": 20.5}, "stackTraceLimit": 1e3});
        put(&stage, "a", &options).await;
        stage.until("failed", |counts| counts.failed == 1).await;
        drop(worker);
        runs.load(Ordering::SeqCst)
    })
    .await;
    assert_eq!((ours, crates), (3, 1), "attempts");
}

#[tokio::test]
async fn fact_8_as_many_log_lines_are_kept_as_the_job_says() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let talks = work(|visit| async move {
            for line in ["one", "two", "three"] {
                visit.log(line).await;
            }
            Ok(json!(null))
        });
        let _worker = Worker::start(arm, &stage, SHORT, talks).await;
        put(&stage, "a", &json!({"kl": 2})).await;
        stage.until_completed(1).await;
        stage.ask::<Vec<String>>("LRANGE @a:logs 0 -1").await
    })
    .await;
    assert_eq!(ours, ["two", "three"]);
    assert_eq!(crates, ["one", "two", "three"]);
}

#[tokio::test]
async fn fact_8_an_idle_worker_closes_at_once() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let idle = work(|_| async { Ok(json!(null)) });
        let worker = Worker::start(arm, &stage, SHORT, idle).await;
        stage.until_idle(1).await;
        worker.close().await
    })
    .await;
    assert!(ours < Duration::from_millis(200), "{ours:?}");
    assert!(crates > Duration::from_secs(2), "{crates:?}");
}

#[tokio::test]
async fn fact_8_stalled_jobs_are_looked_for_at_the_start_and_told_of() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let runs = Arc::default();
        // As a worker leaves it that vanished, after another has looked once.
        stage.ask::<()>("HSET @a name x data {} opts {} timestamp 1").await;
        stage.ask::<()>("LPUSH @active a").await;
        stage.ask::<()>("SADD @stalled a").await;
        let go = Arc::new(Semaphore::new(9));
        let times = Times { stalled_interval: Duration::from_secs(3), ..SHORT };
        let mut worker = Worker::start(arm, &stage, times, held(&runs, &go)).await;
        let at_once = tokio::time::timeout(A_WHILE, until_runs(&runs, 1)).await.is_ok();
        stage.until_completed(1).await;
        let (_, told) = worker.unread().await;
        (at_once, told)
    })
    .await;
    assert_eq!((ours, crates), ((true, true), (false, false)));
}

#[tokio::test]
async fn fact_8_the_next_run_of_a_schedule_is_added_when_this_one_begins() {
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let (runs, go) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let worker = Worker::start(arm, &stage, SHORT, held(&runs, &go)).await;
        let spec = JobSpec { priority: 0, attempts: Some(1), ..job("report") };
        let every = Schedule::Every(Duration::from_secs(60));
        stage.queue.schedule("report", &every, &spec).await.unwrap();
        until_runs(&runs, 1).await;
        let next = async { stage.until("the next", |counts| counts.delayed == 1).await };
        let added = tokio::time::timeout(A_WHILE, next).await.is_ok();
        go.add_permits(9);
        drop(worker);
        added
    })
    .await;
    assert_eq!((ours, crates), (true, false));
}

#[tokio::test]
async fn fact_8_jitter_spreads_those_who_failed_together() {
    const JOBS: usize = 12;
    let (ours, crates) = both(async |arm| {
        let stage = Stage::start().await;
        let runs = Arc::default();
        let worker = Worker::start(arm, &stage, SHORT, failing(&runs)).await;
        let backoff = json!({"type": "fixed", "delay": 60_000, "jitter": 0.9});
        for number in 0..JOBS {
            put(&stage, &format!("a{number}"), &json!({"attempts": 2, "backoff": backoff})).await;
        }
        stage.until("all wait", |counts| counts.delayed == JOBS as u64).await;
        let mut delays = BTreeSet::new();
        for number in 0..JOBS {
            delays.insert(stage.field(&format!("a{number}"), "delay").await.unwrap());
        }
        drop(worker);
        delays.len()
    })
    .await;
    assert!(ours > JOBS / 2, "{ours} different pauses");
    assert_eq!(crates, 1, "different pauses");
}
