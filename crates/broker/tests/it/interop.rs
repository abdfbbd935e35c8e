//! Node's and Python's BullMQ and Bull Board on the same queues, in the same Redis.

mod peer;
mod scripts;

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{ConsumerConfig, Flow, Outcome};
use stampede_broker::{Deduplication, JobSpec, Which};
use stampede_testkit::eventually;

use self::peer::Peer;
use crate::stage::{Counting, Running, SOON, Stage, config, job, jobs, play};

/// Works on `count` jobs together with the peer, after one that is completed already; every job is done by
/// exactly one of them. Returns how many each has done.
async fn share_jobs(
    stage: &Stage,
    config: ConsumerConfig,
    peer: &mut Peer,
    count: usize,
) -> (usize, usize) {
    let counting = Counting::default();
    let running = Running::start(&stage.queue, config, counting.clone());
    stage.enqueue(&jobs(count)).await;
    stage.until_completed(count as u64 + 1).await;
    running.stop().await;
    let ours = counting.runs();
    assert!(ours.values().all(|runs| *runs == 1));
    let mut theirs = HashSet::new();
    while theirs.len() + ours.len() < count {
        let report = peer.report().await;
        let id = report["completed"].as_str().unwrap().to_owned();
        assert!(!ours.contains_key(&id), "{id} was done by both");
        assert!(theirs.insert(id), "a job was done twice by the other");
    }
    (ours.len(), theirs.len())
}

#[tokio::test]
async fn node_produces_and_we_consume_and_node_hears_of_it() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    let events = ["active", "progress", "completed", "failed", "delayed"];
    node.ask(json!({"do": "listen", "queue": "tickets", "events": events})).await;
    let options = json!({"attempts": 2, "backoff": {"type": "fixed", "delay": 20, "jitter": 0.5}, "jobId": "a"});
    let jobs = json!([{"name": "n", "data": {"text": "Žofie 🎟", "half": 0.5}, "opts": options}]);
    node.ask(json!({"do": "add", "queue": "tickets", "jobs": jobs})).await;

    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!(run.job.data, json!({"text": "Žofie 🎟", "half": 0.5}));
    let workers = node.ask(json!({"do": "workers", "queue": "tickets"})).await;
    assert!(workers.to_string().contains(":w:worker-w"), "{workers}");
    run.ends(Outcome::Retry("once".into()));
    let again = played.run().await;
    assert_eq!((again.job.attempts_made, again.job.attempts), (1, 2));
    let context = again.context.clone().unwrap();
    context.progress(json!({"step": 2})).await.unwrap();
    context.log("half way").await.unwrap();
    again.ends(Outcome::Done(json!({"by": "rust"})));

    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Value| event["event"] == "completed") {
        seen.push(node.report().await);
    }
    let named = |name: &str| seen.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("active"), named("delayed"), named("progress")), (2, 1, 1), "{seen:?}");
    assert_eq!(seen.last().unwrap()["returnvalue"], json!({"by": "rust"}));
    let read = node.ask(json!({"do": "job", "queue": "tickets", "id": "a"})).await;
    assert_eq!((&read["state"], &read["attemptsMade"]), (&json!("completed"), &json!(2)));
    assert_eq!(read["failedReason"], "\"once\"", "as Node writes JSON");
    node.stop().await;
}

#[tokio::test]
async fn node_waits_for_jobs_that_we_finish_and_hears_how_they_failed() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    node.ask(json!({"do": "listen", "queue": "tickets", "events": ["failed"]})).await;
    let jobs = json!([
        {"name": "n", "data": {}, "opts": {"jobId": "good"}},
        {"name": "n", "data": {}, "opts": {"jobId": "bad"}},
    ]);
    node.ask(json!({"do": "add", "queue": "tickets", "jobs": jobs})).await;
    for id in ["good", "bad"] {
        node.ask(json!({"do": "await", "queue": "tickets", "id": id})).await;
    }
    let mut played = stage.play(config("w"));
    played.run().await.ends(Outcome::Done(json!({"by": "rust"})));
    assert_eq!(node.report().await, json!({"finished": "good", "value": {"by": "rust"}}));
    played.run().await.ends(Outcome::Discard("no paper".into()));
    played.failure().await.settles(Ok(()));
    let reports = [node.report().await, node.report().await];
    assert!(reports.contains(&json!({"finished": "bad", "error": "no paper"})), "{reports:?}");
    let heard = reports.iter().find(|report| report["event"] == "failed").unwrap();
    assert_eq!((&heard["jobId"], &heard["failedReason"]), (&json!("bad"), &json!("no paper")));
    node.stop().await;
}

