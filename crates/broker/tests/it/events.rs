//! Hearing what happens to jobs, and waiting for their end.

use std::time::Duration;

use serde_json::json;
use stampede_broker::{Error, JobResult, Outcome};
use stampede_broker::{JobSpec, Keep};

use crate::stage::{SOON, Stage, config, job};

#[tokio::test]
async fn who_waits_for_a_job_hears_how_it_has_ended() {
    let stage = Stage::start().await;
    let events = stage.queue.events().await.unwrap();
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("fine"), job("broken")]).await;
    let fine = async {
        played.run().await.ends(Outcome::Retry("not yet".into()));
        played.run().await.ends(Outcome::Discard("no".into()));
        played.failure().await.settles(Ok(()));
        let again = played.run().await;
        assert_eq!(again.job.id, "fine");
        again.ends(Outcome::Done(json!({"made": 1})));
    };
    let (fine, broken, ()) =
        tokio::join!(events.ended("fine", SOON), events.ended("broken", SOON), fine);
    assert_eq!(fine.unwrap(), Some(JobResult::Completed(json!({"made": 1}))));
    assert_eq!(broken.unwrap(), Some(JobResult::Failed("no".into())));
    // It has ended long ago, and who asks again is told the same.
    let again = stage.queue.ended("fine").await.unwrap();
    assert_eq!(again, Some(JobResult::Completed(json!({"made": 1}))));
    let again = events.ended("broken", SOON).await.unwrap();
    assert_eq!(again, Some(JobResult::Failed("no".into())));
}

#[tokio::test]
async fn waiting_ends_when_patience_does_or_there_is_nothing_to_wait_for() {
    let stage = Stage::start().await;
    let events = stage.queue.events().await.unwrap();
    stage.enqueue(&[job("waits")]).await;
    let moment = Duration::from_millis(100);
    assert_eq!(events.ended("waits", moment).await.unwrap(), None);
    let unknown = events.ended("nobody", SOON).await;
    assert!(matches!(unknown, Err(Error::UnknownJob { id }) if id == "nobody"));
}

#[tokio::test]
async fn a_job_that_is_not_kept_tells_its_end_to_who_waits() {
    let stage = Stage::start().await;
    let events = stage.queue.events().await.unwrap();
    let keep_completed = Keep::AtMost { age: Duration::from_secs(1), count: 0 };
    stage.enqueue(&[JobSpec { keep_completed, ..job("a") }]).await;
    let waiting = tokio::spawn(async move { events.ended("a", SOON).await });
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    run.completes();
    let ended = waiting.await.unwrap().unwrap();
    assert_eq!(ended, Some(JobResult::Completed(json!("fine"))));
    assert!(stage.queue.job("a").await.unwrap().is_none());
}

#[tokio::test]
async fn all_that_happens_is_heard_in_order_through_an_outage() {
    let mut stage = Stage::durable().await;
    let events = stage.queue.events().await.unwrap();
    let mut heard = events.subscribe();
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("a")]).await;
    let run = played.run().await;
    let patience = SOON * 3;
    let (ended, ()) = tokio::join!(events.ended("a", patience), async {
        stage.redis.kill();
        run.completes();
        stage.redis.start_again().await;
    });
    assert_eq!(ended.unwrap(), Some(JobResult::Completed(json!("fine"))));
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "completed") {
        let event = tokio::time::timeout(SOON, heard.recv()).await.unwrap().unwrap();
        if event.job_id == "a" {
            names.push(event.name);
        }
    }
    assert_eq!(names, ["added", "waiting", "active", "completed"]);
}
