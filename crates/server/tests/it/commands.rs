//! The commands a person types beside a running server.

use std::path::Path;

use serde_json::{Value, json};
use stampede_model::KeyRing;
use stampede_testkit::{App, pdf_text, temp_dir};

use crate::{STAMPEDE, assert_proves, key_ring, start, text};

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
    let keys = key_ring(&app, &text(&tickets[0]["target"])).await;
    // Looking at 200 PDFs takes a while; two cores share it.
    std::thread::scope(|scope| {
        for half in tickets.chunks(100) {
            scope
                .spawn(|| half.iter().for_each(|ticket| assert_correct(&app, &out, &keys, ticket)));
        }
    });
}

fn assert_correct(app: &App, out: &Path, keys: &KeyRing, ticket: &Value) {
    let file = format!("ticket-{}.pdf", text(&ticket["id"]));
    let pdf = std::fs::read(out.join(&file)).unwrap();
    let kept = std::fs::read(app.data_dir().join("public/tickets").join(&file)).unwrap();
    assert_eq!(pdf, kept, "{file}");
    assert_proves(&pdf, keys, ticket);
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
    assert_eq!(report.lines().filter(|line| line.contains("  ok  ")).count(), 6, "{report}");
}

#[tokio::test]
async fn the_doctor_refuses_a_database_of_an_older_version_in_words() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    app.stop().await;
    let older = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript('DROP TABLE campaign_suppressions; \
         DELETE FROM _sqlx_migrations WHERE version = 19')";
    let database = app.data_dir().join("stampede.db");
    let done = std::process::Command::new("python3").args(["-c", older]).arg(database).status();
    assert!(done.unwrap().success());
    let (well, report) = app.command(&["doctor"]);
    assert!(!well, "{report}");
    let line = report.lines().find(|line| line.contains("Database")).unwrap_or_default();
    assert!(line.contains("WRONG") && line.contains("of an older version"), "{report}");
    assert!(line.contains("that it lacks: 1") && !report.contains("statement"), "{report}");
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
    for part in ["server", "worker"] {
        assert!(report["cpu_ms_per_ticket"][part].is_f64(), "{part}: {report}");
    }
    for step in ["load", "render", "put", "commit"] {
        assert!(report["step_us"][step].as_f64().is_some_and(|n| n > 0.0), "{step}: {report}");
    }
}

