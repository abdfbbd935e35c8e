//! Adding, looking up and counting.

use std::time::Duration;

use stampede_broker::JobSpec;
use stampede_broker::{Outcome, Presence};

use crate::stage::{Counting, Running, Stage, config, job, jobs};

#[tokio::test]
async fn vip_jobs_come_first() {
    let stage = Stage::start().await;
    let mut specs = jobs(3);
    specs.push(JobSpec { priority: 1, ..job("vip") });
    stage.enqueue(&specs).await;
    let mut played = stage.play(config("w"));
    for id in ["vip", "job-0", "job-1", "job-2"] {
        let run = played.run().await;
        assert_eq!(run.job.id, id);
        run.completes();
    }
}

#[tokio::test]
async fn a_job_added_twice_runs_once() {
    let stage = Stage::start().await;
    let counting = Counting::default();
    stage.enqueue(&[job("a"), job("a")]).await;
    stage.enqueue(&[job("a")]).await;
    let running = Running::start(&stage.queue, config("w"), counting.clone());
    stage.until_completed(1).await;
    stage.enqueue(&[job("a"), job("b")]).await;
    stage.until_completed(2).await;
    running.stop().await;
    assert_eq!(counting.runs(), [("a".into(), 1), ("b".into(), 1)].into());
}

#[tokio::test]
async fn a_finished_job_can_be_made_to_run_once_more() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("fine"), job("broken")]).await;
    played.run().await.completes();
    played.run().await.ends(Outcome::Discard("broken".into()));
    played.failure().await.settles(Ok(()));
    stage.until("one of each", |counts| counts.completed == 1 && counts.failed == 1).await;

    stage.queue.enqueue_again(&[job("fine"), job("broken"), job("new")]).await.unwrap();
    let running = played.run().await;
    assert_eq!((running.job.id.as_str(), running.job.attempts_made), ("fine", 0));
    // It runs, the others wait: doing it once more changes nothing.
    stage.queue.enqueue_again(&[job("fine"), job("broken"), job("new")]).await.unwrap();
    running.completes();
    for id in ["broken", "new"] {
        let run = played.run().await;
        assert_eq!(run.job.id, id);
        run.completes();
    }
    stage.until("all done", |counts| counts.completed == 3 && counts.failed == 0).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn counts_and_presence_tell_where_jobs_are() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("done"), job("broken"), job("later"), job("now")]).await;
    played.run().await.completes();
    played.run().await.ends(Outcome::Discard("broken".into()));
    played.failure().await.settles(Ok(()));
    played.run().await.ends(Outcome::Snooze(Duration::from_secs(60)));
    let active = played.run().await;
    assert_eq!(active.job.id, "now");
    stage.enqueue(&[job("next"), JobSpec { priority: 0, ..job("first") }]).await;

    let counts = serde_json::to_value(stage.queue.counts().await.unwrap()).unwrap();
    let one_each = serde_json::json!({
        "waiting": 1, "prioritized": 1, "active": 1, "delayed": 1, "completed": 1, "failed": 1,
        "waiting-children": 0,
    });
    assert_eq!(counts, one_each);

    let expected = [
        ("done", Presence::Finished),
        ("broken", Presence::Finished),
        ("later", Presence::Live),
        ("now", Presence::Live),
        ("next", Presence::Live),
        ("first", Presence::Live),
        ("unknown", Presence::Missing),
    ];
    let found = stage.queue.presence(&expected.map(|(id, _)| id)).await.unwrap();
    assert_eq!(found, expected.map(|(_, presence)| presence));

    assert!(!stage.queue.remove("now").await.unwrap(), "it is being worked on");
    assert!(stage.queue.remove("first").await.unwrap());
    assert_eq!(stage.queue.counts().await.unwrap().waiting, 0);
    active.completes();
}

#[tokio::test]
async fn jobs_carry_their_rules_as_other_bullmq_clients_read_them() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    let options: serde_json::Value =
        serde_json::from_str(&stage.field("a", "opts").await.unwrap()).unwrap();
    assert_eq!(options["attempts"], 3);
    assert_eq!(options["backoff"], serde_json::json!({"type": "exponential", "delay": 200}));
    assert_eq!(options["priority"], 10);
    assert_eq!(options["removeOnComplete"], serde_json::json!({"age": 86_400, "count": 10_000}));
    assert_eq!(options["removeOnFail"], serde_json::json!({"age": 604_800, "count": 100_000}));
    assert_eq!(stage.field("a", "data").await.unwrap(), r#"{"ticketId":"a"}"#);
}
