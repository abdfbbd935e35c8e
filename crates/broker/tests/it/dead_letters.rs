//! Jobs that failed for good.

use serde_json::{Value, json};
use stampede_broker::{ConsumerConfig, Letters, Outcome};

use crate::stage::{Stage, config, job, jobs, short_lock};

/// Fails jobs for good, in the order in which they come.
async fn kill(stage: &Stage, count: usize) {
    let mut played = stage.play(ConsumerConfig { slots: 1, ..config("killer") });
    for _ in 0..count {
        let run = played.run().await;
        let reason = format!("no printer for {}", run.job.id);
        run.ends(Outcome::Discard(reason));
        played.failure().await.settles(Ok(()));
    }
    let wanted = count as u64;
    stage.until("failed", |counts| counts.failed == wanted && counts.active == 0).await;
    played.running.stop().await;
}

#[tokio::test]
async fn a_dead_letter_has_all_that_is_known_of_its_job() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    kill(&stage, 1).await;
    let letters = stage.queue.dead_letters().await.unwrap();
    let letter = letters.get("a").await.unwrap().unwrap();
    assert_eq!((letter.queue.as_str(), letter.name.as_str()), ("tickets", "generate-pdf"));
    assert_eq!(letter.reason, "no printer for a");
    assert_eq!(letter.payload.get(), r#"{"ticketId":"a"}"#);
    assert_eq!(letter.attempts_made, 1);
    assert_eq!(letter.stacktrace, ["no printer for a"]);
    assert!(letter.failed_at >= letter.added_at && letter.added_at > 0);
    // Seed 002's fields, for those who read the queue themselves.
    let mut raw = stage.raw().await;
    let data: String = redis::cmd("HGET")
        .arg("bull:tickets-dlq:a")
        .arg("data")
        .query_async(&mut raw)
        .await
        .unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["jobId"], "a");
    assert_eq!(data["payload"], json!({"ticketId": "a"}));
    assert_eq!(data["reason"], "no printer for a");
}

#[tokio::test]
async fn a_replayed_job_has_all_its_attempts_again_and_perhaps_other_data() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(3)).await;
    kill(&stage, 3).await;
    let letters = stage.queue.dead_letters().await.unwrap();
    assert_eq!(letters.count().await.unwrap(), 3);
    let one = Letters::These(vec!["job-1".into(), "unknown".into()]);
    let data = json!({"ticketId": "corrected"});
    assert_eq!(letters.replay(&one, Some(&data)).await.unwrap(), 1);
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), &run.job.data), ("job-1", &data));
    assert_eq!((run.job.attempts_made, run.job.attempts), (0, 3));
    run.completes();

    // One whose record is gone is made anew of what its letter says.
    assert!(stage.queue.remove("job-0").await.unwrap());
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap(), 2);
    for _ in 0..2 {
        let run = played.run().await;
        assert_eq!(run.job.data, json!({"ticketId": run.job.id}));
        assert_eq!((run.job.attempts_made, run.job.attempts), (0, 3));
        run.completes();
    }
    stage.until("all done", |counts| counts.completed == 3 && counts.failed == 0).await;
    assert_eq!(letters.count().await.unwrap(), 0);
    assert!(letters.list(0, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn letters_are_listed_newest_first_searched_and_thrown_away() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(12)).await;
    kill(&stage, 12).await;
    let letters = stage.queue.dead_letters().await.unwrap();
    let ids = |letters: Vec<stampede_broker::DeadLetter>| -> Vec<String> {
        letters.into_iter().map(|letter| letter.job_id).collect()
    };
    assert_eq!(ids(letters.list(0, 2).await.unwrap()), ["job-11", "job-10"]);
    assert_eq!(ids(letters.list(10, 5).await.unwrap()), ["job-1", "job-0"]);
    assert_eq!(ids(letters.search("\"job-1\"", 9).await.unwrap()), ["job-1"]);
    assert_eq!(ids(letters.search("printer for job-1", 2).await.unwrap()), ["job-11", "job-10"]);
    assert!(letters.search("nothing", 5).await.unwrap().is_empty());
    assert_eq!(letters.purge(&Letters::These(vec!["job-4".into()])).await.unwrap(), 1);
    assert_eq!(letters.purge(&Letters::All).await.unwrap(), 11);
    assert_eq!(letters.count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_worker_that_has_lost_its_job_buries_nothing() {
    let stage = Stage::start().await;
    let mut slow = stage.play(short_lock("slow"));
    stage.enqueue(&[job("a")]).await;
    let run = slow.run().await;
    // Another worker has it now.
    let _: String = stage.ask("SET @a:lock other:0").await;
    run.ends(Outcome::Discard("too late".into()));
    slow.failure().await.settles(Ok(()));
    slow.running.stop().await;
    let letters = stage.queue.dead_letters().await.unwrap();
    assert_eq!(letters.count().await.unwrap(), 0);
    assert_eq!(stage.queue.counts().await.unwrap().failed, 0);
}
