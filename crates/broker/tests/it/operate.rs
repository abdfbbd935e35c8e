//! Looking into queues.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use stampede_broker::{Cancelled, Delayed, Error, Letters, Outcome, Schedule, State, WhenActive};
use stampede_broker::{JobSpec, Keep};
use stampede_testkit::eventually;

use crate::stage::{SOON, Stage, config, job, jobs};

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

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
async fn jobs_are_found_by_id_name_and_payload_in_whatever_state() {
    let stage = Stage::start().await;
    let named = |id: &str, name: &'static str, to: &str| JobSpec {
        name: name.into(),
        data: json!({ "to": to }),
        ..job(id)
    };
    stage.enqueue(&[named("done", "welcome", "Zoë")]).await;
    let mut played = stage.play(config("w"));
    played.run().await.completes();
    stage.until_completed(1).await;
    played.running.stop().await;
    let later = JobSpec { delay: Duration::from_secs(3600), ..named("later", "digest", "bob") };
    stage.enqueue(&[named("waits", "welcome", "ann"), later]).await;
    let found = async |text: &str| {
        let found = stage.queue.search(&State::ALL, text, 0, 10).await.unwrap();
        assert_eq!(found.next, None);
        found.jobs.into_iter().map(|job| (job.id, job.state)).collect::<Vec<_>>()
    };
    let done = ("done".to_owned(), State::Completed);
    let waits = ("waits".to_owned(), State::Prioritized);
    assert_eq!(found("later").await, [("later".to_owned(), State::Delayed)], "by id");
    assert_eq!(found("welcome").await, [waits.clone(), done.clone()], "by name");
    assert_eq!(found("Zoë").await, [done], "by payload");
    assert_eq!(found("\"to\":\"ann\"").await, [waits], "as it is written");
    assert_eq!(found("nobody").await, []);
}

#[tokio::test]
async fn a_search_looks_at_so_many_and_says_where_to_go_on() {
    let stage = Stage::start().await;
    // The newest stands first.
    let plain = |id: String| JobSpec { priority: 0, ..job(&id) };
    stage.enqueue(&[plain("needle".to_owned())]).await;
    stage.enqueue(&(0..20_500).map(|n| plain(format!("hay-{n}"))).collect::<Vec<_>>()).await;
    let first = stage.queue.search(&State::WAITING, "needle", 0, 10).await.unwrap();
    assert_eq!((first.jobs.len(), first.next), (0, Some(20_000)));
    let rest = stage.queue.search(&State::WAITING, "needle", 20_000, 10).await.unwrap();
    assert_eq!((rest.jobs[0].id.as_str(), rest.next), ("needle", None));
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

    // By force, while one runs: its worker lets go of it, and takes what comes after.
    stage.enqueue(&jobs(2)).await;
    let third = played.run().await;
    stage.queue.obliterate(WhenActive::Destroy).await.unwrap();
    assert_eq!(stage.ask::<Vec<String>>("KEYS @*").await, Vec::<String>::new());
    third.completes();
    stage.enqueue(&[job("anew")]).await;
    let run = played.run().await;
    assert_eq!(run.job.id, "anew");
    run.completes();
    stage.until("only that one", |counts| counts.completed == 1 && counts.active == 0).await;
}