#[tokio::test]
async fn we_produce_and_node_consumes_and_both_share_one_queue() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    stage
        .enqueue(&[
            JobSpec { attempts: Some(1), name: "fail".into(), ..job("broken") },
            job("fine"),
        ])
        .await;
    node.ask(json!({"do": "work", "queue": "tickets"})).await;
    let (mut reports, wanted) = (Vec::new(), 2);
    while reports.len() < wanted {
        reports.push(node.report().await);
    }
    assert!(reports.contains(&json!({"failed": "broken"})), "{reports:?}");
    assert!(reports.contains(&json!({"completed": "fine", "data": {"ticketId": "fine"}})));
    stage.until("one of each", |counts| counts.completed == 1 && counts.failed == 1).await;

    // Both at once: every job is done by exactly one of them.
    let two = ConsumerConfig { slots: 2, ..config("ours") };
    let (ours, theirs) = share_jobs(&stage, two, &mut node, 400).await;
    assert!(ours > 0 && theirs > 0, "{ours} and {theirs}");
    node.stop().await;
}

#[tokio::test]
async fn delays_and_twins_are_the_same_for_both() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    let twin = |id: &str| JobSpec {
        deduplication: Some(Deduplication { id: "twin".into(), which: Which::First }),
        delay: Duration::from_secs(3600),
        ..job(id)
    };
    assert_eq!(stage.queue.enqueue(&[twin("ours")]).await.unwrap(), ["ours"]);
    let read = node.ask(json!({"do": "job", "queue": "tickets", "id": "ours"})).await;
    assert_eq!((&read["state"], &read["opts"]["delay"]), (&json!("delayed"), &json!(3_600_000)));
    assert_eq!(read["deduplicationId"], "twin", "{read}");
    let add = |id: &str, about: &str| {
        let options = json!({"jobId": id, "deduplication": {"id": about}});
        json!({"do": "add", "queue": "tickets", "jobs": [{"name": "n", "data": {}, "opts": options}]})
    };
    assert_eq!(node.ask(add("theirs", "twin")).await, json!(["ours"]));
    assert_eq!(node.ask(add("theirs", "another")).await, json!(["theirs"]));
    let another = Deduplication { id: "another".into(), which: Which::First };
    let left_out = JobSpec { deduplication: Some(another), ..job("late") };
    assert_eq!(stage.queue.enqueue(&[left_out]).await.unwrap(), ["theirs"]);
    // And whoever works on it frees its place.
    node.ask(json!({"do": "work", "queue": "tickets"})).await;
    assert_eq!(node.report().await["completed"], "theirs");
    assert!(stage.queue.promote("ours").await.unwrap());
    assert_eq!(node.report().await["completed"], "ours");
    assert_eq!(stage.queue.enqueue(&[twin("anew")]).await.unwrap(), ["anew"]);
    node.stop().await;
}

