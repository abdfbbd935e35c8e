//! Jobs of a crashed worker come back at once, unless they are the cause.

use std::time::{Duration, Instant};

use stampede_broker::ConsumerConfig;

use crate::stage::{Stage, config, job, jobs};

#[tokio::test]
async fn the_jobs_of_a_crashed_worker_come_back_at_once() {
    let stage = Stage::start().await;
    let mut crashing = stage.play(ConsumerConfig { slots: 2, ..config("crashing") });
    let mut living = stage.play(ConsumerConfig { slots: 1, ..config("crashing:b") });
    stage.enqueue(&jobs(3)).await;
    let mut crashed = [crashing.run().await.job.id, crashing.run().await.job.id];
    let other = living.run().await;
    crashing.running.crash().await;
    let mut idle = stage.play(ConsumerConfig { slots: 2, ..config("idle") });
    stage.until_idle(1).await;

    let start = Instant::now();
    assert_eq!(stage.queue.reclaim_crashed("crashing").await.unwrap(), 2);
    let (one, two) = (idle.run().await, idle.run().await);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let mut again = [one.job.id.clone(), two.job.id.clone()];
    crashed.sort();
    again.sort();
    assert_eq!(again, crashed);
    assert_eq!(one.job.attempts_made, 0);
    one.completes();
    two.completes();
    other.completes();
    stage.until_completed(3).await;
    assert_eq!(stage.queue.reclaim_crashed("crashing").await.unwrap(), 0);
}

#[tokio::test]
async fn a_job_that_crashed_four_workers_fails_instead_of_crashing_a_fifth() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("poison")]).await;
    for crash in 1..=4 {
        let token = format!("w{crash}");
        let mut played = stage.play(config(&token));
        assert_eq!(played.run().await.job.id, "poison", "crash {crash}");
        if crash < 4 {
            played.running.crash().await;
            assert_eq!(stage.queue.reclaim_crashed(&token).await.unwrap(), 1);
            continue;
        }
        // Idle, and quick to take what comes back.
        let mut next = stage.play(config("next"));
        stage.until_idle(1).await;
        played.running.crash().await;
        assert_eq!(stage.queue.reclaim_crashed(&token).await.unwrap(), 1);
        let failure = next.failure().await;
        assert_eq!(failure.reason, "its worker died 4 times while working on it");
        failure.settles(Ok(()));
        next.runs_nothing_else();
        stage.until("failed", |counts| counts.failed == 1).await;
        let reason = stage.field("poison", "failedReason").await.unwrap();
        assert_eq!(reason, "its worker died 4 times while working on it");
        assert_eq!(stage.field("poison", "defa").await, None);
    }
}

#[tokio::test]
async fn a_crash_leaves_no_trace_on_a_job_that_is_gone() {
    let stage = Stage::start().await;
    stage.ask::<()>("LPUSH @active gone").await;
    stage.ask::<()>("SET @gone:lock w:0").await;
    assert_eq!(stage.queue.reclaim_crashed("w").await.unwrap(), 0);
    assert!(!stage.ask::<bool>("EXISTS @gone").await, "it could never be added again");
}
