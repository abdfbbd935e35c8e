//! A full or failing disk, with the real binary: tickets wait and use up no attempt; work goes on when there is room.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{App, Faults, Redis, SmallDisk, eventually, kill};

use crate::{PATIENCE, STAMPEDE, batch_ended, create_event, text, tickets_of};

/// Tickets of the order.
const TICKETS: u64 = 200;

/// Lines that the log may grow by during an outage, whatever the number of tickets.
const LINES: usize = 60;

/// Places an order whose jobs nobody takes yet; returns its batch.
async fn held_order(app: &App) -> String {
    let event = create_event(app).await;
    // The queue is there after its first job.
    let first = app.order(json!({ "target": event, "quantity": 1, "name": "First" })).await;
    batch_ended(app, &text(&first["batchId"])).await;
    app.admin().post("/api/queues/tickets/pause", &json!({})).await.expect(200);
    let order = json!({ "target": event, "quantity": TICKETS, "name": "Crowd" });
    let batch = text(&app.order(order).await["batchId"]);
    eventually(PATIENCE, || async {
        let stats =
            app.admin().get(&format!("/api/batches/{batch}")).await.body["queueStats"].take();
        if stats["prioritized"] == TICKETS { Ok(()) } else { Err(stats.to_string()) }
    })
    .await;
    batch
}

async fn resume(app: &App) {
    app.admin().post("/api/queues/tickets/resume", &json!({})).await.expect(200);
}

async fn readiness(app: &App) -> (u16, Value) {
    let answer = app.stranger().get("/ready").await;
    (answer.status, answer.body)
}

/// Waits until a job of the batch was started so many times.
async fn started_times(app: &App, redis: &Redis, batch: &str, times: u64) {
    let ticket = text(&tickets_of(app, batch).await[0]["id"]);
    eventually(PATIENCE, || async {
        let started = redis.cli(&["HGET", &format!("bull:tickets:{ticket}"), "ats"]);
        let count: u64 = started.trim().parse().unwrap_or(0);
        if count >= times { Ok(()) } else { Err(format!("started {started:?} times")) }
    })
    .await;
}

/// All tickets are completed, none failed, and there is no dead letter.
async fn assert_all_made(app: &App, batch: &str) {
    let ended = batch_ended(app, batch).await;
    assert_eq!(
        (&ended["total"], &ended["completed"], &ended["failed"]),
        (&json!(TICKETS), &json!(TICKETS), &json!(0)),
        "{ended}"
    );
    // Workers may be back at an engine that was full a moment before the server's own connection is.
    let letters = eventually(PATIENCE, || async {
        let letters = app.admin().try_get("/api/queues/tickets/dead-letters").await?;
        if letters.status == 200 { Ok(letters.body) } else { Err(letters.body.to_string()) }
    })
    .await;
    assert_eq!(letters["total"], 0, "{letters}");
    let tickets = tickets_of(app, batch).await;
    for ticket in [&tickets[0], &tickets[TICKETS as usize - 1]] {
        let pdf = app.admin().get(&format!("/api/tickets/{}/pdf", text(&ticket["id"]))).await;
        assert!(pdf.status == 200 && pdf.bytes.starts_with(b"%PDF"), "{}", pdf.body);
    }
    let (healthy, report) = app.command(&["doctor"]);
    assert!(healthy, "{report}");
}

fn assert_told_once(app: &App, before: usize, what: &str) {
    let log = app.log();
    let lines: Vec<&str> = log.lines().skip(before).collect();
    assert!(lines.len() <= LINES, "{} lines: {}", lines.len(), lines.join("\n"));
    // Once by each worker, also by the one that took the place of another.
    let told = lines.iter().filter(|line| line.contains(what)).count();
    assert!((1..=8).contains(&told), "{told} times: {log}");
}

/// A server on a full disk, whose workers have tried to make an ordered batch.
struct Outage {
    disk: SmallDisk,
    redis: Redis,
    app: App,
    batch: String,
    /// Lines of the log before the disk was full.
    before: usize,
}

impl Outage {
    /// `setting` is given the path of something on the disk; Redis and everything else are elsewhere.
    async fn begin(megabytes: u64, setting: &str, scheme: &str, name: &str) -> Self {
        let (disk, redis) = (SmallDisk::mount(megabytes).await, Redis::start().await);
        let place = format!("{scheme}{}", disk.path().join(name).display());
        let settings = [(setting, place.as_str()), ("REDIS_URL", &redis.url())];
        let app = App::start_on(&disk, STAMPEDE, &settings).await;
        let batch = held_order(&app).await;
        let before = app.log().lines().count();
        disk.fill();
        resume(&app).await;
        started_times(&app, &redis, &batch, 3).await;
        Self { disk, redis, app, batch, before }
    }

    /// Kills a worker and waits for more attempts: the worker that takes its place waits with the others.
    async fn go_on_with_another_worker(&self) {
        let workers = self.app.workers();
        kill(workers[0]);
        eventually(PATIENCE, || async {
            let now = self.app.workers();
            (now.len() == 2 && !now.contains(&workers[0])).then_some(())
        })
        .await;
        started_times(&self.app, &self.redis, &self.batch, 6).await;
        let log = self.app.log();
        assert!(!log.contains("crash-looping"), "{log}");
    }
}

