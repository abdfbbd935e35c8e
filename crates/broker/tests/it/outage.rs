//! Redis goes away while jobs run: none is lost, and none is run again that was done.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{ConsumerConfig, Handler, Job, JobContext, Outcome};
use stampede_testkit::{Proxy, eventually};

use crate::stage::{
    Played, Running, SOON, Stage, config, connect, job, jobs, play, short_lock, throughout,
};

#[tokio::test]
async fn jobs_that_end_while_redis_is_away_are_finished_later_and_run_once() {
    let mut stage = Stage::durable().await;
    let mut played = stage.play(ConsumerConfig { slots: 4, ..config("w") });
    stage.enqueue(&jobs(20)).await;
    let mut runs: HashMap<String, usize> = HashMap::new();
    let mut count = |id: &str| *runs.entry(id.to_owned()).or_default() += 1;

    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(played.run().await);
    }
    let still_running = held.pop().unwrap();
    stage.redis.stop().await;
    for run in held {
        count(&run.job.id);
        run.completes();
    }
    stage.redis.start_again().await;
    count(&still_running.job.id);
    still_running.completes();
    for _ in 4..20 {
        let run = played.run().await;
        count(&run.job.id);
        run.completes();
    }
    stage.until_completed(20).await;
    played.runs_nothing_else();
    assert_eq!(runs.len(), 20);
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
}

