//! Running, sharing and stopping.

mod cancel;
mod finisher;
mod handle;
mod locks;
mod marker;
mod slot;
mod unreadable;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{ConsumerConfig, Handler, Job, JobContext, Outcome};

use crate::stage::{Counting, Running, Stage, config, connect, job, jobs};

#[tokio::test]
async fn two_consumers_share_a_thousand_jobs_and_run_each_once() {
    let stage = Stage::start().await;
    let counting = Counting::default();
    let consumers = ["a", "b"].map(|token| {
        let config = ConsumerConfig { slots: 8, ..config(token) };
        Running::start(&stage.queue, config, counting.clone())
    });
    stage.enqueue(&jobs(1_000)).await;
    stage.until_completed(1_000).await;
    for consumer in consumers {
        consumer.stop().await;
    }
    let runs = counting.runs();
    assert_eq!(runs.len(), 1_000);
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
}

#[tokio::test]
async fn a_marker_that_comes_while_a_consumer_stops_wakes_another() {
    let stage = Stage::start().await;
    let stopping = stage.play(config("stopping"));
    stage.until_idle(1).await;
    let mut staying = stage.play(config("staying"));
    stage.until_idle(2).await;
    // The one that has waited longest is told first; but it is stopped before it can read that. No
    // task of this test runs during these calls, for they block.
    let mut redis = redis::Client::open(stage.redis.url()).unwrap().get_connection().unwrap();
    let fields = [("name", "x"), ("data", "{}"), ("opts", "{}"), ("timestamp", "1")];
    redis::cmd("HSET").arg("bull:tickets:a").arg(&fields).exec(&mut redis).unwrap();
    redis::cmd("LPUSH").arg("bull:tickets:wait").arg("a").exec(&mut redis).unwrap();
    redis::cmd("ZADD").arg("bull:tickets:marker").arg(0).arg("0").exec(&mut redis).unwrap();
    stopping.running.ask_to_stop();
    let start = Instant::now();
    staying.run().await.completes();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    stopping.running.stop().await;
}

#[tokio::test]
async fn stopping_lets_running_jobs_end_and_takes_no_more() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&jobs(2)).await;
    let run = played.run().await;
    played.running.ask_to_stop();
    run.completes();
    stage.until_completed(1).await;
    played.runs_nothing_else();
    played.running.stop().await;
    assert_eq!(stage.queue.counts().await.unwrap().prioritized, 1);
}

#[tokio::test]
async fn a_job_that_outlasts_the_drain_is_handed_back_and_costs_no_attempt() {
    let stage = Stage::start().await;
    let mut short = ConsumerConfig { drain: Duration::from_millis(200), ..config("short") };
    short.slots = 2;
    let mut played = stage.play(short);
    stage.enqueue(&jobs(2)).await;
    let (one, two) = (played.run().await, played.run().await);
    played.running.stop().await;
    one.dropped().await;
    two.dropped().await;

    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.active, counts.prioritized), (0, 2));
    let locks: Vec<String> = stage.ask("KEYS @*:lock").await;
    assert!(locks.is_empty(), "{locks:?}");

    let mut next = stage.play(config("next"));
    for _ in 0..2 {
        let run = next.run().await;
        assert_eq!(run.job.attempts_made, 0);
        run.completes();
    }
    stage.until_completed(2).await;
    assert_eq!(stage.field("job-0", "atm").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn an_idle_consumer_gets_jobs_that_another_handed_back() {
    let stage = Stage::start().await;
    let short = ConsumerConfig { drain: Duration::from_millis(50), ..config("short") };
    let mut stopping = stage.play(short);
    stage.enqueue(&[job("a")]).await;
    let _run = stopping.run().await;
    let mut idle = stage.play(config("idle"));
    stage.until_idle(1).await;
    let start = Instant::now();
    stopping.running.stop().await;
    idle.run().await.completes();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_dropped_consumer_leaves_nothing_running() {
    let stage = Stage::start().await;
    let mut played = stage.play(ConsumerConfig { slots: 2, ..config("dropped") });
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    stage.until_idle(1).await;
    played.running.crash().await;
    run.dropped().await;
    played.is_gone().await;
    stage.until_idle(0).await;
}

/// Notes how many run at the same time.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Handler for Crowd {
    async fn run(&self, _: &Job, _: &JobContext) -> Outcome {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        Outcome::Done(json!(null))
    }
}

#[tokio::test]
async fn all_consumers_together_run_no_more_than_the_queue_allows() {
    let stage = Stage::start().await;
    stage.queue.set_global_concurrency(Some(3)).await.unwrap();
    let crowd = Crowd::default();
    let mut running = Vec::new();
    for token in ["a", "b"] {
        let (_, queue) = connect(&stage.redis.url()).await;
        let config = ConsumerConfig { slots: 4, ..config(token) };
        running.push(Running::start(&queue, config, crowd.clone()));
    }
    stage.enqueue(&jobs(60)).await;
    stage.until_completed(60).await;
    assert_eq!(crowd.most.load(Ordering::SeqCst), 3);
    for consumer in running {
        consumer.stop().await;
    }
}

#[tokio::test]
async fn who_stops_makes_its_place_in_a_full_queue_known() {
    let stage = Stage::start().await;
    stage.queue.set_global_concurrency(Some(1)).await.unwrap();
    let mut stopping = stage.play(config("stopping"));
    stage.enqueue(&jobs(2)).await;
    let run = stopping.run().await;
    let mut staying = stage.play(config("staying"));
    stage.until_idle(1).await;
    stopping.running.ask_to_stop();
    let start = Instant::now();
    run.completes();
    staying.run().await.completes();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    stopping.running.stop().await;
}