#[tokio::test]
async fn old_jobs_go_by_number_and_by_age() {
    let stage = Stage::start().await;
    let day = Duration::from_secs(24 * 3600);
    let kept = |count| Keep::AtMost { age: day, count };
    let two = |job| JobSpec { keep_completed: kept(2), keep_failed: kept(2), ..job };
    stage.enqueue(&jobs(10).into_iter().map(two).collect::<Vec<_>>()).await;
    let mut played = stage.play(config("w"));
    let mut ended = [Vec::new(), Vec::new()];
    for number in 0..10 {
        let run = played.run().await;
        ended[number % 2].insert(0, run.job.id.clone());
        if number % 2 == 0 {
            run.completes();
        } else {
            run.ends(Outcome::Discard("no".into()));
            played.failure().await.settles(Ok(()));
        }
    }
    stage.until("two of each", |c| (c.completed, c.failed, c.active) == (2, 2, 0)).await;
    let ids = async |state| {
        let jobs = stage.queue.jobs(state, 0, 10).await.unwrap();
        jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(State::Completed).await, ended[0][..2], "the newest");
    assert_eq!(ids(State::Failed).await, ended[1][..2]);
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 5, "letters stay");

    // One of them is a day and a bit old; it goes when the next one ends.
    let old = now_ms() - (day + Duration::from_secs(10)).as_millis() as u64;
    stage.ask::<()>(&format!("ZADD @completed XX {old} {}", ended[0][0])).await;
    stage.enqueue(&[JobSpec { keep_completed: kept(9), ..job("next") }]).await;
    played.run().await.completes();
    eventually(SOON, || async {
        let found = ids(State::Completed).await;
        if found == ["next", &ended[0][1]] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    assert!(!stage.ask::<bool>(&format!("EXISTS @{}", ended[0][0])).await);
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
async fn what_stays_keeps_nobody_from_removing_the_rest() {
    let stage = Stage::start().await;
    let later =
        |id: String, hours: u64| JobSpec { delay: Duration::from_secs(hours * 3600), ..job(&id) };
    // They are due sooner than all others, and stay.
    for number in 0..3 {
        let minutely = Schedule::Every(Duration::from_secs(60 + number));
        let tick = JobSpec { priority: 0, ..job("tick") };
        stage.queue.schedule(&format!("tick-{number}"), &minutely, &tick).await.unwrap();
    }
    let delayed: Vec<JobSpec> = (0..2_000).map(|n| later(format!("later-{n}"), 2)).collect();
    stage.enqueue(&delayed).await;
    let clean =
        async |grace, limit| stage.queue.clean(State::Delayed, grace, limit).await.unwrap().len();
    let hour = Duration::from_secs(3600);
    assert_eq!(clean(hour, 10).await, 0, "they are young");
    assert_eq!(clean(Duration::ZERO, 1).await, 1, "not the first, but one that may go");
    stage.enqueue(&[later("old".to_owned(), 9)]).await;
    stage.ask::<()>("HSET @old timestamp 1000").await;
    assert_eq!(stage.queue.clean(State::Delayed, hour, 10).await.unwrap(), ["old"]);
    assert_eq!(stage.queue.drain(Delayed::Too).await.unwrap(), 1_999);
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!(counts.waiting + counts.delayed, 3, "the schedules' own: {counts:?}");
}

#[tokio::test]
async fn what_other_software_has_left_is_drained_too_and_loses_nothing_else() {
    let stage = Stage::start().await;
    let plain = |id: &str| JobSpec { priority: 0, ..job(id) };
    stage.enqueue(&["a", "b", "c", "d"].map(plain)).await;
    stage.queue.set_global_concurrency(Some(3)).await.unwrap();
    // A key of another kind, a part of the queue, and something that never was a job.
    stage.ask::<()>("SET @weird text").await;
    stage.ask::<()>("LINSERT @wait BEFORE b weird").await;
    stage.ask::<()>("LINSERT @wait BEFORE c meta").await;
    stage.ask::<()>("RPUSH @wait never").await;
    assert_eq!(stage.queue.drain(Delayed::Keep).await.unwrap(), 7);
    assert!(!stage.ask::<bool>("EXISTS @wait").await);
    assert_eq!(stage.queue.global_concurrency().await.unwrap(), Some(3), "meta is still there");

    // A job that cannot be removed, because of its parent, stays and is not lost.
    stage.enqueue(&["a", "b"].map(plain)).await;
    stage.ask::<()>("HSET @a parentKey bull:odd:p").await;
    stage.ask::<()>("HSET bull:odd:p name x").await;
    stage.ask::<()>("SET bull:odd:p:dependencies text").await;
    assert_eq!(stage.queue.drain(Delayed::Keep).await.unwrap(), 1);
    assert_eq!(stage.ask::<Vec<String>>("LRANGE @wait 0 -1").await, ["a"]);

    // And a Redis that is full takes removals: they make room.
    stage.enqueue(&["b", "c", "d"].map(plain)).await;
    stage.ask::<()>("DEL bull:odd:p:dependencies").await;
    stage.ask::<()>("CONFIG SET maxmemory 1").await;
    assert!(stage.queue.remove("b").await.unwrap());
    assert_eq!(stage.queue.drain(Delayed::Keep).await.unwrap(), 3);
}

#[tokio::test]
async fn what_is_no_job_is_neither_cancelled_nor_removed() {
    let stage = Stage::start().await;
    let hourly = Schedule::Every(Duration::from_secs(3600));
    stage.queue.schedule("digest", &hourly, &job("digest")).await.unwrap();
    let keys: Vec<String> = stage.ask("KEYS @repeat:*").await;
    for key in &keys {
        let id = key.strip_prefix("bull:tickets:").unwrap();
        match stage.queue.cancel(id, "no").await {
            Ok(cancelled) => assert_eq!(cancelled, Cancelled::NotThere, "{id}"),
            // The next job of a schedule.
            Err(error) => assert!(matches!(error, Error::OfSchedule { .. }), "{error}"),
        }
    }
    let mut left: Vec<String> = stage.ask("KEYS @repeat:*").await;
    left.sort();
    let mut before = keys.clone();
    before.sort();
    assert_eq!(left, before);
    assert!(keys.len() >= 2, "{keys:?}");
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
    assert_eq!(stage.queue.dead_letters().purge(&theirs).await.unwrap().count, 1);
    assert_eq!(stage.queue.retry_all().await.unwrap().count, 3);
    for _ in 0..3 {
        played.run().await.completes();
    }
    stage.until_completed(3).await;
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 0);
}