#[tokio::test]
async fn flows_cross_from_one_to_the_other_both_ways() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    let ours = stage.broker.queue("ours").await.unwrap();
    let mut played = play(&ours, config("w"));
    node.ask(json!({"do": "work", "queue": "theirs"})).await;

    // Node's parent waits for our child.
    let flow = json!({
        "name": "parent", "queueName": "theirs", "data": {}, "opts": {"jobId": "their-parent"},
        "children": [{"name": "child", "queueName": "ours", "data": {"n": 1}, "opts": {"jobId": "our-child"}}],
    });
    node.ask(json!({"do": "flow", "flow": flow})).await;
    let child = played.run().await;
    assert_eq!(child.job.id, "our-child");
    child.ends(Outcome::Done(json!("from rust")));
    assert_eq!(node.report().await["completed"], "their-parent");
    let parent = node.ask(json!({"do": "job", "queue": "theirs", "id": "their-parent"})).await;
    let value: Value = match &parent["returnvalue"] {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        value => value.clone(),
    };
    assert_eq!(value["children"]["bull:ours:our-child"], "from rust");

    // Our parent waits for Node's child.
    let flow = Flow::new("ours", job("our-parent")).after(Flow::new("theirs", job("their-child")));
    stage.broker.add_flow(&flow).await.unwrap();
    let parent = played.run().await;
    assert_eq!(parent.job.id, "our-parent");
    let values = parent.context.as_ref().unwrap().children_values().await.unwrap();
    assert_eq!(values["bull:theirs:their-child"]["by"], "node");
    parent.completes();
    while node.report().await["completed"] != "their-child" {}

    // A step that we remove is not done for Node either: its parent fails.
    ours.pause().await.unwrap();
    let flow = json!({
        "name": "parent", "queueName": "theirs", "data": {}, "opts": {"jobId": "orphan"},
        "children": [{"name": "child", "queueName": "ours", "data": {}, "opts": {"jobId": "gone"}}],
    });
    node.ask(json!({"do": "flow", "flow": flow})).await;
    assert!(ours.remove("gone").await.unwrap());
    assert_eq!(node.report().await, json!({"failed": "orphan"}));
    let parent = node.ask(json!({"do": "job", "queue": "theirs", "id": "orphan"})).await;
    let reason = parent["failedReason"].to_string();
    assert!(reason.contains("child bull:ours:gone was removed"), "{parent}");
    node.stop().await;
}

