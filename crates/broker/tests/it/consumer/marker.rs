//! Idle consumers are told of work at once.

use std::time::{Duration, Instant};

use bullmq::JobOptions;
use stampede_broker::{ConsumerConfig, Outcome};

use crate::stage::{Played, Stage, config, job};

/// The quickest of three: a consumer that is not told looks only every five seconds.
async fn quickest_start(stage: &Stage, played: &mut Played, round: &str) -> Duration {
    let mut quickest = Duration::MAX;
    for number in 0..3 {
        stage.until_idle(1).await;
        let start = Instant::now();
        stage.enqueue(&[job(&format!("{round}-{number}"))]).await;
        let run = played.run().await;
        quickest = quickest.min(run.at - start);
        run.completes();
    }
    quickest
}

#[tokio::test]
async fn an_idle_consumer_starts_a_new_job_at_once_also_after_a_restart_of_redis() {
    let mut stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let quickest = quickest_start(&stage, &mut played, "before").await;
    assert!(quickest < Duration::from_millis(100), "{quickest:?}");
    stage.redis.restart().await;
    let quickest = quickest_start(&stage, &mut played, "after").await;
    assert!(quickest < Duration::from_millis(100), "{quickest:?}");
}

#[tokio::test]
async fn a_delayed_job_starts_on_time() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.until_idle(1).await;
    let options = bullmq::options::RedisConnectionOptions::new().url(stage.redis.url());
    let connection = bullmq::redis_connection::RedisConnection::new_managed_only(&options).await;
    let queue = bullmq::Queue::with_connection("tickets", connection.unwrap(), Default::default());
    let options = JobOptions::new().job_id("later").delay(Duration::from_millis(700));
    let later = bullmq::BulkJob::with_options("x", serde_json::json!({}), options);
    let start = Instant::now();
    queue.await.unwrap().add_bulk(vec![later]).await.unwrap();
    let run = played.run().await;
    let waited = run.at - start;
    assert!((698..1_500).contains(&waited.as_millis()), "{waited:?}");
    run.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_retry_is_on_time_though_the_other_slot_sleeps() {
    let stage = Stage::start().await;
    let mut played = stage.play(ConsumerConfig { slots: 2, ..config("w") });
    stage.enqueue(&[job("a")]).await;
    let first = played.run().await;
    stage.until_idle(1).await;
    // Waits without a marker, as when another consumer popped that and was busy by then. The slot
    // that ends its run takes it along; BullMQ's script then sets no marker for the delayed one.
    stage.ask::<()>("HSET @b name x data {} opts {} timestamp 1 priority 0").await;
    stage.ask::<()>("LPUSH @wait b").await;
    let start = Instant::now();
    first.ends(Outcome::Retry("not yet".into()));
    let next = played.run().await;
    assert_eq!(next.job.id, "b");
    next.completes();
    let again = played.run().await;
    assert_eq!(again.job.id, "a");
    let waited = again.at - start;
    assert!((198..1_500).contains(&waited.as_millis()), "{waited:?}");
}
