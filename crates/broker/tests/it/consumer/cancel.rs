//! Cancelling jobs.

use std::time::Duration;

use redis::cmd;
use stampede_broker::{Cancelled, ConsumerConfig};

use crate::stage::{Stage, config, job, short_lock, throughout};

#[tokio::test]
async fn whoever_runs_a_cancelled_job_drops_it() {
    let stage = Stage::start().await;
    let lock = Duration::from_secs(300);
    let mut played = stage.play(ConsumerConfig { slots: 2, lock, ..config("w") });
    stage.enqueue(&[job("a"), job("b")]).await;
    let a = played.run().await;
    let b = played.run().await;
    let over = [&a, &b].map(|run| run.context.as_ref().unwrap().cancellation());
    // From another process, which knows nothing of the consumer.
    let (_, elsewhere) = crate::stage::connect(&stage.redis.url()).await;
    assert_eq!(elsewhere.cancel("a", "the buyer changed her mind").await.unwrap(), Cancelled::Told);
    // By message: the next renewal, which would find the wish too, is seconds away.
    tokio::time::timeout(Duration::from_secs(5), a.dropped()).await.unwrap();
    assert_eq!(over.each_ref().map(|over| over.is_cancelled()), [true, false]);
    let failure = played.failure().await;
    assert_eq!(failure.reason, "cancelled: the buyer changed her mind");
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 1).await;
    b.completes();
    stage.until_completed(1).await;
    assert!(over[1].is_cancelled(), "what is still done for it is in vain");
}

#[tokio::test]
async fn a_job_that_has_not_begun_is_removed_and_one_that_has_ended_is_left() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a"), job("b")]).await;
    assert_eq!(stage.queue.cancel("a", "no").await.unwrap(), Cancelled::Removed);
    assert_eq!(stage.queue.cancel("a", "no").await.unwrap(), Cancelled::NotThere);
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!(run.job.id, "b");
    run.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_message_that_was_lost_is_made_up_for_by_the_next_renewal() {
    let stage = Stage::start().await;
    let mut played = stage.play(short_lock("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    let added = stage.field("a", "timestamp").await.unwrap();
    // As if the message had been published while the connection was broken.
    let _: i64 = cmd("HSET")
        .arg("bull:tickets:a")
        .arg("cxl")
        .arg(format!("{added}-0:lost on the way"))
        .query_async(&mut stage.raw().await)
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(5), run.dropped()).await.unwrap();
    assert_eq!(played.failure().await.reason, "cancelled: lost on the way");
}

#[tokio::test]
async fn a_job_that_is_replayed_after_it_was_cancelled_runs() {
    let stage = Stage::start().await;
    let mut played = stage.play(short_lock("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    assert_eq!(stage.queue.cancel("a", "no").await.unwrap(), Cancelled::Told);
    run.dropped().await;
    played.failure().await.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1).await;
    assert_eq!(stage.queue.cancel("a", "no").await.unwrap(), Cancelled::NotThere);
    assert!(stage.ask::<bool>("EXISTS @a").await, "a record of what happened is not removed");

    // Somebody wanted it so: nothing that anybody has to be told of, or that is replayed with others.
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 0);
    assert!(stage.queue.retry("a").await.unwrap());
    let again = played.run().await;
    // Longer than renewals need to find the old wish.
    throughout(Duration::from_millis(700), async || assert!(!again.is_dropped())).await;
    again.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_job_whose_worker_dies_with_the_wish_is_cancelled_by_the_next() {
    let stage = Stage::start().await;
    let mut first = stage.play(short_lock("first"));
    stage.enqueue(&[job("a")]).await;
    let _run = first.run().await;
    first.running.crash().await;
    assert_eq!(stage.queue.cancel("a", "too late for it").await.unwrap(), Cancelled::Told);
    let mut second = stage.play(short_lock("second"));
    let failure = second.failure().await;
    assert_eq!(failure.reason, "cancelled: too late for it");
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    second.runs_nothing_else();
}
