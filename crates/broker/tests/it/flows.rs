//! Trees of jobs across queues, and jobs that come again and again.

use std::time::Duration;

use serde_json::json;
use stampede_broker::JobSpec;
use stampede_broker::{
    Cancelled, Delayed, Flow, Letters, OnFailure, Outcome, Schedule, State, WhenActive,
};
use stampede_testkit::eventually;

use crate::stage::{Played, SOON, Stage, config, job, play, short_lock, throughout};

#[tokio::test]
async fn a_parent_begins_when_its_children_are_done_and_has_their_results() {
    let stage = Stage::start().await;
    let child = |id: &str| Flow::new("payments", job(id));
    let flow = Flow::new("tickets", job("order")).after(child("charge")).after(child("reserve"));
    stage.broker.add_flow(&flow).await.unwrap();
    stage.broker.add_flow(&flow).await.unwrap();
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let mut children = play(&payments, config("children"));
    for result in ["paid", "reserved"] {
        let run = children.run().await;
        parents.runs_nothing_else();
        run.ends(Outcome::Done(json!(result)));
    }
    let parent = parents.run().await;
    assert_eq!(parent.job.id, "order");
    let values = parent.context.as_ref().unwrap().children_values().await.unwrap();
    assert_eq!(values["bull:payments:charge"], "paid");
    assert_eq!(values["bull:payments:reserve"], "reserved");
    parent.completes();
    stage.until_completed(1).await;
    children.runs_nothing_else();
}

#[tokio::test]
async fn a_parent_learns_of_children_that_may_fail() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let mut children = play(&payments, config("children"));
    let child = |id: &str, on_failure| Flow { on_failure, ..Flow::new("payments", job(id)) };
    for on_failure in [OnFailure::GoOn, OnFailure::RunParent] {
        let [id, bad, good] =
            ["parent", "bad", "good"].map(|name| format!("{name}-{on_failure:?}"));
        let flow = Flow::new("tickets", job(&id))
            .after(child(&bad, on_failure))
            .after(child(&good, on_failure));
        stage.broker.add_flow(&flow).await.unwrap();
        let run = children.run().await;
        assert_eq!(run.job.id, bad);
        run.ends(Outcome::Discard("declined".into()));
        children.failure().await.settles(Ok(()));
        let waits = children.run().await;
        assert_eq!(waits.job.id, good);
        let parent = if on_failure == OnFailure::GoOn {
            parents.runs_nothing_else();
            waits.ends(Outcome::Done(json!("paid")));
            parents.run().await
        } else {
            // At once, although another child is not done.
            let parent = parents.run().await;
            waits.ends(Outcome::Done(json!("paid")));
            parent
        };
        assert_eq!(parent.job.id, id);
        let failures = parent.context.as_ref().unwrap().children_failures().await.unwrap();
        assert_eq!(failures, [(format!("bull:payments:{bad}"), "declined".to_owned())].into());
        let events = payments.events().await.unwrap();
        assert!(events.ended(&good, SOON).await.unwrap().is_some());
        parent.completes();
        stage.until("no parent runs", |counts| counts.active == 0 && counts.failed == 0).await;
    }
}

#[tokio::test]
async fn what_comes_after_a_removed_step_fails_and_does_not_run() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let add = async |id: &str, on_failure| {
        let charge = Flow { on_failure, ..Flow::new("payments", job(&format!("charge-{id}"))) };
        let flow = Flow::new("tickets", job(&format!("reserve-{id}"))).after(charge);
        stage.broker.add_flow(&flow).await.unwrap();
    };
    let fails = async |parents: &mut Played, id: &str| {
        let failure = parents.failure().await;
        let told = format!("child bull:payments:charge-{id} was removed");
        assert_eq!((&*failure.job.id, &*failure.reason), (&*format!("reserve-{id}"), &*told));
        failure.settles(Ok(()));
    };
    add("removed", OnFailure::FailParent).await;
    assert!(payments.remove("charge-removed").await.unwrap());
    fails(&mut parents, "removed").await;
    add("cancelled", OnFailure::FailParent).await;
    let cancelled = payments.cancel("charge-cancelled", "no").await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed);
    fails(&mut parents, "cancelled").await;
    add("drained", OnFailure::FailParent).await;
    assert_eq!(payments.drain(Delayed::Keep).await.unwrap(), 1);
    fails(&mut parents, "drained").await;
    add("destroyed", OnFailure::FailParent).await;
    payments.obliterate(WhenActive::Refuse).await.unwrap();
    fails(&mut parents, "destroyed").await;
    let dead = stage.queue.dead_letters();
    stage.until("failed", |counts| counts.failed == 4 && counts.active == 0).await;
    assert_eq!(dead.count().await.unwrap(), 4);

    // One that may fail may be missing, too.
    add("optional", OnFailure::GoOn).await;
    assert!(payments.remove("charge-optional").await.unwrap());
    let run = parents.run().await;
    assert_eq!(run.job.id, "reserve-optional");
    run.completes();

    // And whoever wants it to run all the same replays it.
    let this = Letters::These(vec!["reserve-removed".to_owned()]);
    assert_eq!(dead.replay(&this, None).await.unwrap().count, 1);
    let run = parents.run().await;
    assert_eq!(run.job.id, "reserve-removed");
    run.completes();
    stage.until_completed(2).await;
}

