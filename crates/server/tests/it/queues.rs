//! Looking into queues and tidying them up, over HTTP and with `stampede queues`.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{App, Redis, eventually, send, temp_dir};

use crate::{PATIENCE, STAMPEDE, batch_ended, create_event, start, text};

const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

/// A server that only takes orders, so that jobs stay where they are.
async fn without_workers() -> (App, Value) {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann", "seat": "VIP" }, { "name": "Bob" }, { "name": "Eve" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let status = async || app.admin().get("/api/queues/status").await.expect(200);
    eventually(PATIENCE, || async {
        let status = status().await;
        if status["tickets"]["prioritized"] == 3 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    (app, order)
}

#[tokio::test]
async fn jobs_are_found_removed_paused_and_drained() {
    let (app, order) = without_workers().await;
    let admin = app.admin();
    let status = admin.get("/api/queues/status").await.expect(200);
    assert_eq!(status["tickets"]["activeJobs"], json!([]));
    assert_eq!(status["tickets"]["paused"], false);

    let path = "/api/queues/tickets/jobs?state=prioritized";
    let jobs = admin.get(path).await.expect(200);
    assert_eq!(jobs["jobs"][0]["id"], order["tickets"][0], "VIPs come first");
    let second = text(&order["tickets"][1]);
    let found = admin.get(&format!("{path}&search={second}")).await.expect(200);
    assert_eq!((&found["jobs"][0]["id"], &found["jobs"][1]), (&order["tickets"][1], &Value::Null));
    assert_eq!(found["next"], Value::Null, "everything was looked at");
    let job = admin.get(&format!("/api/queues/tickets/jobs/{second}")).await.expect(200);
    assert_eq!((&job["state"], &job["name"]), (&json!("prioritized"), &json!("generate-pdf")));

    // Nobody should have to know that jobs with a priority are kept apart.
    for path in ["/api/queues/tickets/jobs", "/api/queues/tickets/jobs?state=waiting&count=2"] {
        let jobs = admin.get(path).await.expect(200);
        assert_eq!(jobs["jobs"][0]["id"], order["tickets"][0], "{jobs}");
        assert_eq!(jobs["jobs"][1]["state"], "prioritized", "{jobs}");
    }
    let (worked, told) = app.command(&["queues", "jobs", "tickets"]);
    assert!(worked && told.contains(&second) && told.contains("prioritized"), "{told}");

    let job = format!("/api/queues/tickets/jobs/{second}");
    let told = admin.delete(&job).await.expect(200);
    assert!(text(&told["note"]).contains(&format!("PATCH /api/tickets/{second}")), "{told}");
    admin.delete(&job).await.expect(404);
    for verb in ["retry", "promote", "cancel"] {
        admin.post(&format!("{job}/{verb}"), &json!({})).await.expect(404);
    }
    let first = format!("/api/queues/tickets/jobs/{}", text(&order["tickets"][0]));
    let refused = admin.post(&format!("{first}/retry"), &json!({})).await.expect(409);
    assert!(text(&refused["error"]).contains("this one is prioritized"), "{refused}");
    let cancelled = admin.post(&format!("{first}/cancel"), &json!({})).await.expect(200);
    assert_eq!(cancelled["state"], "removed");
    assert!(text(&cancelled["note"]).contains("still ordered"), "{cancelled}");

    // What is not ordered any more does not come back, and nothing is said of it.
    let third = text(&order["tickets"][2]);
    let void = json!({ "status": "void" });
    admin.patch(&format!("/api/tickets/{third}"), &void).await.expect(200);
    let (worked, told) = app.command(&["queues", "cancel", "tickets", &third]);
    assert!(!worked && told.contains("Job not found"), "{told}");

    admin.post("/api/queues/tickets/pause", &json!({})).await.expect(200);
    let (worked, told) = app.command(&["queues", "status"]);
    assert!(worked && told.contains("tickets") && told.contains("paused"), "{told}");
    admin.post("/api/queues/tickets/resume", &json!({})).await.expect(200);
    let drained = admin.post("/api/queues/tickets/drain", &json!({})).await.expect(200);
    assert!(text(&drained["note"]).contains("get new jobs"), "{drained}");
    let status = admin.get("/api/queues/status").await.expect(200);
    assert_eq!(
        (&status["tickets"]["prioritized"], &status["tickets"]["paused"]),
        (&json!(0), &json!(false))
    );

    let refused = admin.post("/api/queues/tickets/obliterate", &json!({})).await.expect(422);
    assert!(text(&refused["error"]).contains("\"confirm\": \"tickets\""), "{refused}");
    let (worked, told) = app.command(&["queues", "obliterate", "tickets", "--confirm", "tickets"]);
    assert!(worked, "{told}");
}

/// A queue of mails on a Redis of its own, and nobody who works.
struct Mails {
    redis: Redis,
    app: App,
}

impl Mails {
    async fn start() -> Self {
        let redis = Redis::start().await;
        let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
        Self { redis, app }
    }

    /// Runs `stampede queues …`; what it printed.
    fn run(&self, words: &[&str]) -> String {
        let (worked, told) = self.app.command(&[&["queues"], words].concat());
        assert!(worked, "{words:?}: {told}");
        told
    }

    /// The same with `--json`.
    fn json(&self, words: &[&str]) -> Value {
        let told = self.run(&[words, &["--json"]].concat());
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{words:?}: {error}: {told}"))
    }

    fn add(&self, ids: &[&str]) {
        for id in ids {
            self.run(&["add", "mails", "welcome", "--id", id, "--data", r#"{"to": "ann"}"#]);
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.app.admin().post(&format!("/api/queues/mails/{path}"), &body).await.expect(200)
    }

    async fn state(&self, id: &str) -> Value {
        let job = self.app.admin().get(&format!("/api/queues/mails/jobs/{id}")).await;
        if job.status == 404 { Value::Null } else { job.expect(200)["state"].clone() }
    }

    /// Makes a job that waits look as Node's worker leaves one that has failed for good.
    fn fail(&self, ids: &[&str]) {
        for id in ids {
            self.redis.cli(&["LREM", "bull:mails:wait", "0", id]);
            let fields = ["failedReason", "no", "finishedOn", "1", "atm", "1"];
            self.redis.cli(&[&["HSET", &format!("bull:mails:{id}")][..], &fields].concat());
            self.redis.cli(&["ZADD", "bull:mails:failed", "1", id]);
        }
    }
}

#[tokio::test]
async fn single_jobs_are_promoted_retried_cancelled_and_removed() {
    let mails = Mails::start().await;
    let told = mails.run(&["add", "mails", "welcome", "--id", "a", "--data", r#"{"to": "ann"}"#]);
    assert!(told.contains("queue mails is new"), "{told}");
    mails.add(&["b", "c", "d", "e"]);
    let page = mails.json(&["jobs", "mails", "--count", "5"]);
    assert_eq!(page["next"], Value::Null, "there are five: {page}");
    assert_eq!(mails.json(&["jobs", "mails", "--count", "4"])["next"], 4);
    let (worked, told) = mails.app.command(&["queues", "jobs", "mals"]);
    assert!(!worked && told.contains("Queue not found: mals; did you mean mails?"), "{told}");
    let jobs = mails.json(&["jobs", "mails"]);
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(5), "{jobs}");
    let shown = mails.run(&["job", "mails", "a"]);
    assert!(shown.contains("\"state\": \"waiting\"") && shown.contains("ann"), "{shown}");
    assert_eq!(mails.json(&["job", "mails", "a"])["progress"], 0, "as BullMQ has it");

    assert!(mails.run(&["remove", "mails", "a"]).contains("removed"));
    assert!(mails.run(&["cancel", "mails", "b"]).contains("removed"));
    assert_eq!((mails.state("a").await, mails.state("b").await), (Value::Null, Value::Null));

    for id in ["later-1", "later-2"] {
        mails.run(&["add", "mails", "welcome", "--id", id, "--delay", "1h"]);
    }
    assert!(mails.run(&["promote", "mails", "later-1"]).contains("waits"));
    mails.post("jobs/later-2/promote", json!({})).await;
    assert_eq!(
        (mails.state("later-1").await, mails.state("later-2").await),
        (json!("waiting"), json!("waiting"))
    );
    let (worked, told) = mails.app.command(&["queues", "promote", "mails", "later-1"]);
    assert!(!worked && told.contains("only a delayed job can be promoted"), "{told}");

    mails.fail(&["c", "d"]);
    assert!(mails.run(&["retry", "mails", "c"]).contains("waits"));
    mails.post("jobs/d/retry", json!({})).await;
    assert_eq!(
        (mails.state("c").await, mails.state("d").await),
        (json!("waiting"), json!("waiting"))
    );
    mails.fail(&["c", "d"]);
    let retried = mails.post("retry", json!({})).await;
    assert_eq!(retried, json!({ "success": true, "count": 2, "failed": [], "left": 0 }));
    mails.fail(&["e"]);
    assert!(mails.run(&["retry", "mails", "--all"]).contains("1 run again"));

    // Whoever looks for a job need not know how far it is.
    mails.fail(&["e"]);
    let found = mails.json(&["jobs", "mails", "--search", "welcome"]);
    let states = found["jobs"].as_array().unwrap().iter().map(|job| job["state"].clone());
    assert_eq!(states.filter(|state| *state == "failed").count(), 1, "{found}");
    assert_eq!(found["jobs"].as_array().map(Vec::len), Some(5), "{found}");
    assert!(mails.run(&["jobs", "mails", "--search", "ann", "--state", "failed"]).contains('e'));
    let (worked, told) = mails.app.command(&["queues", "jobs", "mails", "--state", "lost"]);
    assert!(!worked && told.contains("failed, all"), "{told}");

    let (worked, told) = mails.app.command(&["queues", "add", "mails", "x", "--data", "{oops"]);
    assert!(
        !worked && told.contains("not JSON: key must be a string at line 1 column 2"),
        "{told}"
    );
    let no_json = mails.app.admin().request(Method::POST, "/api/queues/mails/jobs").body("{oops");
    let refused = send(no_json.header("content-type", "application/json")).await.expect(400);
    assert!(text(&refused["error"]).contains("JSON"), "{refused}");
}

#[tokio::test]
async fn whole_queues_are_paused_cleaned_drained_and_destroyed() {
    let mails = Mails::start().await;
    let admin = mails.app.admin();
    mails.add(&["a", "b", "c", "d", "e"]);
    for (verb, paused) in [("pause", true), ("resume", false)] {
        mails.run(&[verb, "mails"]);
        assert_eq!(mails.json(&["status"])["mails"]["paused"], paused);
    }

    // Seed 003 sends no body: the failed jobs of all queues.
    mails.fail(&["a", "b"]);
    let cleaned = send(admin.request(Method::POST, "/api/queues/clean")).await.expect(200);
    assert_eq!((&cleaned["success"], &cleaned["removed"]["mails"]), (&json!(true), &json!(2)));
    mails.fail(&["c", "d", "e"]);
    let clean = json!({ "queue": "mails", "state": "failed", "limit": 1 });
    assert_eq!(admin.post("/api/queues/clean", &clean).await.expect(200)["removed"]["mails"], 1);
    let young = json!({ "queue": "mails", "state": "failed", "graceMs": 4_000_000_000_000_u64 });
    assert_eq!(admin.post("/api/queues/clean", &young).await.expect(200)["removed"]["mails"], 0);
    assert!(mails.run(&["clean", "mails"]).contains("mails: 2 removed"));

    mails.add(&["f", "g", "h"]);
    mails.run(&["add", "mails", "welcome", "--id", "later", "--delay", "1h"]);
    assert_eq!(mails.post("drain", json!({})).await["removed"], 3);
    assert_eq!(mails.state("later").await, "delayed");
    mails.add(&["i"]);
    assert_eq!(mails.json(&["drain", "mails", "--delayed"])["removed"], 2);
    mails.add(&["j"]);
    let clean = ["clean", "mails", "--state", "waiting", "--grace", "0s"];
    assert_eq!(mails.json(&clean)["removed"]["mails"], 1);

    mails.add(&["k"]);
    mails.redis.cli(&["LMOVE", "bull:mails:wait", "bull:mails:active", "LEFT", "LEFT"]);
    let obliterate = ["obliterate", "mails", "--confirm", "mails"];
    let (worked, told) = mails.app.command(&[&["queues"], &obliterate[..]].concat());
    assert!(!worked && told.contains("force"), "{told}");
    mails.run(&[&obliterate[..], &["--force"]].concat());
    assert_eq!(mails.redis.cli(&["KEYS", "bull:mails:*"]), "");

    // As a worker leaves it that has met a service which is down.
    mails.redis.cli(&["SADD", "stampede:breakers", "smtp"]);
    let state = ["state", "open", "until", "9999999999999"];
    mails.redis.cli(&[&["HSET", "stampede:breaker:{smtp}"][..], &state].concat());
    assert_eq!(mails.json(&["breakers"])["breakers"][0]["state"], "open");
    mails.run(&["close-breaker", "smtp"]);
    assert_eq!(mails.json(&["breakers"])["breakers"], json!([]));
}

#[tokio::test]
async fn a_job_that_runs_is_shown_and_stopped() {
    let app = start(&[("STAMPEDE_SLOW_TICKETS", "60000"), ("WORKER_COUNT", "1")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    let ticket = text(&order["tickets"][0]);
    let active = eventually(PATIENCE, || async {
        let status = app.admin().get("/api/queues/status").await.expect(200);
        let active = &status["tickets"]["activeJobs"];
        if active[0].is_object() { Ok(active.clone()) } else { Err(status.to_string()) }
    })
    .await;
    let shown = &active[0];
    assert_eq!((&shown["id"], &shown["name"]), (&json!(ticket), &json!("generate-pdf")), "{shown}");
    assert_eq!(shown["data"]["ticketId"], json!(ticket));
    assert_eq!((&shown["progress"], &shown["attemptsMade"]), (&json!(0), &json!(0)), "{shown}");
    assert!(shown["processedBy"].is_string(), "{shown}");
    let (worked, told) = app.command(&["queues", "cancel", "tickets", &ticket]);
    assert!(worked && told.contains("told to stop"), "{told}");
    let batch = batch_ended(&app, &text(&order["batchId"])).await;
    assert_eq!(batch["failed"], 1, "{batch}");
    let job = app.admin().get(&format!("/api/queues/tickets/jobs/{ticket}")).await.expect(200);
    assert!(text(&job["failedReason"]).starts_with("cancelled: by "), "{job}");
}

#[tokio::test]
async fn payloads_are_as_large_as_the_setting_allows() {
    let app = start(&[("WORKER_MODE", "api"), ("MAX_JOB_BYTES", "2000")]).await;
    let job = |bytes: usize| json!({ "name": "x", "data": "x".repeat(bytes) });
    app.admin().post("/api/queues/mails/jobs", &job(1998)).await.expect(200);
    let refused = app.admin().post("/api/queues/mails/jobs", &job(1999)).await.expect(422);
    assert!(text(&refused["error"]).contains("2000 is the most"), "{refused}");
}

#[tokio::test]
async fn queues_are_for_administrators_and_must_exist() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let (worked, key) = app.command(&["token", "create", "--role", "organiser"]);
    assert!(worked, "{key}");
    let organiser = app.client(
        key.lines().find(|line| line.contains("sk_") || !line.contains(' ')).unwrap().trim(),
    );
    organiser.get("/api/queues/status").await.expect(403);
    app.stranger().get("/api/queues/status").await.expect(401);
    app.admin().get("/api/queues/nobody/jobs").await.expect(404);
    app.admin().post("/api/queues/nobody/pause", &json!({})).await.expect(404);
    let odd = app.admin().get("/api/queues/a%3Ab/jobs").await.expect(422);
    assert!(text(&odd["error"]).contains("cannot be a queue name"), "{odd}");
    let state =
        app.admin().post("/api/queues/clean", &json!({ "state": "active" })).await.expect(422);
    assert!(text(&state["error"]).contains("failed, completed"), "{state}");
    // A queue is there once somebody has ordered.
    app.order(json!({ "target": event, "name": "Ann" })).await;
    for (path, body, field) in [
        ("/api/queues/clean", json!({ "quue": "tickets" }), "quue"),
        ("/api/queues/tickets/drain", json!({ "delayd": true }), "delayd"),
        ("/api/queues/tickets/drain", json!({ "delayed": "yes" }), "delayed"),
        ("/api/queues/tickets/pause", json!({ "for": 60 }), "for"),
        ("/api/queues/tickets/dead-letters/purge", json!({ "ids": [1], "all": true }), "ids"),
    ] {
        let refused = app.admin().post(path, &body).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
}

#[tokio::test]
async fn a_redis_that_takes_nothing_is_seen_by_whoever_asks() {
    let redis = Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let job = json!({ "name": "x" });
    app.admin().post("/api/queues/mails/jobs", &job).await.expect(200);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    app.admin().post("/api/queues/mails/jobs", &job).await.expect(503);
    let ready = |wanted: u16| {
        let app = &app;
        eventually(PATIENCE, move || async move {
            let answer = app.stranger().get("/ready").await;
            if answer.status == wanted { Ok(answer.body) } else { Err(answer.body.to_string()) }
        })
    };
    let told = ready(503).await;
    assert!(text(&told["redisReason"]).contains("OOM"), "{told}");
    let (worked, told) = app.command(&["queues", "status"]);
    assert!(!worked && told.contains("is not ready") && told.contains("OOM"), "{told}");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(ready(200).await["redisReason"], json!(null));
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_command_quietly() {
    let folder = temp_dir();
    // The reader is gone long before there is anything to read.
    let piped = std::process::Command::new("sh")
        .args(["-c", "(sleep 0.2; \"$0\" doctor) | true", STAMPEDE])
        .env("DATA_DIR", folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&piped.stderr);
    assert!(!told.contains("panicked"), "{told}");
}

#[tokio::test]
async fn jobs_are_added_scheduled_and_held_back_by_whoever_operates() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let run = |words: &[&str]| -> String {
        let (worked, told) = app.command(&[&["queues"], words].concat());
        assert!(worked, "{words:?}: {told}");
        told
    };
    let told = run(&["add", "mails", "welcome", "--id", "w-1", "--delay", "1h", "--data", "[7]"]);
    assert!(told.contains("added as w-1"), "{told}");
    let job = admin.get("/api/queues/mails/jobs/w-1").await.expect(200);
    let (state, data, delay) = (&job["state"], &job["data"], &job["opts"]["delay"]);
    assert_eq!((state, data, delay), (&json!("delayed"), &json!([7]), &json!(3_600_000)));
    let again = json!({ "name": "welcome", "id": "w-1", "attempts": 3,
                        "backoff": { "type": "exponential", "delayMs": 500 } });
    let again = admin.post("/api/queues/mails/jobs", &again).await.expect(200);
    assert_eq!((&again["id"], &again["added"]), (&json!("w-1"), &json!(false)), "once is enough");
    assert!(run(&["add", "mails", "welcome", "--id", "w-1"]).contains("is there already"));
    assert!(run(&["jobs", "mails", "--search", "nowhere"]).contains("none of them"));

    run(&["concurrency", "mails", "3"]);
    assert!(run(&["status"]).contains("at most 3 at a time"));
    run(&["concurrency", "mails", "off"]);
    assert_eq!(
        admin.get("/api/queues/status").await.expect(200)["mails"]["concurrency"],
        json!(null)
    );

    assert!(run(&["limits"]).contains("no limit was set"));
    run(&["limit", "queue:mails", "--max", "20", "--per", "1m"]);
    assert!(run(&["status"]).contains("at most 20 in any 60s"));
    let limits = admin.get("/api/limits").await.expect(200);
    assert_eq!(limits["limits"], json!([{ "name": "queue:mails", "max": 20, "perMs": 60_000 }]));
    assert!(run(&["limits"]).contains("queue:mails"));
    run(&["unlimit", "queue:mails"]);
    admin.delete("/api/limits/queue:mails").await.expect(404);
    assert!(run(&["breakers"]).contains("all services are well"));
    admin.delete("/api/breakers/smtp").await.expect(404);

    let nightly = ["schedule", "mails", "nightly", "--name", "digest"];
    run(&[&nightly[..], &["--cron", "30 2 * * *", "--time-zone", "Europe/Berlin"]].concat());
    let told = run(&["schedules", "mails"]);
    assert!(told.contains("30 2 * * * Europe/Berlin") && told.contains("digest"), "{told}");
    run(&[&nightly[..], &["--every", "90m"]].concat());
    assert!(run(&["schedules", "mails"]).contains("every 5400s"));
    let (worked, told) =
        app.command(&[&["queues"], &nightly[..], &["--cron", "0 25 * * *"]].concat());
    assert!(!worked && told.contains("\"25\" in field 2 (hour)"), "{told}");
    run(&["unschedule", "mails", "nightly"]);
    admin.delete("/api/queues/mails/schedules/nightly").await.expect(404);
    assert!(run(&["schedules", "mails"]).contains("no schedules"));

    let too_long = json!({ "name": "x", "data": "x".repeat(300_000) });
    for (path, body, told) in [
        ("mails/jobs", json!({}), "name is missing"),
        ("mails/jobs", json!({ "name": "x", "id": "a b" }), "cannot be a job id"),
        ("mails/jobs", json!({ "name": "x", "id": "wait" }), "a part of every queue"),
        ("mails/jobs", json!({ "name": "x\ny" }), "cannot be a job name"),
        ("mails/jobs", json!({ "name": "x", "priority": 3_000_000 }), "priority"),
        ("mails/jobs", json!({ "name": "x", "attempts": 0 }), "attempts must be at least 1"),
        ("mails/jobs", json!({ "name": "x", "backoff": { "type": "fixed" } }), "backoff.delayMs"),
        (
            "mails/jobs",
            json!({ "name": "x", "backoff": { "type": "mine", "delayMs": 5 } }),
            "delayMs",
        ),
        ("mails/jobs", too_long, "262144 is the most"),
        ("a:b/jobs", json!({ "name": "x" }), "cannot be a queue name"),
        ("mails/concurrency", json!({}), "jobs is missing"),
        ("mails/concurrency", json!({ "jobs": 0 }), "jobs must be"),
    ] {
        let refused = admin.post(&format!("/api/queues/{path}"), &body).await.expect(422);
        assert!(text(&refused["error"]).contains(told), "{path}: {refused}");
    }
    for (path, body, told) in [
        ("limits/%7Ba%7D", json!({ "max": 1, "perMs": 1 }), "cannot be a limit"),
        ("limits/a", json!({ "max": -1, "perMs": 0 }), "perMs must be"),
        ("queues/mails/schedules/s", json!({ "name": "x" }), "everyMs"),
        (
            "queues/mails/schedules/s",
            json!({ "name": "x", "everyMs": 0 }),
            "a millisecond at least",
        ),
    ] {
        let refused = admin.put(&format!("/api/{path}"), &body).await.expect(422);
        assert!(text(&refused["error"]).contains(told), "{path}: {refused}");
    }
    for path in ["/api/limits", "/api/breakers", "/api/queues/mails/schedules"] {
        app.stranger().get(path).await.expect(401);
    }
}

#[tokio::test]
async fn dead_letters_are_shown_replayed_and_thrown_away() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, TEMPLATE).unwrap();
    let app = start(&[("TICKET_TEMPLATE", &template.display().to_string())]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann", "seat": "A-1" }, { "name": "Bob", "seat": "BROKEN" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let broken = text(&order["tickets"][1]);

    let letters = app.admin().get("/api/queues/tickets/dead-letters").await.expect(200);
    assert_eq!((&letters["total"], &letters["letters"][0]["jobId"]), (&json!(1), &json!(broken)));
    let letter = &letters["letters"][0];
    assert!(text(&letter["reason"]).contains("no such seat"), "{letter}");
    assert_eq!(letter["payload"]["ticketId"], json!(broken));
    assert_eq!((&letter["attemptsMade"], &letter["stacktrace"][2].is_null()), (&json!(3), &false));
    let (worked, told) = app.command(&["queues", "dead-letters", "tickets"]);
    assert!(worked && told.contains("no such seat") && told.contains("1 in all"), "{told}");

    for (search, found) in [("no+such+seat", 1), ("nowhere", 0)] {
        let path = format!("/api/queues/tickets/dead-letters?search={search}");
        let letters = app.admin().get(&path).await.expect(200);
        assert_eq!(letters["letters"].as_array().map(Vec::len), Some(found), "{letters}");
    }
    let (worked, told) = app.command(&["queues", "dead-letters", "tickets", "--search", &broken]);
    assert!(worked && told.contains("no such seat"), "{told}");

    let (worked, told) = app.command(&["queues", "replay", "tickets", &broken]);
    assert!(worked && told.contains("1 run again"), "{told}");
    // It is still broken, and dies again after all its attempts.
    eventually(PATIENCE, || async {
        let letters = app.admin().get("/api/queues/tickets/dead-letters").await.expect(200);
        if letters["total"] == 1 { Ok(()) } else { Err(letters.to_string()) }
    })
    .await;
    let (worked, told) = app.command(&["queues", "purge", "tickets", "--all", "--json"]);
    assert!(worked && told.contains("\"count\":1"), "{told}");
    let cleaned = app.admin().post("/api/queues/clean", &json!({})).await.expect(200);
    assert_eq!(cleaned["removed"]["tickets"], 1);

    // All of them, and with another payload: that of the ticket which can be made.
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let (fine, broken) = (&order["tickets"][0], &order["tickets"][1]);
    let payload = json!({ "v": 1, "ticketId": fine, "batchId": order["batchId"] }).to_string();
    let (worked, told) = app.command(&["queues", "replay", "tickets", "--all", "--data", &payload]);
    assert!(worked && told.contains("1 run again"), "{told}");
    let job = eventually(PATIENCE, || async {
        let path = format!("/api/queues/tickets/jobs/{}", text(broken));
        let job = app.admin().get(&path).await.expect(200);
        if job["state"] == "completed" { Ok(job) } else { Err(job.to_string()) }
    })
    .await;
    assert_eq!(job["data"]["ticketId"], *fine);
}

#[tokio::test]
async fn long_work_on_a_queue_is_done_in_portions() {
    const JOBS: usize = 12_000;
    let mails = Mails::start().await;
    let add = |to: &str| {
        let script = format!(
            "for n = 1, {JOBS} do local id = '{to}' .. n \
             redis.call('HSET', 'bull:mails:' .. id, 'name', 'send', 'data', '{{}}', 'opts', '{{}}', \
             'timestamp', 1, 'delay', 0, 'priority', 0) \
             redis.call('RPUSH', 'bull:mails:wait', id) end"
        );
        mails.redis.cli(&["EVAL", &script, "0"]);
    };
    mails.add(&["first"]);
    let admin = mails.app.admin();
    add("a");
    let clean = json!({ "state": "waiting" });
    let cleaned = admin.post("/api/queues/clean", &clean).await.expect(200);
    assert_eq!(
        (&cleaned["removed"]["mails"], &cleaned["left"]["mails"]),
        (&json!(10_000), &json!(2_001))
    );
    let cleaned = admin.post("/api/queues/clean", &clean).await.expect(200);
    assert_eq!((&cleaned["removed"]["mails"], &cleaned["left"]), (&json!(2_001), &Value::Null));

    add("b");
    let drained = mails.post("drain", json!({})).await;
    assert_eq!((&drained["removed"], &drained["left"]), (&json!(10_000), &json!(2_000)));
    add("c");
    assert_eq!(mails.json(&["drain", "mails"])["removed"], JOBS + 2_000, "the command goes on");
    add("d");
    let words = ["clean", "mails", "--state", "waiting", "--grace", "0s", "--limit", "11000"];
    assert_eq!(mails.json(&words)["removed"]["mails"], 11_000);

    add("e");
    let confirm = json!({ "confirm": "mails" });
    let destroyed = mails.post("obliterate", confirm.clone()).await;
    assert_eq!((&destroyed["success"], &destroyed["left"]), (&json!(true), &json!(3_000)));
    assert_eq!(mails.json(&["status"])["mails"]["paused"], true, "until it is destroyed");
    assert_eq!(mails.post("obliterate", confirm).await["left"], 0);
    assert_eq!(mails.redis.cli(&["KEYS", "bull:mails:*"]), "");
}
