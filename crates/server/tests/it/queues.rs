//! Looking into queues and tidying them up, over HTTP and with `stampede queues`.

use serde_json::{Value, json};
use stampede_testkit::{App, Redis, eventually, temp_dir};

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
}