#[tokio::test]
async fn a_failed_step_that_is_cleaned_up_does_not_let_its_parent_run() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let flow = Flow::new("tickets", job("reserve")).after(Flow::new("payments", job("charge")));
    stage.broker.add_flow(&flow).await.unwrap();
    // As Node's clients add it, if they do not say more: the parent waits for ever.
    let _: i64 = redis::cmd("HSET")
        .arg("bull:payments:charge")
        .arg("parent")
        .arg(r#"{"id":"reserve","queueKey":"bull:tickets"}"#)
        .query_async(&mut stage.raw().await)
        .await
        .unwrap();
    let mut children = play(&payments, config("children"));
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    eventually(SOON, || async {
        let failed = payments.counts().await.unwrap().failed;
        (failed == 1).then_some(())
    })
    .await;
    let mut parents = stage.play(config("parents"));
    let gone = payments.clean(State::Failed, Duration::ZERO, 10).await.unwrap();
    assert_eq!(gone, ["charge"]);
    let reason = parents.failure().await.reason;
    assert_eq!(reason, "child bull:payments:charge was removed");
    parents.runs_nothing_else();
}

#[tokio::test]
async fn a_destroyed_queue_lets_nothing_run_in_others_however_deep_the_flow() {
    let stage = Stage::start().await;
    let charge = Flow::new("payments", job("charge"));
    let check = Flow::new("payments", job("check")).after(charge);
    let flow = Flow::new("tickets", job("reserve")).after(check);
    stage.broker.add_flow(&flow).await.unwrap();
    let payments = stage.broker.queue("payments").await.unwrap();
    payments.obliterate(WhenActive::Refuse).await.unwrap();
    assert_eq!(stage.ask::<Vec<String>>("KEYS bull:payments:*").await, Vec::<String>::new());
    let mut parents = stage.play(config("parents"));
    let reason = parents.failure().await.reason;
    assert_eq!(reason, "child bull:payments:check was removed");
    parents.runs_nothing_else();
}

#[tokio::test]
async fn parents_of_drained_steps_fail_however_many_they_are() {
    const FLOWS: usize = 700;
    let stage = Stage::start().await;
    let plain = |id: String| JobSpec { priority: 0, ..job(&id) };
    for n in 0..FLOWS {
        // Both in one queue, so that parents come to the list that is drained.
        let child = Flow::new("tickets", plain(format!("child-{n}")));
        let flow = Flow::new("tickets", plain(format!("parent-{n}"))).after(child);
        stage.broker.add_flow(&flow).await.unwrap();
    }
    assert_eq!(stage.queue.drain(Delayed::Too).await.unwrap(), FLOWS);
    let waiting: Vec<String> = stage.ask("LRANGE @wait 0 -1").await;
    assert_eq!(waiting.len(), FLOWS);
    assert!(waiting.iter().all(|id| id.starts_with("parent-")), "{waiting:?}");
    let reason = stage.field("parent-7", "defa").await;
    assert_eq!(reason.as_deref(), Some("child bull:tickets:child-7 was removed"));
}

