//! Steering a consumer while it runs.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{ConsumerConfig, EventKind, Outcome};

use crate::stage::{SOON, Stage, config, job, jobs, throughout};

#[tokio::test]
async fn slots_grow_and_shrink_while_jobs_run() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let handle = played.running.handle.clone();
    stage.enqueue(&jobs(6)).await;
    let first = played.run().await;
    played.runs_nothing_else();
    handle.resize(3);
    let second = played.run().await;
    let third = played.run().await;
    assert_eq!(handle.running(), 3);
    handle.resize(1);
    // Those beyond the new number end and take no other.
    second.completes();
    third.completes();
    stage.until("two done", |counts| counts.completed == 2 && counts.active == 1).await;
    throughout(Duration::from_millis(200), || async { assert_eq!(handle.running(), 1) }).await;
    first.completes();
    for _ in 0..3 {
        let run = played.run().await;
        assert_eq!(handle.running(), 1);
        run.completes();
    }
    stage.until_completed(6).await;
}

#[tokio::test]
async fn a_consumer_without_slots_pauses_until_it_has_some_again() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let handle = played.running.handle.clone();
    handle.resize(0);
    stage.enqueue(&[job("a")]).await;
    throughout(Duration::from_millis(300), || async { assert_eq!(handle.running(), 0) }).await;
    played.runs_nothing_else();
    handle.resize(1);
    played.run().await.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_quiet_consumer_ends_what_it_has_and_takes_nothing() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    played.running.handle.quiet();
    stage.enqueue(&[job("b")]).await;
    run.completes();
    stage.until_completed(1).await;
    let mut other = stage.play(config("other"));
    let run = other.run().await;
    assert_eq!(run.job.id, "b", "others have it at once");
    run.completes();
    stage.until_completed(2).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_killed_consumer_hands_its_jobs_back_at_once() {
    let stage = Stage::start().await;
    let mut played = stage.play(ConsumerConfig { slots: 2, ..config("w") });
    stage.enqueue(&jobs(2)).await;
    let (a, b) = (played.run().await, played.run().await);
    played.running.handle.kill();
    a.dropped().await;
    b.dropped().await;
    played.running.ended().await;
    stage.until("both wait", |counts| counts.active == 0 && counts.prioritized == 2).await;
    assert_eq!(stage.field("job-0", "atm").await, None, "it cost no attempt");
}

#[tokio::test]
async fn an_idle_consumer_closes_within_200_milliseconds() {
    let stage = Stage::start().await;
    let played = stage.play(config("w"));
    stage.until_idle(1).await;
    let began = Instant::now();
    played.running.stop().await;
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
}

#[tokio::test]
async fn events_tell_what_happened_and_a_slow_reader_holds_up_nobody() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let mut events = played.running.handle.events();
    let _never_read = played.running.handle.events();
    stage.enqueue(&[job("a")]).await;
    played.run().await.ends(Outcome::Snooze(Duration::from_millis(20)));
    played.run().await.ends(Outcome::Discard("broken".into()));
    played.failure().await.settles(Ok(()));
    let failed = EventKind::Failed("broken".into());
    for kind in [EventKind::Started, EventKind::Snoozed, EventKind::Started, failed] {
        let event = tokio::time::timeout(SOON, events.recv()).await.unwrap().unwrap();
        assert_eq!((event.job_id.as_str(), event.kind), ("a", kind));
    }
}

#[tokio::test]
async fn a_run_whose_job_was_taken_over_is_told_as_that_and_not_as_an_end() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let mut events = played.running.handle.events();
    for outcome in [Outcome::Done(json!(null)), Outcome::Discard("broken".into())] {
        stage.enqueue(&[job("a")]).await;
        let run = played.run().await;
        stage.ask::<()>("SET @a:lock thief").await;
        let fails = matches!(outcome, Outcome::Discard(_));
        run.ends(outcome);
        if fails {
            played.failure().await.settles(Ok(()));
        }
        for kind in [EventKind::Started, EventKind::LockLost] {
            let event = tokio::time::timeout(SOON, events.recv()).await.unwrap().unwrap();
            assert_eq!((event.job_id.as_str(), event.kind), ("a", kind));
        }
        stage.ask::<()>("DEL @active @a @a:lock").await;
    }
}
