//! How runs end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_broker::{Backoff, JobSpec};
use stampede_broker::{ConsumerConfig, JobPolicy, Outcome, RetryPolicy};

use crate::stage::{Stage, config, job, play_with};

async fn trace(stage: &Stage, job_id: &str) -> Value {
    let text = stage.field(job_id, "stacktrace").await.unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

#[tokio::test]
async fn a_finished_job_looks_as_bullmq_writes_it() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    assert_eq!(run.job.name, "generate-pdf");
    assert_eq!(run.job.data, json!({"ticketId": "a"}));
    assert_eq!((run.job.attempts, run.job.attempts_made), (3, 0));
    assert_eq!(stage.ask::<String>("GET @a:lock").await, "w:0");
    run.context.as_ref().unwrap().progress(40).await.unwrap();
    assert_eq!(stage.field("a", "progress").await.as_deref(), Some("40"));
    run.ends(Outcome::Done(json!({"pdf": "tickets/ticket-a.pdf"})));
    stage.until_completed(1).await;

    let field = async |name| stage.field("a", name).await.unwrap_or_default();
    assert_eq!(field("returnvalue").await, r#"{"pdf":"tickets/ticket-a.pdf"}"#);
    assert_eq!(field("progress").await, "100");
    assert_eq!(field("atm").await, "1");
    assert_eq!(field("ats").await, "1");
    assert_eq!(field("pb").await, "worker w");
    let finished_on: f64 = field("finishedOn").await.parse().unwrap();
    assert_eq!(stage.ask::<f64>("ZSCORE @completed a").await, finished_on);
    assert!(field("processedOn").await.parse::<f64>().unwrap() <= finished_on);
    assert!(!stage.ask::<bool>("EXISTS @a:lock").await);
    assert_eq!(stage.queue.counts().await.unwrap().active, 0);
    assert_eq!(
        stage.queue.latest_results(5).await.unwrap(),
        [json!({"pdf": "tickets/ticket-a.pdf"})]
    );
    played.runs_nothing_else();
}

#[tokio::test]
async fn retries_back_off_and_tell_why_and_the_last_one_is_settled_before_it_fails() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    let mut last: Option<Instant> = None;
    for (attempt, pause_ms) in [(1, 0), (2, 200), (3, 400)] {
        let run = played.run().await;
        assert_eq!(run.job.attempts_made, attempt - 1);
        if let Some(last) = last {
            let waited = run.at - last;
            // BullMQ counts whole milliseconds.
            assert!(waited >= Duration::from_millis(pause_ms - 2), "{waited:?} < {pause_ms} ms");
            assert!(waited < Duration::from_millis(pause_ms + 1_500), "{waited:?}");
        }
        last = Some(Instant::now());
        run.ends(Outcome::Retry(format!("printer {attempt} is on fire")));
        if attempt < 3 {
            stage.until("delayed", |counts| counts.delayed == 1).await;
            let reason = stage.field("a", "failedReason").await.unwrap();
            assert_eq!(reason, format!("printer {attempt} is on fire"));
            assert_eq!(trace(&stage, "a").await.as_array().unwrap().len(), attempt as usize);
            assert_eq!(stage.field("a", "atm").await.unwrap(), attempt.to_string());
        }
    }

    let refused = played.failure().await;
    assert_eq!(refused.reason, "printer 3 is on fire");
    refused.settles(Err("the store is away".into()));
    let settled = played.failure().await;
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.failed, counts.active), (0, 1), "not failed before it is settled");
    settled.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    assert_eq!(stage.field("a", "failedReason").await.unwrap(), "printer 3 is on fire");
    assert_eq!(stage.field("a", "atm").await.unwrap(), "3");
    assert!(stage.field("a", "finishedOn").await.is_some());
    let lines = ["printer 1 is on fire", "printer 2 is on fire", "printer 3 is on fire"];
    assert_eq!(trace(&stage, "a").await, json!(lines));
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_retry_without_back_off_comes_at_once() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage
        .enqueue(&[JobSpec { backoff: Some(Backoff::Exponential(Duration::ZERO)), ..job("a") }])
        .await;
    played.run().await.ends(Outcome::Retry("once".into()));
    let again = played.run().await;
    assert_eq!(again.job.attempts_made, 1);
    assert_eq!(stage.field("a", "failedReason").await.unwrap(), "once");
    assert_eq!(trace(&stage, "a").await, json!(["once"]));
    again.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_discarded_job_fails_at_once() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    played.run().await.ends(Outcome::Discard("no such ticket".into()));
    let failure = played.failure().await;
    assert_eq!((failure.job.id.as_str(), failure.reason.as_str()), ("a", "no such ticket"));
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1).await;
    assert_eq!(stage.field("a", "failedReason").await.unwrap(), "no such ticket");
    assert_eq!(trace(&stage, "a").await, json!(["no such ticket"]));
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_snoozed_job_costs_no_attempt() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[JobSpec { attempts: Some(1), ..job("a") }]).await;
    for _ in 0..3 {
        let run = played.run().await;
        assert_eq!(run.job.attempts_made, 0);
        run.ends(Outcome::Snooze(Duration::from_millis(100)));
    }
    played.run().await.completes();
    stage.until_completed(1).await;
    assert_eq!(stage.field("a", "atm").await.unwrap(), "1");
    assert_eq!(stage.field("a", "failedReason").await, None);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_slot_goes_on() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[JobSpec { attempts: Some(2), ..job("a") }]).await;
    played.run().await.panics("index out of bounds");
    stage.until("delayed", |counts| counts.delayed == 1 && counts.active == 0).await;
    assert!(!stage.ask::<bool>("EXISTS @a:lock").await);
    assert_eq!(stage.field("a", "failedReason").await.unwrap(), "panicked: index out of bounds");

    played.run().await.panics("again");
    played.failure().await.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    let traces = trace(&stage, "a").await;
    for (entry, message) in [(0, "panicked: index out of bounds\n"), (1, "panicked: again\n")] {
        let text = traces[entry].as_str().unwrap();
        assert!(
            text.starts_with(message) && text.contains("stage.rs"),
            "where it panicked: {text}"
        );
    }

    stage.enqueue(&[job("b")]).await;
    played.run().await.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn an_attempt_past_the_time_of_its_type_is_dropped_and_tried_again() {
    let stage = Stage::start().await;
    let policy = |name: &str| JobPolicy {
        timeout: (name == "hasty").then_some(Duration::from_millis(200)),
        ..JobPolicy::default()
    };
    let two = ConsumerConfig { slots: 2, ..config("w") };
    let mut played = play_with(&stage.queue, two, policy);
    stage.enqueue(&[JobSpec { name: "patient".into(), ..job("b") }]).await;
    let patient = played.run().await;
    stage.enqueue(&[JobSpec { name: "hasty".into(), ..job("a") }]).await;
    played.run().await.dropped().await;
    stage.until("delayed", |counts| counts.delayed == 1).await;
    let reason = stage.field("a", "failedReason").await.unwrap();
    assert_eq!(reason, "took longer than its limit of 200ms");
    let again = played.run().await;
    assert_eq!(again.job.id, "a");
    again.completes();
    stage.until_completed(1).await;
    assert!(!patient.is_dropped(), "its type has no limit");
    patient.completes();
    stage.until_completed(2).await;
}