#[tokio::test]
async fn a_destroyed_queue_leaves_no_parents_behind() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let flow = Flow::new("tickets", job("reserve")).after(Flow::new("payments", job("charge")));
    stage.broker.add_flow(&flow).await.unwrap();
    stage.queue.obliterate(WhenActive::Refuse).await.unwrap();
    assert_eq!(stage.ask::<Vec<String>>("KEYS @*").await, Vec::<String>::new());
    // Its child, in another queue, knows nothing of that and ends as it should.
    let mut children = play(&payments, config("children"));
    children.run().await.completes();
    eventually(SOON, || async {
        let counts = payments.counts().await.unwrap();
        if counts.completed == 1 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_parent_that_is_done_before_its_children_waits_for_them_and_runs_again() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let mut children = play(&payments, config("children"));
    let on_failure = OnFailure::RunParent;
    let child = |id: &str| Flow { on_failure, ..Flow::new("payments", job(id)) };
    let parent = JobSpec { attempts: Some(1), ..job("parent") };
    let flow = Flow::new("tickets", parent).after(child("bad")).after(child("good"));
    stage.broker.add_flow(&flow).await.unwrap();
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    let good = children.run().await;
    parents.run().await.completes();
    stage.until("it waits", |counts| counts.waiting_children == 1 && counts.active == 0).await;
    good.completes();
    let again = parents.run().await;
    assert_eq!((again.job.id.as_str(), again.job.attempts_made), ("parent", 0));
    again.completes();
    stage.until_completed(1).await;

    // Or it does without those that have not begun.
    let flow = Flow::new("tickets", job("hasty")).after(child("worse")).after(child("late"));
    stage.broker.add_flow(&flow).await.unwrap();
    payments.pause().await.unwrap();
    let run = children.run().await;
    assert_eq!(run.job.id, "worse");
    run.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    let hasty = parents.run().await;
    hasty.context.as_ref().unwrap().remove_unprocessed_children().await.unwrap();
    hasty.completes();
    stage.until_completed(2).await;
    payments.resume().await.unwrap();
    children.runs_nothing_else();
}

#[tokio::test]
async fn a_parent_with_a_delay_waits_again_for_a_child_that_is_replayed() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let later = JobSpec { delay: Duration::from_secs(3600), ..job("reserve") };
    let flow = Flow::new("tickets", later).after(Flow::new("payments", job("charge")));
    stage.broker.add_flow(&flow).await.unwrap();
    let mut children = play(&payments, config("children"));
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    stage.until("about to fail", |counts| counts.delayed == 1).await;
    assert!(stage.field("reserve", "defa").await.unwrap().starts_with("child "));
    assert!(payments.retry("charge").await.unwrap());
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.waiting_children, counts.delayed), (1, 0), "{counts:?}");
    assert_eq!(stage.field("reserve", "defa").await, None);
    children.run().await.completes();
    stage.until("delayed, as it wanted", |counts| counts.delayed == 1).await;
}

#[tokio::test]
async fn a_flow_that_is_added_again_changes_nothing() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let on_failure = OnFailure::GoOn;
    let charge = Flow { on_failure, ..Flow::new("payments", job("charge")) };
    let flow = Flow::new("tickets", job("reserve")).after(charge);
    stage.broker.add_flow(&flow).await.unwrap();
    let mut children = play(&payments, config("children"));
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    let mut parents = stage.play(config("parents"));
    let run = parents.run().await;
    stage.broker.add_flow(&flow).await.unwrap();
    run.completes();
    stage.until_completed(1).await;
    parents.runs_nothing_else();
}

