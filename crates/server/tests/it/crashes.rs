//! Anything may be killed at any moment; no ticket is lost or made twice.

use std::time::Duration;

use serde_json::json;
use stampede_testkit::{Redis, eventually, kill};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{PATIENCE, assert_all_ready, batch_ended, create_event, start, text};

/// Waits until some, but not all, tickets are made.
async fn in_the_middle(app: &stampede_testkit::App, batch_id: &str) {
    eventually(PATIENCE, || async {
        let batch = app.admin().get(&format!("/api/batches/{batch_id}")).await.body;
        match batch["completed"].as_u64() {
            Some(n) if n >= 20 => Ok(()),
            _ => Err(batch.to_string()),
        }
    })
    .await;
    let batch = app.admin().get(&format!("/api/batches/{batch_id}")).await.body;
    assert_eq!(batch["status"], "processing", "too late to be in the middle: {batch}");
}

#[tokio::test]
async fn a_killed_worker_loses_no_ticket() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 500, "name": "Crowd" })).await;
    let batch_id = text(&order["batchId"]);
    in_the_middle(&app, &batch_id).await;
    let workers = app.workers();
    assert_eq!(workers.len(), 2);
    kill(workers[0]);
    assert_all_ready(&app, &batch_id, 500).await;
    // Each job has ended exactly once, and none is left over.
    eventually(Duration::from_secs(10), || async {
        let stats = app.admin().get(&format!("/api/batches/{batch_id}")).await.body["queueStats"].take();
        let wanted = json!({
            "waiting": 0, "prioritized": 0, "active": 0, "delayed": 0, "completed": 500, "failed": 0,
            "waiting-children": 0,
        });
        if stats == wanted { Ok(()) } else { Err(stats.to_string()) }
    })
    .await;
    eventually(Duration::from_secs(10), || async { (app.workers().len() == 2).then_some(()) })
        .await;
    assert!(!app.workers().contains(&workers[0]), "another process took its place");
    let (healthy, report) = app.command(&["doctor"]);
    assert!(healthy, "{report}");
}

#[tokio::test]
async fn a_server_killed_between_commit_and_enqueue_makes_the_tickets_after_its_restart() {
    let mut app = start(&[("STAMPEDE_HANG_AT", "order-committed")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "quantity": 25, "name": "Crowd" });
    let client = app.admin();
    let request = tokio::spawn(async move {
        client.request(reqwest::Method::POST, "/api/tickets").json(&order).send().await
    });
    let batch_id = eventually(PATIENCE, || async {
        let page = app.admin().get("/api/tickets").await.body;
        page["tickets"].get(0).map(|ticket| text(&ticket["batchId"]))
    })
    .await;
    let batch = app.admin().get(&format!("/api/batches/{batch_id}")).await.expect(200);
    assert_eq!(batch["queueStats"]["prioritized"], 0, "nothing was enqueued: {batch}");
    app.kill();
    request.abort();

    app.start_again(&[("STAMPEDE_HANG_AT", "")]).await;
    assert_all_ready(&app, &batch_id, 25).await;
}

#[tokio::test]
async fn a_server_killed_in_the_middle_of_an_order_finishes_it_after_its_restart() {
    let mut app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 500, "name": "Crowd" })).await;
    let batch_id = text(&order["batchId"]);
    in_the_middle(&app, &batch_id).await;
    let workers = app.workers();
    app.kill();
    // Its workers notice and end by themselves.
    let alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    eventually(Duration::from_secs(20), || async { (!workers.iter().any(alive)).then_some(()) })
        .await;
    app.start_again(&[]).await;
    assert_all_ready(&app, &batch_id, 500).await;
}

#[tokio::test]
async fn a_redis_restarted_in_the_middle_of_an_order_loses_nothing() {
    let mut redis = Redis::start().await;
    let url = redis.url();
    let app = start(&[("REDIS_URL", &url)]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 500, "name": "Crowd" })).await;
    let batch_id = text(&order["batchId"]);
    in_the_middle(&app, &batch_id).await;
    redis.restart().await;
    assert_all_ready(&app, &batch_id, 500).await;
}

