//! Jobs that BullMQ's scripts stumble over, because other software has left them so.

use std::time::Duration;

use stampede_broker::JobSpec;
use stampede_broker::{ConsumerConfig, Outcome};

use crate::stage::{Counting, Running, Stage, config, job, short_lock};

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
    let letters = stage.queue.dead_letters();
    let letter = letters.get(id).await.unwrap().unwrap();
    assert_eq!(letter.reason, reason);
    assert_eq!(stage.field(id, "defa").await, None, "it would fail when it is tried again");
}

#[tokio::test]
async fn a_broken_field_fails_its_job_and_nobody_elses() {
    for (fields, words) in [
        ("ats many", "ats was no number"),
        ("ats 01", "ats was no number"),
        ("atm 01", "atm is no number"),
        ("atm +1", "atm is no number"),
        ("stc -0", "stc is no number"),
        ("priority nan", "priority is no number"),
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

#[tokio::test]
async fn a_broken_delayed_job_takes_no_others_along() {
    let stage = Stage::start().await;
    let due = |n: u32| JobSpec { delay: Duration::from_millis(1), ..good(&format!("good-{n}")) };
    stage.enqueue(&[due(0)]).await;
    stage.ask::<()>("SET @text it-is-none").await;
    stage.ask::<()>("HSET @odd name n data {} opts {} timestamp 1 priority nan").await;
    for id in ["text", "odd", "wait"] {
        stage.ask::<()>(&format!("ZADD @delayed 4096 {id}")).await;
    }
    stage.enqueue(&(1..6).map(due).collect::<Vec<_>>()).await;
    let counting = Counting::default();
    let running = Running::start(&stage.queue, config("w"), counting.clone());
    stage
        .until("all ended", |counts| (counts.completed, counts.failed, counts.delayed) == (6, 2, 0))
        .await;
    is_buried(&stage, "text", "string").await;
    is_buried(&stage, "odd", "priority was no number").await;
    running.stop().await;
}

#[tokio::test]
async fn ids_that_no_job_can_have_are_taken_off_the_queue_and_harm_nothing() {
    let stage = Stage::start().await;
    let later = JobSpec { delay: Duration::from_secs(3600), ..good("later") };
    stage.enqueue(&[later]).await;
    // A hash, a sorted set and a list of the queue itself, and what is no text at all.
    for id in [&b"meta"[..], b"delayed", b"wait", b"\xff\xfe"] {
        let mut put = redis::cmd("LPUSH");
        put.arg("bull:tickets:wait").arg(id);
        put.exec_async(&mut stage.raw().await).await.unwrap();
    }
    stage.enqueue(&[good("after")]).await;
    let counting = Counting::default();
    let running = Running::start(&stage.queue, short_lock("w"), counting.clone());
    stage.until_completed(1).await;
    stage.until("all gone", |counts| (counts.active, counts.waiting) == (0, 0)).await;
    assert_eq!(stage.ask::<Vec<String>>("ZRANGE @delayed 0 -1").await, ["later"]);
    stage.enqueue(&[good("and-more")]).await;
    stage.until_completed(2).await;
    assert_eq!(counting.runs().len(), 2);
    running.stop().await;
    for id in ["wait", "meta", "events"] {
        assert!(stage.queue.remove(id).await.is_err(), "{id} is no job");
        assert!(stage.queue.retry(id).await.is_err(), "{id} is no job");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_ended_does_not_run_for_ever() {
    let stage = Stage::start().await;
    put(&stage, "bad", "atm 0").await;
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    stage.ask::<()>("SET @bad:dependencies nonsense").await;
    run.completes();
    played.failure().await.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    is_buried(&stage, "bad", "dependencies were a string").await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_scheduled_job_whose_options_say_nothing_of_it_runs_once() {
    for options in ["{}", r#"{"repeat":"x"}"#] {
        let stage = Stage::start().await;
        put(&stage, "bad", &format!("rjk nightly opts {options}")).await;
        let mut played = stage.play(config("w"));
        played.run().await.completes();
        stage.until_completed(1).await;
        played.runs_nothing_else();
    }
}
