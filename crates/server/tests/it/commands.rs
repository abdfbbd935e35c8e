//! The commands a person types beside a running server.

use std::path::Path;

use serde_json::Value;
use stampede_testkit::{App, pdf_codes, pdf_text};

use crate::{STAMPEDE, start, text};

#[tokio::test]
async fn the_demo_makes_two_hundred_correct_tickets() {
    let app = start(&[]).await;
    let out = app.data_dir().join("downloaded");
    let (well, output) =
        app.command(&["demo", "--tickets", "200", "--out", &out.display().to_string()]);
    assert!(well, "{output}");
    for part in ["200 ready, 0 failed", "tickets a second", "public/tickets"] {
        assert!(output.contains(part), "{part:?} is not in: {output}");
    }
    let pages = app.admin().get("/api/tickets?limit=1000").await.expect(200);
    let tickets = pages["tickets"].as_array().unwrap();
    assert_eq!(tickets.len(), 200);
    // Looking at 200 PDFs takes a while; two cores share it.
    std::thread::scope(|scope| {
        for half in tickets.chunks(100) {
            scope.spawn(|| half.iter().for_each(|ticket| assert_correct(&app, &out, ticket)));
        }
    });
}

fn assert_correct(app: &App, out: &Path, ticket: &Value) {
    let file = format!("ticket-{}.pdf", text(&ticket["id"]));
    let pdf = std::fs::read(out.join(&file)).unwrap();
    let kept = std::fs::read(app.data_dir().join("public/tickets").join(&file)).unwrap();
    assert_eq!(pdf, kept, "{file}");
    assert_eq!(pdf_codes(&pdf), [text(&ticket["id"])]);
    // Right-to-left names come back from poppler in an order of its own; the last name does not.
    let name = text(&ticket["name"]);
    let last = name.split(' ').next_back().unwrap_or_default();
    assert!(pdf_text(&pdf).contains(last), "{name}: {}", pdf_text(&pdf));
}

#[tokio::test]
async fn the_doctor_finds_a_running_server_healthy() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (well, report) = app.command(&["doctor"]);
    assert!(well, "{report}");
    assert_eq!(report.lines().filter(|line| line.contains("  ok  ")).count(), 5, "{report}");
}

#[test]
fn the_benchmark_prints_its_figures_as_one_json_object() {
    let output = std::process::Command::new(STAMPEDE)
        .args(["bench", "tickets", "--tickets", "50", "--workers", "1", "--json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    for figure in ["tickets_per_s", "p50_ms", "p99_ms"] {
        assert!(report[figure].as_f64().is_some_and(|n| n > 0.0), "{figure}: {report}");
    }
    for part in ["server", "worker", "redis-server"] {
        assert!(report["cpu_ms_per_ticket"][part].is_f64(), "{part}: {report}");
    }
    for step in ["load", "render", "put", "commit"] {
        assert!(report["step_us"][step].as_f64().is_some_and(|n| n > 0.0), "{step}: {report}");
    }
}

#[test]
fn the_help_teaches_the_first_steps() {
    let output = std::process::Command::new(STAMPEDE).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&output.stdout);
    for part in [
        "stampede demo --tickets 200",
        "serve",
        "token",
        "doctor",
        "--database-url",
        "[default: 3000]",
    ] {
        assert!(help.contains(part), "{part:?} is not in: {help}");
    }
}