#[test]
fn the_import_of_a_list_is_measured_in_one_json_object() {
    let output = std::process::Command::new(STAMPEDE)
        .args(["bench", "campaigns", "--only-import", "--recipients", "5000", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert!(output.status.success(), "{report}");
    assert_eq!(report["recipients"], 5_000, "{report}");
    assert!(report["recipientsPerSecond"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    assert!(report["serverMb"].as_f64().is_some_and(|mb| mb < 150.0), "{report}");
}

fn bench_engine(arguments: &[&str]) -> Value {
    let output = std::process::Command::new(STAMPEDE)
        .args(["bench", "engine", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_engine_is_compared_with_redis_in_one_json_object() {
    let report =
        bench_engine(&["--jobs=400", "--rounds=1", "--seconds=1", "--rate=100", "--waiting=3000"]);
    for figure in ["life_vs_redis", "p99_vs_redis"] {
        assert!(report[figure].as_f64().is_some_and(|n| n > 0.0), "{figure}: {report}");
    }
    // So few jobs are lost in what an allocator gives back meanwhile: any number will do.
    assert!(report["memory_vs_redis"].is_f64(), "{report}");
    for side in ["engine", "redis"] {
        assert!(report[side]["bytes_per_waiting_job"].is_f64(), "{report}");
        for figure in ["p50_ms", "p99_ms"] {
            assert!(report[side][figure].as_f64().is_some_and(|n| n > 0.0), "{figure}: {report}");
        }
        for level in ["1", "8", "32"] {
            assert!(report[side]["jobs_per_s"][level].as_f64().is_some(), "{level}: {report}");
        }
        for test in ["GET P1", "SET P1", "LPUSH P1", "GET P16", "SET P16", "LPUSH P16"] {
            assert!(report[side]["requests_per_s"][test].is_f64(), "{test}: {report}");
        }
    }
}

#[test]
fn queues_are_compared_with_nodes_bullmq_in_one_json_object() {
    let output = std::process::Command::new(STAMPEDE)
        .args(["bench", "queue", "--jobs=100", "--rounds=1", "--seconds=1", "--rate=100", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let is_figure = |value: &Value| value.as_f64().is_some_and(|n| n.is_finite() && n > 0.0);
    for figure in ["life_vs_node", "p99_vs_node"] {
        assert!(is_figure(&report[figure]), "{figure}: {report}");
    }
    let mut measured = vec!["add", "add in bulk", "process 1", "process 8", "process 100"];
    measured.extend(["life 100", "add to start p50 ms", "add to start p99 ms"]);
    for aof in ["on", "off"] {
        for side in ["ours", "node", "ratios"] {
            let figures = report["aof"][aof][side].as_object().unwrap();
            assert_eq!(figures.len(), measured.len(), "{report}");
            for name in &measured {
                assert!(is_figure(&figures[*name]), "{name} of {side} with AOF {aof}: {report}");
            }
        }
    }
}

#[test]
fn starts_and_pauses_are_measured_with_many_waiting_jobs() {
    let report = bench_engine(&["--restart", "--waiting=3000", "--rate=100"]);
    for side in ["engine", "redis"] {
        for figure in ["start_s", "pause_ms", "compaction_s", "disk_bytes"] {
            assert!(report[side][figure].as_f64().is_some_and(|n| n > 0.0), "{figure}: {report}");
        }
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
        "verify",
        "doctor",
        "engine",
        "--database-url",
        "[default: 3000]",
    ] {
        assert!(help.contains(part), "{part:?} is not in: {help}");
    }
}

#[test]
fn settings_are_explained_where_they_are_looked_for_and_not_everywhere() {
    let help = |arguments: &[&str]| {
        let output = std::process::Command::new(STAMPEDE).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for arguments in [&["--help"][..], &["serve", "--help"], &["serve", "-h"]] {
        assert!(help(arguments).contains("--database-url"), "{arguments:?}");
    }
    for arguments in [
        &["-h"][..],
        &["verify", "--help"],
        &["queues", "--help"],
        &["queues", "jobs", "--help"],
        &["nodes", "scale-up", "--help"],
        &["template", "publish", "--help"],
        &["doctor", "--help"],
        &["bench", "tickets", "--help"],
    ] {
        let help = help(arguments);
        assert!(!help.contains("--database-url"), "{arguments:?}: {help}");
    }
    assert!(help(&["doctor", "--help"]).contains("stampede --help"));
    assert!(help(&["queues", "jobs", "--help"]).contains("--url"));
}

#[test]
fn all_settings_are_listed_for_the_terminal_and_for_the_document() {
    let listed = |arguments: &[&str]| {
        let output = std::process::Command::new(STAMPEDE).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["MAX_JOB_BYTES", "SCALE_UP_PRESSURE", "TICKET_KEY_SECRET", "LOG_FORMAT"] {
        assert!(listed(&["settings"]).contains(name), "{name}");
        assert!(listed(&["settings", "--markdown"]).contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn the_example_of_an_order_pipeline_speaks_to_people() {
    let output = std::process::Command::new(STAMPEDE)
        .args(["example", "orders", "--orders", "60"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8_lossy(&output.stdout);
    // What runs, what is about to go wrong, what came of it, and where to read on.
    for word in [
        "validate",
        "charge",
        "reserve",
        "notify",
        "58 orders confirmed",
        "docs/queues.md",
        "the order is empty",
        "0  orders charged twice",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[test]
fn the_example_of_an_order_pipeline_explains_what_became_of_every_order() {
    let output = std::process::Command::new(STAMPEDE)
        .args(["example", "orders", "--orders", "60", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Two empty orders, three declined cards, which are replayed with others.
    assert_eq!((&report["confirmed"], &report["failed"]), (&json!(58), &json!(2)), "{report}");
    assert_eq!(report["replayed"], 3);
    let mut reasons = report["deadLetters"].as_array().unwrap().iter().map(|dead| &dead["reason"]);
    assert!(reasons.all(|reason| reason == "the order is empty"), "{report}");
    let world = &report["world"];
    for (what, count) in [
        ("orders charged", 58),
        ("orders reserved", 58),
        ("orders charged twice", 0),
        ("orders confirmed too early", 0),
        ("messages beyond what the warehouse takes in a second", 0),
        ("payments asked for again, and made once", 4),
        ("cards declined", 3),
        ("panics in the warehouse's driver", 2),
        ("times the mail server hung", 1),
        ("times the bank stumbled", 5),
    ] {
        assert_eq!(world[what], count, "{what}: {report}");
    }
    // It was down for eight calls, and those that waited for its breaker did not call.
    for what in
        ["calls of the bank while it was down", "charges that waited for the bank to come back"]
    {
        assert!(world[what].as_u64().is_some_and(|count| count > 0), "{what}: {report}");
    }
    let hung = "attempts tried again: took longer than its limit of 500ms";
    assert_eq!(world[hung], 1, "{report}");
}

#[tokio::test]
async fn an_address_where_nobody_answers_is_told_before_a_key_is_asked_for() {
    let run = |url: &str| {
        let folder = temp_dir();
        let output = std::process::Command::new(STAMPEDE)
            .args(["nodes", "--url", url])
            .env_clear()
            .env("DATA_DIR", folder.path())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = run("http://127.0.0.1:1");
    assert!(
        told.contains("no answer from http://127.0.0.1:1") && !told.contains("--key"),
        "{told}"
    );
    let app = start(&[("WORKER_MODE", "api")]).await;
    let told = run(&app.url());
    assert!(told.contains("give a --key"), "{told}");
}
