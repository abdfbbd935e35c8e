//! Locks are kept while a job runs, and their loss is noticed.

use std::time::Duration;

use stampede_broker::ConsumerConfig;
use stampede_testkit::eventually;

use crate::stage::{SOON, Stage, config, job, short_lock, throughout};

#[tokio::test]
async fn a_job_that_takes_longer_than_its_lock_is_run_once() {
    let stage = Stage::start().await;
    let mut played = stage.play(short_lock("slow"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    // This one looks for stalled jobs, too, and would take it.
    let mut other = stage.play(short_lock("other"));
    throughout(Duration::from_millis(2_000), async || {
        assert_eq!(stage.ask::<Option<String>>("GET @a:lock").await.as_deref(), Some("slow:0"));
    })
    .await;
    run.completes();
    stage.until_completed(1).await;
    played.runs_nothing_else();
    other.runs_nothing_else();
    assert_eq!(stage.field("a", "ats").await.unwrap(), "1");
}

#[tokio::test]
async fn a_lock_taken_by_another_cancels_the_handler() {
    let stage = Stage::start().await;
    let config = ConsumerConfig { stalled_interval: Duration::from_secs(30), ..short_lock("w") };
    let mut played = stage.play(config);
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    stage.ask::<()>("SET @a:lock thief").await;
    run.dropped().await;
    assert_eq!(stage.ask::<String>("GET @a:lock").await, "thief", "left alone");

    stage.enqueue(&[job("b")]).await;
    let next = played.run().await;
    assert_eq!(next.job.id, "b", "the slot is free again");
    next.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_lock_that_expired_is_taken_again_unless_somebody_else_has_the_job() {
    let stage = Stage::start().await;
    let config = ConsumerConfig { stalled_interval: Duration::from_secs(30), ..short_lock("w") };
    let mut played = stage.play(config);
    stage.enqueue(&[job("a"), job("b")]).await;
    let run = played.run().await;
    // As after an outage that outlasted it.
    stage.ask::<()>("DEL @a:lock").await;
    eventually(SOON, || async {
        (stage.ask::<Option<String>>("GET @a:lock").await.as_deref() == Some("w:0")).then_some(())
    })
    .await;
    assert!(!run.is_dropped());
    run.completes();
    stage.until_completed(1).await;

    let run = played.run().await;
    // It was given up and waits for another.
    stage.ask::<()>("LREM @active 0 b").await;
    stage.ask::<()>("DEL @b:lock").await;
    run.dropped().await;
    stage.ask::<()>("RPUSH @wait b").await;
    stage.ask::<()>("ZADD @marker 0 0").await;
    let again = played.run().await;
    assert_eq!((again.job.id.as_str(), again.job.attempts_made), ("b", 0));
    again.completes();
    stage.until_completed(2).await;
}

#[tokio::test]
async fn a_vanished_worker_is_noticed_by_the_stalled_check() {
    let stage = Stage::start().await;
    let mut vanishing = stage.play(short_lock("vanishing"));
    stage.enqueue(&[job("a")]).await;
    let run = vanishing.run().await;
    vanishing.running.crash().await;
    run.dropped().await;
    eventually(SOON, || async { (!stage.ask::<bool>("EXISTS @a:lock").await).then_some(()) }).await;
    assert_eq!(stage.queue.counts().await.unwrap().active, 1);

    let mut next = stage.play(short_lock("next"));
    let again = next.run().await;
    assert_eq!(again.job.id, "a");
    assert_eq!(stage.field("a", "stc").await.unwrap(), "1");
    again.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_finish_counts_as_long_as_nobody_else_took_the_job() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a"), job("b")]).await;
    let run = played.run().await;
    // As after a pause of the whole machine that outlasted the lock.
    stage.ask::<()>("DEL @a:lock").await;
    run.completes();
    let next = played.run().await;
    assert_eq!(next.job.id, "b");
    stage.until_completed(1).await;

    // This one is taken over before it ends.
    stage.ask::<()>("SET @b:lock thief").await;
    next.completes();
    stage.enqueue(&[job("c")]).await;
    played.run().await.completes();
    stage.until_completed(2).await;
    assert_eq!(stage.ask::<String>("GET @b:lock").await, "thief");
    assert_eq!(stage.ask::<Vec<String>>("LRANGE @active 0 -1").await, ["b"]);
}
