//! Looking into queues.

use std::time::Duration;

use stampede_broker::{Delayed, Error, Letters, Outcome, Schedule, State, WhenActive};
use stampede_model::JobSpec;

use crate::stage::{Stage, config, job, jobs};

#[tokio::test]
async fn jobs_that_wait_are_listed_with_and_without_a_priority() {
    let stage = Stage::start().await;
    let prioritized = (0..3).map(|n| JobSpec { priority: 5, ..job(&format!("late-{n}")) });
    let plain = (0..3).map(|n| JobSpec { priority: 0, ..job(&format!("soon-{n}")) });
    stage.enqueue(&plain.chain(prioritized).collect::<Vec<_>>()).await;
    let listed = async |skip, count| {
        let jobs = stage.queue.jobs_in(&State::WAITING, skip, count).await.unwrap();
        jobs.into_iter().map(|job| (job.id, job.state)).collect::<Vec<_>>()
    };
    let all = listed(0, 100).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all[..3].iter().all(|(_, state)| *state == State::Waiting), "{all:?}");
    assert!(all[3..].iter().all(|(_, state)| *state == State::Prioritized), "{all:?}");
    for skip in 0..=6 {
        for count in 0..=6 {
            let end = (skip + count).min(6);
            assert_eq!(listed(skip, count).await, all[skip..end], "{skip} {count}");
        }
    }
    let found = stage.queue.search(&State::WAITING, "late", 0, 2).await.unwrap();
    assert_eq!(found.jobs.len(), 2);
    let rest = stage.queue.search(&State::WAITING, "late", found.next.unwrap(), 9).await.unwrap();
    assert_eq!((rest.jobs.len(), rest.next), (1, None));
}

#[tokio::test]
async fn a_queue_that_is_worked_on_is_destroyed_only_by_force() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&jobs(3)).await;
    let run = played.run().await;
    let refused = stage.queue.obliterate(WhenActive::Refuse).await.unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    assert!(!stage.queue.is_paused().await.unwrap(), "as it was before");
    run.completes();
    let second = played.run().await;
    stage.queue.pause().await.unwrap();
    assert!(stage.queue.obliterate(WhenActive::Refuse).await.is_err());
    assert!(stage.queue.is_paused().await.unwrap(), "as it was before");
    second.completes();
    stage.until("nobody works", |counts| counts.active == 0).await;
    stage.queue.obliterate(WhenActive::Refuse).await.unwrap();
    assert_eq!(stage.ask::<Vec<String>>("KEYS @*").await, Vec::<String>::new());
    assert!(!stage.broker.queue_names().await.unwrap().contains("tickets"));
}

#[tokio::test]
async fn no_more_jobs_are_cleaned_up_than_were_asked_for() {
    let stage = Stage::start().await;
    let plain: Vec<JobSpec> =
        jobs(25_000).into_iter().map(|job| JobSpec { priority: 0, ..job }).collect();
    stage.enqueue(&plain).await;
    let clean =
        async |limit| stage.queue.clean(State::Waiting, Duration::ZERO, limit).await.unwrap().len();
    assert_eq!(clean(15_000).await, 15_000);
    assert_eq!(stage.queue.counts().await.unwrap().waiting, 10_000);
    assert_eq!((clean(0).await, clean(1).await, clean(20_000).await), (0, 1, 9_999));
}

#[tokio::test]
async fn a_queue_is_drained_without_the_next_job_of_its_schedule() {
    let stage = Stage::start().await;
    let plain = |id: &str| JobSpec { priority: 0, ..job(id) };
    let later = JobSpec { delay: Duration::from_secs(3600), ..job("later") };
    stage.enqueue(&[plain("before"), job("urgent"), later]).await;
    // Its first job comes at once, and stands between the others.
    let hourly = Schedule::Every(Duration::from_secs(3600));
    stage.queue.schedule("tick", &hourly, &plain("tick")).await.unwrap();
    stage.enqueue(&[plain("after")]).await;
    assert_eq!(stage.queue.drain(Delayed::Keep).await.unwrap(), 3);
    assert_eq!(stage.queue.drain(Delayed::Too).await.unwrap(), 1);
    let waiting: Vec<String> = stage.ask("LRANGE @wait 0 -1").await;
    let [tick] = waiting.as_slice() else { panic!("{waiting:?}") };
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!(run.job.id, *tick);
    run.completes();
    stage.until("the next one", |counts| counts.delayed == 1 && counts.completed == 1).await;
    assert!(stage.queue.obliterate(WhenActive::Refuse).await.is_ok());
}

#[tokio::test]
async fn all_failed_jobs_run_again_with_or_without_a_letter() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(3)).await;
    let mut played = stage.play(config("w"));
    for _ in 0..3 {
        played.run().await.ends(Outcome::Discard("no".into()));
        played.failure().await.settles(Ok(()));
    }
    stage.until("failed", |counts| counts.failed == 3 && counts.active == 0).await;
    // Other software makes none.
    let theirs = Letters::These(vec!["job-1".to_owned()]);
    assert_eq!(stage.queue.dead_letters().purge(&theirs).await.unwrap(), 1);
    assert_eq!(stage.queue.retry_all().await.unwrap().count, 3);
    for _ in 0..3 {
        played.run().await.completes();
    }
    stage.until_completed(3).await;
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 0);
}