#[tokio::test]
async fn work_done_in_an_outage_longer_than_its_lock_still_counts() {
    let mut stage = Stage::durable().await;
    let config = ConsumerConfig { stalled_interval: Duration::from_secs(30), ..short_lock("w") };
    let lock = config.lock;
    let mut played = stage.play(config);
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    stage.redis.kill();
    run.completes();
    throughout(lock + Duration::from_millis(100), async || {}).await;
    stage.redis.start_again().await;
    assert!(!stage.ask::<bool>("EXISTS @a:lock").await, "expired meanwhile");
    stage.until_completed(1).await;
    assert_eq!(stage.field("a", "ats").await.unwrap(), "1");
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_job_given_in_an_answer_that_was_lost_is_not_lost() {
    let stage = Stage::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (_broker, queue) = connect(&proxy.url()).await;
    let mut played = play(&queue, config("w"));
    // By this one, Redis learns the scripts: the answer lost below is not "no such script".
    stage.enqueue(&[job("first")]).await;
    played.run().await.completes();
    stage.enqueue(&[job("a"), job("b")]).await;
    let run = played.run().await;
    assert_eq!(run.job.id, "a");
    // Redis completes a and gives b to the same slot, which never hears of either.
    proxy.swallow_next_answer();
    run.completes();
    let next = played.run().await;
    assert!(proxy.has_swallowed());
    assert_eq!(next.job.id, "b", "long before its lock expires");
    next.completes();
    stage.until_completed(3).await;
    assert_eq!(stage.field("a", "ats").await.unwrap(), "1");
    assert_eq!(stage.field("b", "ats").await.unwrap(), "2", "it was given out twice, and run once");
    played.runs_nothing_else();
}

#[tokio::test]
async fn of_slots_that_lost_an_answer_together_every_one_gives_back_what_it_was_given() {
    const SLOTS: usize = 4;
    let stage = Stage::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (_broker, queue) = connect(&proxy.url()).await;
    let mut played = play(&queue, ConsumerConfig { slots: SLOTS, ..config("w") });
    // By these, Redis learns the scripts.
    let begin = async |played: &mut Played, round: usize, more: usize| {
        let ids = (0..SLOTS + more).map(|n| job(&format!("{round}-{n}")));
        stage.enqueue(&ids.collect::<Vec<_>>()).await;
        let mut runs = Vec::new();
        for _ in 0..SLOTS {
            runs.push(played.run().await);
        }
        runs
    };
    begin(&mut played, 0, 0).await.into_iter().for_each(|run| run.completes());
    stage.until_completed(SLOTS as u64).await;
    // All end at once, and Redis has one more job, which it gives to one of the slots.
    let runs = begin(&mut played, 1, 1).await;
    proxy.swallow_next_answer();
    runs.into_iter().for_each(|run| run.completes());
    let last = played.run().await;
    assert!(proxy.has_swallowed());
    assert_eq!(last.job.id, format!("1-{SLOTS}"), "long before its lock expires");
    last.completes();
    stage.until_completed(2 * SLOTS as u64 + 1).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn jobs_can_be_added_right_after_a_restart_of_redis() {
    let mut stage = Stage::durable().await;
    stage.redis.restart().await;
    stage.enqueue(&jobs(3)).await;
    assert_eq!(stage.queue.counts().await.unwrap().prioritized, 3);
}

/// What would be in the log of a process that runs with the usual level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Writes along as long as the guard lives.
    fn begin(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_outage_takes_three_lines_of_the_log_however_many_meet_it() {
    const SLOTS: usize = 100;
    let mut stage = Stage::durable().await;
    // All on one thread, so that everything is heard.
    let log = Log::default();
    let _writing = log.begin();
    let mut played = stage.play(ConsumerConfig { slots: SLOTS, ..short_lock("w") });
    stage.enqueue(&jobs(2 * SLOTS)).await;
    let mut runs = Vec::new();
    for _ in 0..SLOTS {
        runs.push(played.run().await);
    }
    stage.redis.kill();
    // Half of them end meanwhile, the locks of the others cannot be renewed.
    let rest = runs.split_off(SLOTS / 2);
    runs.into_iter().for_each(|run| run.completes());
    throughout(Duration::from_secs(5), async || {}).await;
    stage.redis.start_again().await;
    rest.into_iter().for_each(|run| run.completes());
    for _ in 0..SLOTS {
        played.run().await.completes();
    }
    stage.until_completed(2 * SLOTS as u64).await;
    played.running.stop().await;
    let lines = log.lines();
    for told in ["Redis is away", "Redis was restarted", "Redis is back"] {
        let times = lines.iter().filter(|line| line.contains(told)).count();
        assert_eq!(times, 1, "{told}: {lines:#?}");
    }
    assert_eq!(lines.len(), 3, "{lines:#?}");
}

/// Takes four seconds.
#[derive(Clone, Default)]
struct Slow {
    runs: Arc<Mutex<HashMap<String, usize>>>,
}

impl Handler for Slow {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
        *self.runs.lock().unwrap().entry(job.id.clone()).or_default() += 1;
        tokio::time::sleep(Duration::from_secs(4)).await;
        Outcome::Done(json!(null))
    }
}

#[tokio::test]
async fn four_second_jobs_outlive_ten_seconds_without_redis_and_run_once() {
    let mut stage = Stage::start().await;
    let slow = Slow::default();
    // As workers of two processes have it: locks of 15 seconds, which may end in the outage, and a look
    // every 5.
    let (_broker, elsewhere) = connect(&stage.redis.url()).await;
    let running = [("one", &stage.queue), ("two", &elsewhere)].map(|(token, queue)| {
        let (lock, stalled_interval) = (Duration::from_secs(15), Duration::from_secs(5));
        let config = ConsumerConfig { slots: 8, lock, stalled_interval, ..config(token) };
        Running::start(queue, config, slow.clone())
    });
    let begun = async |wanted: usize| {
        eventually(SOON, || async {
            let begun = slow.runs.lock().unwrap().len();
            if begun == wanted { Ok(()) } else { Err(format!("{begun} of {wanted} run")) }
        })
        .await;
    };
    // Some are nearly done when it happens, some have just begun.
    stage.enqueue(&jobs(8)).await;
    begun(8).await;
    throughout(Duration::from_secs(3), async || {}).await;
    stage.enqueue(&jobs(16)).await;
    begun(16).await;
    stage.redis.kill();
    throughout(Duration::from_secs(10), async || {}).await;
    stage.redis.start_again().await;
    let back = Instant::now();
    // Asked over new connections: the one that producers use may take longer to find its way back.
    eventually(SOON, || async {
        let completed: usize = stage.ask("ZCARD @completed").await;
        if completed == 16 { Ok(()) } else { Err(format!("{completed} of 16 completed")) }
    })
    .await;
    let took = back.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    // Nobody takes one for abandoned afterwards.
    throughout(Duration::from_secs(6), async || {}).await;
    let runs = slow.runs.lock().unwrap().clone();
    assert!(runs.len() == 16 && runs.values().all(|times| *times == 1), "{runs:?}");
    for consumer in running {
        consumer.stop().await;
    }
}

#[tokio::test]
async fn a_holder_whose_lock_expired_in_an_outage_is_not_taken_for_dead() {
    let mut stage = Stage::durable().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (_broker, queue) = connect(&proxy.url()).await;
    // Both look ten times a second.
    let often = |token| {
        let stalled_interval = Duration::from_millis(100);
        ConsumerConfig { stalled_interval, ..short_lock(token) }
    };
    let mut holder = play(&queue, often("holder"));
    stage.enqueue(&[job("a")]).await;
    let run = holder.run().await;
    let mut eager = stage.play(often("eager"));
    stage.until_idle(1).await;
    // As it stands between two renewals.
    stage.ask::<()>("SADD @stalled a").await;
    stage.redis.kill();
    // The holder takes longer to find its way back than the other.
    proxy.lead_to(1);
    throughout(Duration::from_millis(1_000), async || {}).await;
    stage.redis.start_again().await;
    let stays = async || {
        assert!(!run.is_dropped());
        assert_eq!(stage.field("a", "ats").await.as_deref(), Some("1"));
    };
    throughout(Duration::from_millis(2_500), stays).await;
    assert!(!stage.ask::<bool>("EXISTS @a:lock").await, "expired meanwhile");
    proxy.lead_to(stage.redis.port());
    eventually(SOON, || async {
        (stage.ask::<Option<String>>("GET @a:lock").await.as_deref() == Some("holder:0"))
            .then_some(())
    })
    .await;
    run.completes();
    stage.until_completed(1).await;
    eager.runs_nothing_else();
}