#[tokio::test]
async fn a_full_disk_under_the_database_fails_no_ticket() {
    let outage = Outage::begin(16, "DATABASE_URL", "sqlite:", "stampede.db").await;
    let (app, batch) = (&outage.app, &outage.batch);
    // Readers are served, and others are told.
    let state = app.admin().get(&format!("/api/batches/{batch}")).await.expect(200);
    assert_eq!((&state["completed"], &state["failed"]), (&json!(0), &json!(0)), "{state}");
    // Not at once: a check that went well stands for five seconds, and the log may have room for a page or two.
    let ready = eventually(PATIENCE, || async {
        let (status, ready) = readiness(app).await;
        let is_down = status == 503 && ready["database"] == "down";
        if is_down { Ok(ready) } else { Err(ready.to_string()) }
    })
    .await;
    assert!(text(&ready["databaseReason"]).contains("is full"), "{ready}");
    let event = json!({ "name": "Late", "location": "Main Hall", "currency": "EUR" });
    app.admin().post("/api/events", &event).await.expect(503);
    outage.go_on_with_another_worker().await;
    assert_told_once(app, outage.before, "cannot write to the database");

    outage.disk.make_room();
    assert_all_made(app, batch).await;
    // A failure stands for a second.
    eventually(PATIENCE, || async {
        let (status, ready) = readiness(app).await;
        let is_up = status == 200 && ready["database"] == "up";
        if is_up { Ok(()) } else { Err(ready.to_string()) }
    })
    .await;
    assert!(app.log().contains("over: cannot write to the database"), "{}", app.log());
}

#[tokio::test]
async fn a_full_disk_under_the_files_fails_no_ticket() {
    let outage = Outage::begin(32, "PUBLIC_PATH", "", "public").await;
    // A node with the API still takes orders.
    let ready = eventually(PATIENCE, || async {
        let (status, ready) = readiness(&outage.app).await;
        assert_eq!(status, 200, "{ready}");
        if ready["files"] == "down" { Ok(ready) } else { Err(ready.to_string()) }
    })
    .await;
    let reason = text(&ready["filesReason"]);
    assert!(reason.contains("No space left") && !reason.contains('/'), "{ready}");
    outage.go_on_with_another_worker().await;
    assert_told_once(&outage.app, outage.before, "cannot write PDFs");
    outage.disk.make_room();
    assert_all_made(&outage.app, &outage.batch).await;
}

#[tokio::test]
async fn a_node_that_starts_while_the_disk_of_the_files_fails_waits_for_it() {
    let (disk, redis) = (SmallDisk::mount(32).await, Redis::start().await);
    let faults = Faults::of_disk(&disk.from_outside(&disk.path()));
    let (public, url) = (disk.path().join("public").display().to_string(), redis.url());
    let mut settings = faults.environment();
    settings.extend([("PUBLIC_PATH", public.as_str()), ("REDIS_URL", &url)]);
    faults.change(|wrong| wrong.writes_fail = true);
    let app = App::start_on(&disk, STAMPEDE, &settings).await;
    let (_, ready) = readiness(&app).await;
    assert_eq!(ready["files"], "down", "{ready}");
    let event = create_event(&app).await;
    let order = json!({ "target": event, "quantity": TICKETS, "name": "Crowd" });
    let batch = text(&app.order(order).await["batchId"]);
    started_times(&app, &redis, &batch, 2).await;
    faults.change(|wrong| wrong.writes_fail = false);
    assert_all_made(&app, &batch).await;
}

/// Database, PDFs and the engine's journal are on the disk that is full.
async fn everything_on_one_disk(fsync: &str) {
    let disk = SmallDisk::mount(64).await;
    let data = disk.path().join("data").display().to_string();
    let settings = [("DATA_DIR", data.as_str()), ("ENGINE_FSYNC", fsync)];
    let app = App::start_on(&disk, STAMPEDE, &settings).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "quantity": TICKETS, "name": "Crowd" });
    let batch = text(&app.order(order).await["batchId"]);
    eventually(PATIENCE, || async {
        let state = app.admin().get(&format!("/api/batches/{batch}")).await.body;
        state["completed"].as_u64().filter(|made| *made >= 5)
    })
    .await;
    disk.fill();
    eventually(PATIENCE, || async {
        let (status, ready) = readiness(&app).await;
        let is_told = status == 503 && ready["database"] == "down" && ready["files"] == "down";
        if is_told { Ok(()) } else { Err(ready.to_string()) }
    })
    .await;
    // Several rounds of attempts.
    let until = tokio::time::Instant::now() + Duration::from_secs(8);
    eventually(PATIENCE, || async { (tokio::time::Instant::now() >= until).then_some(()) }).await;
    disk.make_room();
    assert_all_made(&app, &batch).await;
}

#[tokio::test]
async fn a_full_disk_under_everything_fails_no_ticket() {
    everything_on_one_disk("everysec").await;
}

#[tokio::test]
async fn a_full_disk_under_everything_and_a_journal_that_syncs_each_write_fails_no_ticket() {
    everything_on_one_disk("always").await;
}