#[tokio::test]
async fn a_retry_may_say_when() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage
        .enqueue(&[JobSpec {
            backoff: Some(Backoff::Exponential(Duration::from_secs(60))),
            ..job("a")
        }])
        .await;
    let told = Duration::from_millis(150);
    played.run().await.ends(Outcome::RetryAfter("429 Too Many Requests".into(), told));
    let began = Instant::now();
    let again = played.run().await;
    assert_eq!(again.job.attempts_made, 1);
    assert!(began.elapsed() < Duration::from_secs(5), "not its own back-off of a minute");
    again.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_job_without_options_follows_the_policy_of_its_type() {
    let stage = Stage::start().await;
    let retry = RetryPolicy {
        attempts: 2,
        backoff: Backoff::Fixed(Duration::from_millis(30)),
        jitter: 0.5,
        ..RetryPolicy::default()
    };
    let policy = JobPolicy { retry, ..JobPolicy::default() };
    let mut played = play_with(&stage.queue, config("w"), move |_| policy.clone());
    put(&stage, "plain", "{}").await;
    played.run().await.ends(Outcome::Retry("first".into()));
    played.run().await.ends(Outcome::Retry("second".into()));
    played.failure().await.settles(Ok(()));
    stage.until("failed after two", |counts| counts.failed == 1).await;

    // Its own options win, and a back-off by a name of its own is asked for.
    put(&stage, "own", r#"{"attempts":3,"backoff":{"type":"growing"}}"#).await;
    for _ in 0..2 {
        played.run().await.ends(Outcome::Retry("again".into()));
    }
    played.run().await.completes();
    stage.until_completed(1).await;
}

/// Adds a job by hand, as other software might.
async fn put(stage: &Stage, id: &str, opts: &str) {
    let _: i64 = stage
        .ask(&format!("HSET @{id} name n data {{}} opts {opts} timestamp 1 delay 0 priority 0"))
        .await;
    let _: i64 = stage.ask(&format!("LPUSH @wait {id}")).await;
    let _: i64 = stage.ask("ZADD @marker 0 0").await;
}

#[tokio::test]
async fn what_other_software_left_behind_is_buried_and_the_worker_goes_on() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let _: i64 = stage.ask("HSET @nameless data {} timestamp 1").await;
    let _: i64 = stage.ask("HSET @broken name n data {oops timestamp 1").await;
    let _: i64 = stage.ask("HSET @dataless name n").await;
    // The last one has no hash at all: what the scripts write when it is taken is all there is.
    let _: i64 = stage.ask("LPUSH @wait nameless broken dataless hollow").await;
    stage.enqueue(&[job("good")]).await;
    for _ in 0..4 {
        played.failure().await.settles(Ok(()));
    }
    let good = played.run().await;
    assert_eq!(good.job.id, "good");
    good.completes();
    stage
        .until("buried", |counts| counts.failed == 4 && counts.completed == 1 && counts.active == 0)
        .await;
    let reason = stage.field("broken", "failedReason").await.unwrap();
    assert!(reason.contains("its data are not JSON"), "{reason}");
    let letters = stage.queue.dead_letters().list(0, 10).await.unwrap().letters;
    let broken = letters.iter().find(|letter| letter.job_id == "broken").unwrap();
    assert_eq!(broken.payload.get(), r#""{oops""#);
    assert_eq!(letters.len(), 4);
}

#[tokio::test]
async fn a_handler_that_cannot_say_when_to_try_again_fails_the_job() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    put(&stage, "odd", r#"{"attempts":3,"backoff":{"type":"unheard-of"}}"#).await;
    played.run().await.ends(Outcome::Retry("first".into()));
    let failure = played.failure().await;
    assert!(failure.reason.contains("unheard-of"), "{}", failure.reason);
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_parent_is_not_completed_before_its_children_nor_after_one_has_failed() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    // Added while it runs, by its handler or by somebody else.
    stage.ask::<()>("SADD @a:dependencies bull:others:child").await;
    run.completes();
    stage.until("waits", |counts| counts.waiting_children == 1 && counts.active == 0).await;
    assert_eq!(stage.field("a", "atm").await.as_deref().unwrap_or("0"), "0", "no attempt is lost");

    stage.enqueue(&[job("b")]).await;
    let run = played.run().await;
    stage.ask::<()>("ZADD @b:unsuccessful 1 bull:others:child").await;
    run.completes();
    let failure = played.failure().await;
    assert_eq!(failure.reason, "cannot be completed: a child of it has failed");
    failure.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1 && counts.active == 0).await;
    assert!(!stage.ask::<bool>("EXISTS @a:lock").await);
    assert!(!stage.ask::<bool>("EXISTS @b:lock").await);
    played.runs_nothing_else();
}