/// Everything dies again and again, under every policy of the journal, with orders coming in all the while.
#[tokio::test]
async fn after_kills_of_everything_all_acknowledged_orders_are_finished() {
    let mut app = start(&[]).await;
    let event = create_event(&app).await;
    let mut acknowledged = Vec::new();
    for policy in ["everysec", "always", "never"] {
        app.stop().await;
        app.start_again(&[("ENGINE_FSYNC", policy)]).await;
        let order = app.order(json!({ "target": event, "quantity": 200, "name": "Crowd" })).await;
        let batch_id = text(&order["batchId"]);
        in_the_middle(&app, &batch_id).await;
        let late = app.order(json!({ "target": event, "quantity": 50, "name": "Late" })).await;
        app.kill_everything();
        acknowledged.extend([(batch_id, 200), (text(&late["batchId"]), 50)]);
        app.start_again(&[]).await;
    }
    for (batch_id, total) in &acknowledged {
        assert_all_ready(&app, batch_id, *total).await;
    }
    let log = app.log();
    assert!(log.contains("the engine's journal: "), "{log}");
}

/// What was on the queue comes back from the journal, not only from the database.
#[tokio::test]
async fn a_killed_engine_comes_back_with_its_queue() {
    let mut app = start(&[("WORKER_MODE", "api"), ("ENGINE_FSYNC", "always")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 120, "name": "Crowd" })).await;
    let batch_id = text(&order["batchId"]);
    // A large order may be answered before all of it is on the queue.
    eventually(PATIENCE, || async {
        let batch = app.admin().get(&format!("/api/batches/{batch_id}")).await.body;
        let stats = &batch["queueStats"];
        let queued = stats["waiting"].as_u64().zip(stats["prioritized"].as_u64());
        if queued.is_some_and(|(a, b)| a + b == 120) { Ok(()) } else { Err(batch.to_string()) }
    })
    .await;
    app.kill_everything();
    // The reconciler fills a queue that came back empty, so look before it is there: in the journal.
    let (well, report) = app.command(&["engine", "check"]);
    assert!(well && report.contains("It is whole"), "{report}");
    let redis = Redis::start().await;
    let (well, report) = app.command(&["engine", "export", "--to", &redis.url()]);
    assert!(well, "{report}");
    assert!(report.contains("both sides were compared and are the same"), "{report}");
    let hashes = report.split(", ").find_map(|part| part.strip_suffix(" hashes"));
    let hashes: u32 = hashes.and_then(|n| n.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
    assert!(hashes >= 120, "{report}");
    app.start_again(&[("WORKER_MODE", "both")]).await;
    assert_all_ready(&app, &batch_id, 120).await;
}

#[tokio::test]
async fn a_server_waits_for_a_redis_that_loads_its_data() {
    let mut redis = Redis::with_config(&[
        ("appendonly", "no"),
        ("save", "3600 1"),
        // So slow that the server cannot miss it; the test lets it hurry once it was seen.
        ("key-load-delay", "50000"),
        ("loading-process-events-interval-bytes", "1024"),
    ])
    .await;
    let url = redis.url();
    let mut app = start(&[("REDIS_URL", &url), ("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 400, "name": "Crowd" })).await;
    app.stop().await;
    redis.stop().await;
    let address = ("127.0.0.1", redis.port());
    let log = app.log_file();
    let started = async {
        eventually(PATIENCE, || tokio::net::TcpStream::connect(address)).await;
        app.start_again(&[("WORKER_MODE", "both")]).await;
    };
    let hurried = async {
        eventually(PATIENCE, || async {
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            if log.contains("is still loading its data") { Ok(()) } else { Err(log) }
        })
        .await;
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(b"CONFIG SET key-load-delay 0\r\nQUIT\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("+OK"), "{answer}");
    };
    tokio::join!(redis.start_again(), started, hurried);
    assert_all_ready(&app, &text(&order["batchId"]), 400).await;
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_is_filled_again() {
    let mut redis = Redis::with_config(&[("appendonly", "no")]).await;
    let url = redis.url();
    let mut app = start(&[("REDIS_URL", &url), ("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 30, "name": "Crowd" })).await;
    redis.kill();
    redis.start_again().await;
    app.stop().await;
    app.start_again(&[("WORKER_MODE", "both")]).await;
    assert_all_ready(&app, &text(&order["batchId"]), 30).await;
}

#[tokio::test]
async fn a_server_told_to_stop_drains_and_loses_nothing() {
    let mut app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 300, "name": "Crowd" })).await;
    let batch_id = text(&order["batchId"]);
    in_the_middle(&app, &batch_id).await;
    app.stop().await;
    assert!(app.log().contains("stopped"), "{}", app.log());
    app.start_again(&[]).await;
    let batch = batch_ended(&app, &batch_id).await;
    assert_eq!((&batch["completed"], &batch["failed"]), (&json!(300), &json!(0)));
}
