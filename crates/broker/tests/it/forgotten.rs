//! A Redis that comes back without what it last heard. Here it forgets everything since it last saved,
//! where a real one forgets a second or two.

use std::time::Duration;

use stampede_broker::ConsumerConfig;
use stampede_testkit::Redis;

use crate::stage::{Call, Stage, config, connect, job, jobs, play, throughout};

/// With a Redis that writes only when it is told to.
async fn forgetful() -> Stage {
    let settings = [("appendonly", "no"), ("loading-process-events-interval-bytes", "1024")];
    let redis = Redis::with_config(&settings).await;
    let (broker, queue) = connect(&redis.url()).await;
    Stage { redis, broker, queue }
}

async fn kill_and_start_again(stage: &mut Stage) {
    stage.redis.kill();
    stage.redis.start_again().await;
}

#[tokio::test]
async fn jobs_that_run_are_not_given_out_again() {
    let mut stage = forgetful().await;
    stage.enqueue(&jobs(6)).await;
    // One of them has no priority: it waits in a list.
    stage.enqueue(&[stampede_broker::JobSpec { priority: 0, ..job("plain") }]).await;
    stage.ask::<()>("SAVE").await;
    // Both have places left, so each could take what the other runs.
    let mut one = stage.play(ConsumerConfig { slots: 4, ..config("one") });
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(one.run().await);
    }
    let (_broker, queue) = connect(&stage.redis.url()).await;
    let mut two = play(&queue, ConsumerConfig { slots: 9, ..config("two") });
    for _ in 0..3 {
        runs.push(two.run().await);
    }
    kill_and_start_again(&mut stage).await;
    throughout(Duration::from_secs(3), async || {
        assert!(runs.iter().all(|run| !run.is_dropped()));
    })
    .await;
    runs.into_iter().for_each(Call::completes);
    stage.until_completed(7).await;
    one.runs_nothing_else();
    two.runs_nothing_else();
    for id in ["plain", "job-0", "job-5"] {
        assert_eq!(stage.field(id, "ats").await.as_deref(), Some("1"), "{id}");
    }
}

#[tokio::test]
async fn jobs_that_ended_while_it_was_away_are_done() {
    let mut stage = forgetful().await;
    stage.enqueue(&jobs(3)).await;
    stage.ask::<()>("SAVE").await;
    let mut played = stage.play(ConsumerConfig { slots: 3, ..config("w") });
    let runs = [played.run().await, played.run().await, played.run().await];
    stage.redis.kill();
    runs.into_iter().for_each(Call::completes);
    stage.redis.start_again().await;
    stage.until_completed(3).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn jobs_that_were_completed_just_before_stay_so() {
    let mut stage = forgetful().await;
    stage.enqueue(&jobs(5)).await;
    let mut played = stage.play(ConsumerConfig { slots: 5, ..config("w") });
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(played.run().await);
    }
    // It will remember that two of them ran, and of the others not even that.
    let late = runs.split_off(2);
    stage.ask::<()>("SAVE").await;
    runs.into_iter().for_each(Call::completes);
    stage.until_completed(2).await;
    late.into_iter().for_each(Call::completes);
    stage.until_completed(5).await;
    kill_and_start_again(&mut stage).await;
    stage.until_completed(5).await;
    played.runs_nothing_else();
    // What is added now is taken, after a moment.
    stage.enqueue(&[job("next")]).await;
    played.run().await.completes();
    stage.until_completed(6).await;
}

#[tokio::test]
async fn a_job_that_was_added_anew_is_not_taken_for_the_one_before() {
    let mut stage = forgetful().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    played.run().await.completes();
    stage.until_completed(1).await;
    // The same id, another job; it waits while another one runs, and Redis remembers that.
    stage.enqueue(&[job("busy")]).await;
    let busy = played.run().await;
    stage.queue.enqueue_again(&[job("a")]).await.unwrap();
    stage.ask::<()>("SAVE").await;
    kill_and_start_again(&mut stage).await;
    busy.completes();
    let again = played.run().await;
    assert_eq!(again.job.id, "a");
    again.completes();
    stage.until_completed(2).await;
}

#[tokio::test]
async fn a_redis_that_reads_its_data_for_long_is_no_exception() {
    let mut stage = forgetful().await;
    stage.enqueue(&jobs(4)).await;
    // It takes a quarter of a millisecond for each.
    let mut filling = redis::pipe();
    (0..16_000).for_each(|number| {
        filling.set(format!("filling-{number}"), number).ignore();
    });
    filling.exec_async(&mut stage.raw().await).await.unwrap();
    stage.ask::<()>("SAVE").await;
    let mut one = stage.play(ConsumerConfig { slots: 2, ..config("one") });
    let (_broker, queue) = connect(&stage.redis.url()).await;
    let mut two = play(&queue, ConsumerConfig { slots: 9, ..config("two") });
    one.run().await.completes();
    stage.until("one done", |counts| counts.completed > 0).await;
    let mut runs = vec![one.run().await];
    while runs.len() < 3 {
        runs.push(tokio::select! {
            run = one.run() => run,
            run = two.run() => run,
        });
    }
    stage.redis.kill();
    stage.redis.start_again_slowly().await;
    throughout(Duration::from_secs(8), async || {
        assert!(runs.iter().all(|run| !run.is_dropped()));
    })
    .await;
    runs.into_iter().for_each(Call::completes);
    stage.until_completed(4).await;
    one.runs_nothing_else();
    two.runs_nothing_else();
}
