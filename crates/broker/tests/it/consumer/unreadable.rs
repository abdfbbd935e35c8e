//! Jobs that BullMQ's scripts stumble over, because other software has left them so.

use stampede_broker::{ConsumerConfig, Outcome};
use stampede_model::JobSpec;

use crate::stage::{Stage, config, job, short_lock};

/// A job as other software adds it, with these fields besides.
async fn put(stage: &Stage, id: &str, fields: &str) {
    let hash = format!("HSET @{id} name n data {{}} opts {{}} timestamp 1 priority 0 {fields}");
    stage.ask::<()>(&hash).await;
    stage.ask::<()>(&format!("LPUSH @wait {id}")).await;
    stage.ask::<()>("ZADD @marker 0 0").await;
}

fn good(id: &str) -> JobSpec {
    JobSpec { priority: 0, ..job(id) }
}

/// That the job has failed, for a reason with these words in it, and is a dead letter.
async fn is_buried(stage: &Stage, id: &str, words: &str) {
    let reason = stage.field(id, "failedReason").await.unwrap();
    assert!(reason.starts_with("unreadable job: ") && reason.contains(words), "{reason}");
    let letters = stage.queue.dead_letters().await.unwrap();
    let letter = letters.get(id).await.unwrap().unwrap();
    assert_eq!(letter.reason, reason);
    assert_eq!(stage.field(id, "defa").await, None, "it would fail when it is tried again");
}

#[tokio::test]
async fn a_broken_field_fails_its_job_and_nobody_elses() {
    for (fields, words) in [
        ("ats many", "ats was no number"),
        ("atm many", "atm is no number"),
        ("atm 2.5", "atm is no number"),
        ("stc many", "stc is no number"),
        ("parent {", "parent is not readable"),
        ("parent {}", "parent is not readable"),
    ] {
        let stage = Stage::start().await;
        stage.enqueue(&[good("before")]).await;
        put(&stage, "bad", fields).await;
        stage.enqueue(&[good("after")]).await;
        // Several slots, and the bad one comes when the first has ended.
        let mut played = stage.play(ConsumerConfig { slots: 1, ..config("w") });
        let before = played.run().await;
        assert_eq!(before.job.id, "before");
        before.completes();
        played.failure().await.settles(Ok(()));
        let after = played.run().await;
        assert_eq!(after.job.id, "after");
        after.completes();
        let ended = |counts: &stampede_broker::Counts| {
            (counts.completed, counts.failed, counts.active, counts.waiting) == (2, 1, 0, 0)
        };
        stage.until(fields, ended).await;
        is_buried(&stage, "bad", words).await;
        played.runs_nothing_else();
    }
}

#[tokio::test]
async fn what_stands_where_a_job_should_is_put_aside() {
    for (command, kind) in [("SET @bad text", "string"), ("RPUSH @bad text", "list")] {
        let stage = Stage::start().await;
        stage.ask::<()>(command).await;
        stage.ask::<()>("LPUSH @wait bad").await;
        stage.enqueue(&[good("after")]).await;
        let mut played = stage.play(config("w"));
        played.failure().await.settles(Ok(()));
        let after = played.run().await;
        assert_eq!(after.job.id, "after");
        after.completes();
        stage.until("both ended", |counts| counts.completed == 1 && counts.failed == 1).await;
        is_buried(&stage, "bad", kind).await;
        assert_eq!(stage.ask::<String>("TYPE @bad:unreadable").await, kind);
    }
}

#[tokio::test]
async fn a_parent_hears_of_a_child_whose_way_to_it_was_broken() {
    let stage = Stage::start().await;
    stage.ask::<()>("HSET bull:p:parent name n data {} opts {} priority 0 delay 0").await;
    stage.ask::<()>("ZADD bull:p:waiting-children 1 parent").await;
    stage.ask::<()>("SADD bull:p:parent:dependencies bull:tickets:bad").await;
    let options = r#"{"fpof":true}"#;
    put(&stage, "bad", &format!("parentKey bull:p:parent parent {{oops opts {options}")).await;
    let mut played = stage.play(config("w"));
    played.failure().await.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1).await;
    is_buried(&stage, "bad", "parent is not readable").await;
    let waits: Option<f64> = stage.ask("ZSCORE bull:p:waiting-children parent").await;
    assert_eq!(waits, None, "it waits for nothing any more");
}

#[tokio::test]
async fn a_stalled_job_with_a_broken_count_of_that_is_not_lost() {
    let stage = Stage::start().await;
    put(&stage, "bad", "stc many").await;
    put(&stage, "fine", "stc 0").await;
    // Somebody has taken both, and is gone.
    for id in ["bad", "fine"] {
        stage.ask::<()>("LMOVE @wait @active RIGHT LEFT").await;
        stage.ask::<()>(&format!("SADD @stalled {id}")).await;
    }
    let mut played = stage.play(ConsumerConfig { slots: 2, ..short_lock("w") });
    let fine = played.run().await;
    assert_eq!(fine.job.id, "fine");
    fine.ends(Outcome::Done(serde_json::json!(1)));
    played.failure().await.settles(Ok(()));
    stage.until("both ended", |counts| counts.completed == 1 && counts.failed == 1).await;
    is_buried(&stage, "bad", "stc was no number").await;
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_neither_added_nor_run() {
    let stage = Stage::start().await;
    let large = serde_json::json!("x".repeat(300_000));
    let refused = stage.queue.enqueue(&[job("fine"), JobSpec { data: large, ..job("a") }]).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("\"a\" has 300002 bytes, and 262144 is the most"), "{told}");
    assert_eq!(stage.queue.counts().await.unwrap().prioritized, 0, "none of them");

    // Others have no such limit.
    put(&stage, "theirs", "atm 0").await;
    let mut large = redis::cmd("HSET");
    large.arg("bull:tickets:theirs").arg("data").arg(format!("\"{}\"", "x".repeat(300_000)));
    large.exec_async(&mut stage.raw().await).await.unwrap();
    let mut played = stage.play(config("w"));
    let failure = played.failure().await;
    assert!(failure.reason.contains("300002 bytes"), "{}", failure.reason);
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1).await;
    played.runs_nothing_else();
}