#[tokio::test]
async fn a_replayed_step_takes_the_rest_of_its_flow_along_and_nothing_runs_before_it() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let mut children = play(&payments, config("children"));
    let charge = Flow::new("payments", job("charge"));
    let reserve = Flow::new("tickets", job("reserve")).after(charge);
    let confirm = Flow::new("tickets", job("confirm")).after(reserve);
    stage.broker.add_flow(&confirm).await.unwrap();
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    for _ in 0..2 {
        parents.failure().await.settles(Ok(()));
    }
    stage.until("all failed", |counts| counts.failed == 2 && counts.active == 0).await;

    // What comes after it cannot run before it.
    let (dead, dead_payments) = (stage.queue.dead_letters(), payments.dead_letters());
    let refused = dead.replay(&Letters::All, None).await.unwrap();
    assert_eq!((refused.count, refused.failed.len()), (0, 2));
    assert!(refused.failed[0].error.contains("bull:payments:charge"), "{refused:?}");
    let refused = stage.queue.retry("confirm").await.unwrap_err().to_string();
    assert!(refused.contains("bull:tickets:reserve"), "{refused}");
    parents.runs_nothing_else();

    let other = json!({"card": "another"});
    assert_eq!(dead_payments.replay(&Letters::All, Some(&other)).await.unwrap().count, 1);
    let run = children.run().await;
    assert_eq!(run.job.data, other);
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.waiting_children, counts.failed), (2, 0), "they wait again");
    assert_eq!(dead.count().await.unwrap(), 0);
    parents.runs_nothing_else();
    run.ends(Outcome::Done(json!("paid")));
    for id in ["reserve", "confirm"] {
        let run = parents.run().await;
        assert_eq!((run.job.id.as_str(), run.job.attempts_made), (id, 0));
        run.completes();
    }
    stage.until_completed(2).await;
}

#[tokio::test]
async fn a_parent_of_several_failed_children_waits_again_when_all_are_replayed() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut children = play(&payments, config("children"));
    let child = |id: &str| Flow::new("payments", job(id));
    for has_failed in [true, false] {
        let [id, a, b] = ["order", "a", "b"].map(|name| format!("{name}-{has_failed}"));
        let flow = Flow::new("tickets", job(&id)).after(child(&a)).after(child(&b));
        stage.broker.add_flow(&flow).await.unwrap();
        for _ in 0..2 {
            children.run().await.ends(Outcome::Discard("declined".into()));
            children.failure().await.settles(Ok(()));
        }
        let counts = async || payments.counts().await.unwrap();
        eventually(SOON, || async { (counts().await.failed == 2).then_some(()) }).await;
        // Either it has failed because of them, or it is about to.
        let mut parents = has_failed.then(|| stage.play(config("parents")));
        if let Some(parents) = &mut parents {
            parents.failure().await.settles(Ok(()));
            stage.until("it has failed", |counts| counts.failed == 1 && counts.active == 0).await;
        }
        assert_eq!(payments.dead_letters().replay(&Letters::All, None).await.unwrap().count, 2);
        let counts = stage.queue.counts().await.unwrap();
        assert_eq!((counts.waiting_children, counts.failed, counts.prioritized), (1, 0, 0));
        for _ in 0..2 {
            children.run().await.completes();
        }
        let mut parents = parents.unwrap_or_else(|| stage.play(config("parents")));
        let parent = parents.run().await;
        assert_eq!(parent.job.id, id);
        parent.completes();
        stage
            .until("it is done", |counts| counts.active == 0 && counts.waiting_children == 0)
            .await;
        parents.running.stop().await;
    }
}

#[tokio::test]
async fn a_parent_does_not_wait_for_a_failed_child_of_which_nothing_is_left() {
    let stage = Stage::start().await;
    let payments = stage.broker.queue("payments").await.unwrap();
    let mut parents = stage.play(config("parents"));
    let mut children = play(&payments, config("children"));
    let flow = Flow::new("tickets", job("order")).after(Flow::new("payments", job("charge")));
    stage.broker.add_flow(&flow).await.unwrap();
    children.run().await.ends(Outcome::Discard("declined".into()));
    children.failure().await.settles(Ok(()));
    parents.failure().await.settles(Ok(()));
    stage.until("both failed", |counts| counts.failed == 1 && counts.active == 0).await;
    assert!(stage.queue.retry("order").await.is_err());
    assert_eq!(payments.clean(State::Failed, Duration::ZERO, 10).await.unwrap(), ["charge"]);
    assert!(stage.queue.retry("order").await.unwrap());
    assert_eq!(parents.run().await.job.id, "order");
}

