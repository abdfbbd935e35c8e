//! What a job says of itself when it is added: later, only once, and for how long to be kept.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{ConsumerConfig, Letters, Outcome};
use stampede_broker::{Deduplication, JobSpec, Keep, Which};

use crate::stage::{Stage, config, job};

/// A job about the thing called `twin`.
fn about_twin(id: &str, which: Which) -> JobSpec {
    let deduplication = Some(Deduplication { id: "twin".to_owned(), which });
    JobSpec { deduplication, priority: 0, ..job(id) }
}

#[tokio::test]
async fn a_delayed_job_begins_when_its_time_has_come() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.until_idle(1).await;
    let (began, delay) = (Instant::now(), Duration::from_millis(700));
    let later = JobSpec { delay, priority: 0, ..job("later") };
    let last = JobSpec { delay: Duration::from_secs(3600), ..job("last") };
    stage.enqueue(&[last, later, job("now")]).await;
    let now = played.run().await;
    assert_eq!(now.job.id, "now");
    now.completes();
    let later = played.run().await;
    assert_eq!(later.job.id, "later");
    assert!(began.elapsed() >= delay, "{:?}", began.elapsed());
    // It was waited for, not found when the consumer looked by itself, every five seconds.
    assert!(began.elapsed() < delay + Duration::from_secs(3), "{:?}", began.elapsed());
    later.completes();
    stage.until_completed(2).await;
    assert_eq!(stage.queue.counts().await.unwrap().delayed, 1);
}

#[tokio::test]
async fn jobs_about_the_same_thing_are_left_out_until_the_first_has_ended() {
    let stage = Stage::start().await;
    let twins = ["a", "b", "c"].map(|id| about_twin(id, Which::First));
    let ids = stage.queue.enqueue(&[&twins[..2], &[job("other")]].concat()).await.unwrap();
    assert_eq!(ids, ["a", "a", "other"]);
    let mut played = stage.play(config("w"));
    let first = played.run().await;
    assert_eq!(first.job.id, "a");
    assert_eq!(stage.queue.enqueue(&twins[1..]).await.unwrap(), ["a", "a"], "while it runs, too");
    first.completes();
    let other = played.run().await;
    assert_eq!(other.job.id, "other");
    other.completes();
    stage.until_completed(2).await;
    assert_eq!(stage.queue.enqueue(&twins[1..]).await.unwrap(), ["b", "b"]);
    let next = played.run().await;
    assert_eq!(next.job.id, "b");
    // A failure for good is an end as well.
    next.ends(Outcome::Discard("no".into()));
    played.failure().await.settles(Ok(()));
    stage.until("failed", |counts| counts.failed == 1).await;
    assert_eq!(stage.queue.enqueue(&twins[2..]).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn jobs_about_the_same_thing_are_left_out_for_a_while() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let while_ = Which::FirstWithin(Duration::from_secs(3600));
    stage.enqueue(&[about_twin("a", while_)]).await;
    played.run().await.completes();
    stage.until_completed(1).await;
    let ids = stage.queue.enqueue(&[about_twin("b", while_)]).await.unwrap();
    assert_eq!(ids, ["a"], "it has ended, but the hour has not");
    stage.ask::<()>("PEXPIRE @de:twin 1").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    stage.enqueue(&[about_twin("c", while_)]).await;
    assert_eq!(played.run().await.job.id, "c");
}

#[tokio::test]
async fn the_last_of_the_jobs_about_the_same_thing_runs_when_no_other_came_for_a_while() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let while_ = Duration::from_millis(1_500);
    let mut added = Instant::now();
    for id in ["a", "b", "c"] {
        added = Instant::now();
        stage.enqueue(&[about_twin(id, Which::LastAfter(while_))]).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let last = played.run().await;
    assert_eq!(last.job.data, json!({"ticketId": "c"}));
    assert!(added.elapsed() >= while_, "{:?}", added.elapsed());
    last.completes();
    stage.until_completed(1).await;
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.delayed, counts.waiting), (0, 0));
    played.runs_nothing_else();
}

#[tokio::test]
async fn after_the_first_of_the_jobs_about_the_same_thing_the_last_one_runs() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[about_twin("a", Which::FirstThenLast)]).await;
    let first = played.run().await;
    let while_it_runs = ["b", "c"].map(|id| about_twin(id, Which::FirstThenLast));
    stage.enqueue(&while_it_runs).await;
    first.completes();
    let last = played.run().await;
    assert_eq!(last.job.data, json!({"ticketId": "c"}));
    last.completes();
    stage.until_completed(2).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn each_ended_job_is_kept_as_long_as_it_says_itself() {
    let stage = Stage::start().await;
    let gone = Keep::AtMost { age: Duration::from_secs(60), count: 0 };
    let jobs: Vec<JobSpec> = (0..40)
        .map(|number| JobSpec {
            keep_completed: if number % 2 == 0 { gone } else { Keep::Forever },
            keep_failed: gone,
            ..job(&format!("job-{number}"))
        })
        .collect();
    stage.enqueue(&jobs).await;
    // They end together, so both kinds are on their way at the same time.
    let mut played = stage.play(ConsumerConfig { slots: 20, ..config("w") });
    for _ in 0..2 {
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(played.run().await);
        }
        for run in runs {
            if run.job.id == "job-39" {
                run.ends(Outcome::Discard("broken".into()));
            } else {
                run.completes();
            }
        }
    }
    played.failure().await.settles(Ok(()));
    stage.until("ended", |counts| counts.active + counts.prioritized == 0).await;
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.completed, counts.failed), (19, 0));
    for number in 0..40 {
        let kept = stage.queue.job(&format!("job-{number}")).await.unwrap().is_some();
        assert_eq!(kept, number % 2 == 1 && number != 39, "job-{number}");
    }
    // What failed for good is not kept, but its letter is; and it can be run again.
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 1);
    let again = played.run().await;
    assert_eq!(again.job.id, "job-39");
    again.completes();
    stage.until("no trace", |counts| counts.completed == 20).await;
}