#[tokio::test]
async fn bull_board_lists_retries_and_promotes_our_jobs_and_shows_dead_letters() {
    let stage = Stage::start().await;
    let mut node = Peer::node(&stage).await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&[job("dies"), job("sleeps")]).await;
    played.run().await.panics("out of paper");
    stage.until("delayed", |counts| counts.delayed == 1).await;
    let mut run = played.run().await;
    if run.job.id == "sleeps" {
        run.ends(Outcome::Snooze(Duration::from_secs(600)));
        run = played.run().await;
    }
    run.ends(Outcome::Discard("really out of paper".into()));
    played.failure().await.settles(Ok(()));
    stage.until("one failed", |counts| counts.failed == 1).await;
    if stage.queue.counts().await.unwrap().delayed == 0 {
        played.run().await.ends(Outcome::Snooze(Duration::from_secs(600)));
    }
    stage.until("one of each", |counts| counts.failed == 1 && counts.delayed == 1).await;

    let mut board = async |method: &str, path: &str| {
        let names = json!(["tickets", "tickets-dlq"]);
        let answer =
            node.ask(json!({"do": "board", "queues": names, "method": method, "path": path})).await;
        assert!(answer["status"].as_u64().unwrap() < 300, "{method} {path}: {answer}");
        answer["body"].clone()
    };
    let shown =
        board("GET", "/api/queues?activeQueue=tickets&status=failed&page=1&jobsPerPage=10").await;
    let queue = shown["queues"].as_array().unwrap().iter().find(|queue| queue["name"] == "tickets");
    let failed = &queue.unwrap()["jobs"][0];
    assert_eq!(
        (&failed["id"], &failed["failedReason"]),
        (&json!("dies"), &json!("really out of paper"))
    );
    // The board shows the newest first.
    assert_eq!(failed["stacktrace"][0], "really out of paper");
    assert!(failed["stacktrace"][1].as_str().unwrap().contains("stage.rs"), "{failed}");
    let shown =
        board("GET", "/api/queues?activeQueue=tickets-dlq&status=waiting&page=1&jobsPerPage=10")
            .await;
    let dead =
        shown["queues"].as_array().unwrap().iter().find(|queue| queue["name"] == "tickets-dlq");
    assert_eq!(dead.unwrap()["jobs"][0]["data"]["reason"], "really out of paper");

    board("PUT", "/api/queues/tickets/dies/retry").await;
    let again = played.run().await;
    assert_eq!(again.job.id, "dies");
    again.completes();
    board("PUT", "/api/queues/tickets/sleeps/promote").await;
    let promoted = played.run().await;
    assert_eq!(promoted.job.id, "sleeps");
    promoted.completes();
    eventually(SOON, || async {
        let counts = stage.queue.counts().await.unwrap();
        if counts.completed == 2 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    node.stop().await;
}

#[tokio::test]
async fn python_produces_and_we_consume_and_python_hears_of_it() {
    let stage = Stage::start().await;
    let mut python = Peer::python(&stage).await;
    python
        .ask(json!({"do": "listen", "queue": "tickets", "events": ["completed", "delayed", "failed"]}))
        .await;
    let options = json!({"attempts": 2, "backoff": {"type": "fixed", "delay": 20}, "jobId": "a"});
    let data = json!({"text": "Žofie 🎟", "half": 0.5, "list": [null, true, []], "big": 9_007_199_254_740_991_u64});
    let jobs = json!([{"name": "n", "data": data, "opts": options}]);
    assert_eq!(
        python.ask(json!({"do": "add", "queue": "tickets", "jobs": jobs})).await,
        json!(["a"])
    );

    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!((&run.job.data, run.job.attempts), (&data, 2));
    run.ends(Outcome::Retry("once".into()));
    let again = played.run().await;
    let context = again.context.clone().unwrap();
    context.progress(json!({"step": 2})).await.unwrap();
    context.log("half way").await.unwrap();
    again.ends(Outcome::Done(json!({"by": "rust"})));

    let mut seen = Vec::new();
    while !seen.iter().any(|event: &Value| event["event"] == "completed") {
        seen.push(python.report().await);
    }
    assert!(seen.iter().any(|event| event["event"] == "delayed"), "{seen:?}");
    assert_eq!(seen.last().unwrap()["returnvalue"], json!({"by": "rust"}));
    let read = python.ask(json!({"do": "job", "queue": "tickets", "id": "a"})).await;
    assert_eq!((&read["state"], &read["attemptsMade"]), (&json!("completed"), &json!(2)));
    assert_eq!((&read["failedReason"], &read["logs"]), (&json!("once"), &json!(["half way"])));

    let jobs = json!([{"name": "n", "data": {}, "opts": {"jobId": "bad"}}]);
    python.ask(json!({"do": "add", "queue": "tickets", "jobs": jobs})).await;
    played.run().await.ends(Outcome::Discard("no paper".into()));
    played.failure().await.settles(Ok(()));
    let heard = python.report().await;
    assert_eq!((&heard["event"], &heard["failedReason"]), (&json!("failed"), &json!("no paper")));
    python.stop().await;
}

#[tokio::test]
async fn we_produce_and_python_consumes_and_both_share_one_queue_and_one_flow() {
    let stage = Stage::start().await;
    let mut python = Peer::python(&stage).await;
    stage
        .enqueue(&[
            JobSpec { attempts: Some(1), name: "fail".into(), ..job("broken") },
            job("fine"),
        ])
        .await;
    python.ask(json!({"do": "work", "queue": "tickets"})).await;
    let reports = [python.report().await, python.report().await];
    assert!(reports.contains(&json!({"failed": "broken"})), "{reports:?}");
    assert!(reports.contains(&json!({"completed": "fine", "data": {"ticketId": "fine"}})));
    stage.until("one of each", |counts| counts.completed == 1 && counts.failed == 1).await;

    // Both at once: every job is done by exactly one of them.
    let (ours, theirs) = share_jobs(&stage, config("ours"), &mut python, 200).await;
    assert!(ours > 0 && theirs > 0, "{ours} and {theirs}");

    // Our parent waits for Python's child.
    let ours = stage.broker.queue("ours").await.unwrap();
    let mut played = play(&ours, config("w"));
    let flow = Flow::new("ours", job("our-parent")).after(Flow::new("tickets", job("their-child")));
    stage.broker.add_flow(&flow).await.unwrap();
    let parent = played.run().await;
    let values = parent.context.as_ref().unwrap().children_values().await.unwrap();
    assert_eq!(values["bull:tickets:their-child"]["by"], "python");
    parent.completes();

    // And Python's parent for our child.
    let flow = json!({
        "name": "parent", "queueName": "tickets", "data": {}, "opts": {"jobId": "their-parent"},
        "children": [{"name": "child", "queueName": "ours", "data": {"n": 1}, "opts": {"jobId": "our-child"}}],
    });
    python.ask(json!({"do": "flow", "flow": flow})).await;
    let child = played.run().await;
    assert_eq!(child.job.id, "our-child");
    child.ends(Outcome::Done(json!("from rust")));
    while python.report().await["completed"] != "their-parent" {}
    let parent = python.ask(json!({"do": "job", "queue": "tickets", "id": "their-parent"})).await;
    assert!(parent["returnvalue"].to_string().contains("from rust"), "{parent}");
    python.stop().await;
}