#[tokio::test]
async fn a_scheduled_job_that_is_cancelled_before_it_begins_does_not_end_its_schedule() {
    let stage = Stage::start().await;
    let every = Schedule::Every(Duration::from_millis(300));
    let spec = JobSpec { priority: 0, attempts: Some(1), ..job("report") };
    let mut first = stage.play(short_lock("first"));
    stage.queue.schedule("report", &every, &spec).await.unwrap();
    let run = first.run().await;
    first.running.crash().await;
    // As if its worker had died before it could add the next one.
    stage.ask::<()>("DEL @delayed").await;
    let next: Vec<String> = stage.ask("KEYS @repeat:report:*").await;
    for key in next.iter().filter(|key| !key.ends_with(&run.job.id) && !key.ends_with(":lock")) {
        stage.ask::<()>(&format!("DEL {key}")).await;
    }
    let due = run.job.id.rsplit(':').next().unwrap().to_owned();
    stage.ask::<()>(&format!("ZADD @repeat {due} report")).await;
    assert_eq!(stage.queue.cancel(&run.job.id, "no").await.unwrap(), Cancelled::Told);
    let mut second = stage.play(short_lock("second"));
    second.failure().await.settles(Ok(()));
    let next = second.run().await;
    assert_ne!(next.job.id, run.job.id);
}

#[tokio::test]
async fn a_schedule_does_not_end_with_the_memory_of_redis() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let every = Schedule::Every(Duration::from_millis(300));
    let spec = JobSpec { priority: 0, attempts: Some(1), ..job("report") };
    stage.queue.schedule("report", &every, &spec).await.unwrap();
    played.run().await.completes();
    for _ in 0..3 {
        let run = played.run().await;
        stage.ask::<()>("CONFIG SET maxmemory 1").await;
        run.completes();
        throughout(Duration::from_millis(700), async || {}).await;
        stage.ask::<()>("CONFIG SET maxmemory 0").await;
    }
    played.run().await.completes();
}

#[tokio::test]
async fn a_schedule_goes_on_although_its_runs_are_slow_or_fail() {
    let stage = Stage::start().await;
    let mut played = stage.play(stampede_broker::ConsumerConfig { slots: 3, ..config("w") });
    let every = Schedule::Every(Duration::from_millis(200));
    let spec = JobSpec { priority: 0, attempts: Some(1), ..job("report") };
    stage.queue.schedule("report", &every, &spec).await.unwrap();
    let slow = played.run().await;
    // The next one does not wait for this one to end.
    let fails = played.run().await;
    assert_ne!(slow.job.id, fails.job.id);
    fails.ends(Outcome::Discard("no paper".into()));
    played.failure().await.settles(Ok(()));
    let third = played.run().await;
    assert_eq!(third.job.data, json!({"ticketId": "report"}));
    let schedules: Vec<serde_json::Value> = stage.queue.schedules().await.unwrap();
    assert_eq!((&schedules[0]["key"], &schedules[0]["every"]), (&json!("report"), &json!(200)));
    assert!(stage.queue.unschedule("report").await.unwrap());
    assert!(!stage.queue.unschedule("report").await.unwrap());
    slow.completes();
    third.completes();
    stage
        .until("ended", |counts| counts.completed == 2 && counts.failed == 1 && counts.active == 0)
        .await;
}

#[tokio::test]
async fn a_schedule_by_cron_comes_at_its_time_in_its_zone_again_and_again() {
    const DAY_MS: u64 = 24 * 3_600_000;
    let stage = Stage::start().await;
    // Nine in the morning there is half past three, UTC, in summer and in winter.
    let nine = Schedule::Cron {
        pattern: "0 9 * * *".to_owned(),
        time_zone: Some("Asia/Kolkata".to_owned()),
    };
    stage.queue.schedule("report", &nine, &JobSpec { priority: 0, ..job("report") }).await.unwrap();
    let due = async || {
        let delayed: Vec<(String, f64)> = stage.ask("ZRANGE @delayed 0 -1 WITHSCORES").await;
        let [(id, score)] = delayed.as_slice() else { panic!("{delayed:?}") };
        // BullMQ keeps the milliseconds above 12 bits of order.
        (id.clone(), *score as u64 / 4096)
    };
    let (id, first) = due().await;
    assert_eq!(first % DAY_MS, 3 * 3_600_000 + 1_800_000);
    let mut played = stage.play(config("w"));
    assert!(stage.queue.promote(&id).await.unwrap());
    let run = played.run().await;
    let (next_id, next) = due().await;
    assert_ne!(next_id, id);
    assert_eq!(next, first + DAY_MS);
    let refused = stage.queue.remove(&next_id).await.unwrap_err().to_string();
    assert!(refused.contains("end the schedule instead"), "{refused}");
    run.completes();
    stage.until_completed(1).await;
}
