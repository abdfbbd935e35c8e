//! Large files: the server's memory does not grow with them. `stampede bench upload` is the full size.

use std::fmt::Write;

use stampede_testkit::App;

use super::{path, upload};
use crate::{batch_ended, create_event, start, text};

/// A number of KB from `/proc/<pid>/status`.
fn memory_kb(app: &App, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let value = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    value.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// The peak starts anew.
fn forget_peak(app: &App) -> u64 {
    std::fs::write(format!("/proc/{}/clear_refs", app.pid()), "5").unwrap();
    memory_kb(app, "VmRSS")
}

fn guests(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, n| {
        writeln!(text, "{{\"name\":\"Guest Nº {n}\",\"email\":\"guest{n}@example.com\",\"seat\":\"{n}\",\"price\":49.9}}")
            .unwrap();
        text
    })
}

#[tokio::test]
async fn twenty_thousand_tickets_are_ordered_in_little_memory() {
    // Without workers: the memory of the queue is that of the engine, which is in the same process.
    let redis = stampede_testkit::Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let event = create_event(&app).await;
    upload(&app.admin(), &path(&event), "application/x-ndjson", guests(1_000)).await.expect(202);
    let before = forget_peak(&app);
    let accepted = upload(&app.admin(), &path(&event), "application/x-ndjson", guests(20_000))
        .await
        .expect(202);
    assert_eq!(accepted["total"], 20_000);
    let grown = memory_kb(&app, "VmHWM").saturating_sub(before);
    println!("20,000 tickets by NDJSON: {grown} KB more at the peak");
    assert!(grown < 30_000, "{grown} KB");
}

#[tokio::test]
async fn hostile_files_cost_little_memory_and_a_sentence() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    upload(&app.admin(), &path(&event), "text/csv", "name\nAnn\n").await.expect(202);
    let before = forget_peak(&app);
    let line = "x".repeat(100 << 20);
    let open_quote = format!("name\n\"{}", "y,\n".repeat(10 << 20));
    for (kind, body, status) in [
        ("text/csv", format!("name,notes\nAnn,{line}\n"), 202),
        ("text/csv", format!("name\n{line}\n"), 422),
        ("application/x-ndjson", format!("{{\"name\":\"{line}\"}}\n"), 422),
        ("text/csv", open_quote, 422),
        ("text/csv", "\n".repeat(100 << 20), 422),
        ("text/csv", ",".repeat(100 << 20), 422),
        ("text/csv", format!("name{}", "\0".repeat(50 << 20)), 422),
        ("application/x-ndjson", "[".repeat(50 << 20), 422),
        ("application/x-ndjson", "0\n".repeat(150_000), 422),
    ] {
        let told = upload(&app.admin(), &path(&event), kind, body).await;
        assert_eq!(
            told.status,
            status,
            "{}",
            String::from_utf8_lossy(&told.bytes[..told.bytes.len().min(500)])
        );
        assert!(told.bytes.len() < 200_000);
    }
    let grown = memory_kb(&app, "VmHWM").saturating_sub(before);
    println!("hostile files: {grown} KB more at the peak");
    assert!(grown < 50_000, "{grown} KB");
    app.admin().get("/api/batches").await.expect(200);
}

#[tokio::test]
async fn a_server_killed_after_the_commit_makes_all_tickets_of_an_upload() {
    let mut app = start(&[("STAMPEDE_HANG_AT", "order-committed")]).await;
    let event = create_event(&app).await;
    let answer = upload(&app.admin(), &path(&event), "application/x-ndjson", guests(300)).await;
    let batch = text(&answer.expect(202)["batchId"]);
    app.kill_everything();
    app.start_again(&[("STAMPEDE_HANG_AT", "")]).await;
    assert_eq!(batch_ended(&app, &batch).await["completed"], 300);
}
