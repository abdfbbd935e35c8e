//! The table as a whole: its text, its document, and how the counts of workers are added up.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::family::About;

fn node() -> (Registry, Metrics) {
    let registry = Registry::new();
    let metrics = Metrics::register(&registry).unwrap();
    (registry, metrics)
}

/// The value of a line of the text.
fn value(registry: &Registry, series: &str) -> Option<f64> {
    let text = text(registry).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(|number| number.parse().unwrap())
}

/// As it goes over the pipe.
fn sent(worker: &Metrics) -> Snapshot {
    Snapshot::read(worker.snapshot().line().trim_end()).unwrap()
}

/// Counts something of everything.
fn count_everything(metrics: &Metrics, queues: usize) {
    let names: Vec<String> = (0..queues).map(|n| format!("queue-{n:04}")).collect();
    for (at, name) in names.iter().enumerate() {
        let jobs = metrics.jobs(name);
        for took in [1, 20, 300, 4_000, 50_000, 70_000].map(Duration::from_millis) {
            jobs.waited(took * at as u32);
            jobs.ran(took);
            jobs.ended(JobEnd::Completed, Some(took));
        }
        let ends = [JobEnd::Failed, JobEnd::Retried, JobEnd::Snoozed, JobEnd::Cancelled];
        ends.into_iter().for_each(|end| jobs.ended(end, None));
        jobs.stalled(2);
    }
    let states = ["waiting", "prioritized", "active", "delayed", "completed", "failed"];
    let levels: Vec<QueueLevels> = names
        .iter()
        .map(|name| QueueLevels {
            queue: name.clone(),
            jobs: states.map(|state| (state, 123_456)).to_vec(),
            oldest_waiting: Duration::from_millis(1_500),
            dead_letters: 3,
            is_paused: true,
        })
        .collect();
    metrics.show_queues(Some(&levels));
    for status in [200, 201, 404] {
        let took = Duration::from_millis(3);
        metrics.http("GET", Some("/api/events/{id}"), status, took);
        metrics.http("BREW", None, status, took);
    }
    metrics.tickets_completed(7);
    metrics.tickets_failed(1);
    metrics.renders(Printed::Stamped).observe(Duration::from_micros(800));
    metrics.renders(Printed::Typeset).observe(Duration::from_millis(800));
    metrics.store(StoreWork::Read).observe(Duration::from_micros(300));
    metrics.store(StoreWork::Write).observe(Duration::from_millis(2));
    for attempt in [Attempt::Sent, Attempt::Failed, Attempt::Retried, Attempt::Unknown] {
        metrics.message("smtp", attempt);
    }
    metrics.message("console", Attempt::Skipped);
    metrics.receipt("whatsapp", "delivered");
    metrics.suppressed("bounce", 2);
    for restart in [Restart::Died, Restart::Memory, Restart::CannotStart, Restart::Rolling] {
        metrics.worker_restarted(restart);
    }
    let waits = [("queue".to_owned(), 9), ("made-up".to_owned(), 1)].into();
    metrics.redis(&mut RedisSeen::default(), 2, &waits);
    let workers = vec![("running", 3), ("draining", 1)];
    metrics.show_cluster(&ClusterLevels {
        workers,
        slots: 48,
        busy: 3,
        leads: true,
        nodes: Some(2),
    });
    let states = vec![("running", 1), ("draft", 4)];
    metrics.show_campaigns(Some(&CampaignLevels { states, unknown: 1 }));
    metrics.show_breakers(&["mail".to_owned()]);
    metrics.show_up(Part::Redis, true);
    metrics.show_up(Part::Store, true);
    metrics.show_up(Part::Files, false);
    metrics.show_version("0.1.0");
    metrics.show_process();
    let pool = metrics.pool();
    pool.show(&PoolTotals { active: 2, queued: 5, completed: 9, failed: 1, refused: 1 });
    pool.waited(Duration::from_millis(5));
    pool.ran(Duration::from_millis(5));
    metrics.sticker_asked(true);
}

#[test]
fn counts_of_a_worker_are_added_once_and_stay_when_it_dies() {
    let (registry, node) = node();
    let completed = r#"queue_jobs_total{queue="tickets",status="completed"}"#;
    let mut wanted = 0.0;
    for life in 1..=3 {
        let worker = Metrics::default();
        let jobs = worker.jobs("tickets");
        let mut told = node.listen();
        for _ in 0..4 {
            for _ in 0..life {
                jobs.ended(JobEnd::Completed, Some(Duration::from_millis(60)));
            }
            wanted += f64::from(life);
            told.hear(sent(&worker));
            // A line that comes again says nothing new.
            told.hear(sent(&worker));
            assert_eq!(value(&registry, completed), Some(wanted));
        }
        drop(told);
        assert_eq!(value(&registry, completed), Some(wanted), "its successor begins at 0");
    }
    let bucket =
        |le: &str| format!(r#"queue_job_duration_seconds_bucket{{queue="tickets",le="{le}"}}"#);
    assert_eq!(value(&registry, &bucket("0.05")), Some(0.0));
    assert_eq!(value(&registry, &bucket("0.1")), Some(wanted));
    assert_eq!(value(&registry, &bucket("+Inf")), Some(wanted));
    let sum = value(&registry, r#"queue_job_duration_seconds_sum{queue="tickets"}"#).unwrap();
    assert!((sum - wanted * 0.06).abs() < 1e-6, "{sum}");
}

#[test]
fn workers_that_live_at_the_same_time_are_added_up_and_levels_end_with_them() {
    let (registry, node) = node();
    let workers = [Metrics::default(), Metrics::default()];
    let mut told = Vec::new();
    for (worker, active) in workers.iter().zip([2, 3]) {
        worker.tickets_completed(10);
        worker.pool().show(&PoolTotals { active, completed: 5, ..PoolTotals::default() });
        let mut heard = node.listen();
        heard.hear(sent(worker));
        told.push(heard);
    }
    let tickets = r#"stampede_tickets_total{status="completed"}"#;
    let (active, done) = ("bot_worker_pool_active_workers", "bot_worker_tasks_completed_total");
    let shown = || [tickets, active, done].map(|series| value(&registry, series).unwrap());
    assert_eq!(shown(), [20.0, 5.0, 10.0]);
    told.pop();
    assert_eq!(shown(), [20.0, 2.0, 10.0]);
    // The node counts, too.
    node.tickets_completed(1);
    assert_eq!(shown(), [21.0, 2.0, 10.0]);
}

#[test]
fn what_a_worker_of_another_version_tells_is_added_as_far_as_it_is_known() {
    let (registry, node) = node();
    let mut told = node.listen();
    let line = concat!(
        r#"metrics [{"n":"of_next_year_total","l":["a"],"v":{"c":1}},"#,
        r#"{"n":"queue_jobs_total","l":["tickets"],"v":{"c":1}},"#,
        r#"{"n":"queue_jobs_total","l":["tickets","lost"],"v":{"c":1}},"#,
        r#"{"n":"queue_jobs_total","l":["tickets","failed"],"v":{"g":1.0}},"#,
        r#"{"n":"stampede_job_run_seconds","l":["tickets"],"v":{"h":{"b":[1,2],"s":5}}},"#,
        r#"{"n":"stampede_leader","v":{"g":1.0}},"#,
        r#"{"n":"stampede_tickets_total","l":["completed"],"v":{"c":4}}]"#,
    );
    told.hear(Snapshot::read(line).unwrap());
    assert_eq!(value(&registry, r#"stampede_tickets_total{status="completed"}"#), Some(4.0));
    assert_eq!(value(&registry, r#"queue_jobs_total{queue="tickets",status="other"}"#), Some(1.0));
    assert_eq!(value(&registry, "stampede_leader"), None, "only a node knows that");
    let runs = value(&registry, r#"stampede_job_run_seconds_count{queue="tickets"}"#);
    assert_eq!(runs, Some(0.0), "it has other buckets");
    for line in ["ready", "busy 1 of 2", "metrics", "metrics {", "metrics [{\"n\":1}]"] {
        assert_eq!(Snapshot::read(line), None, "{line}");
    }
}

#[test]
fn a_worker_tells_nothing_that_is_still_zero_and_nothing_that_nodes_count() {
    let worker = Metrics::default();
    let _ = worker.jobs("tickets");
    worker.show_up(Part::Redis, true);
    assert_eq!(worker.snapshot(), Snapshot::default());
}

#[test]
fn nothing_is_shown_whose_source_has_not_begun() {
    let (registry, metrics) = node();
    assert_eq!(text(&registry).unwrap(), "");
    let _ = metrics.jobs("tickets");
    let stalled = r#"queue_jobs_total{queue="tickets",status="stalled"}"#;
    assert_eq!(value(&registry, stalled), Some(0.0), "an increase from 0 can be seen");
}

#[test]
fn a_node_shows_zeros_from_its_start() {
    let (registry, metrics) = node();
    metrics.show_zeros();
    for series in [
        r#"stampede_campaign_messages_total{channel="sms",outcome="unknown"}"#,
        r#"stampede_worker_restarts_total{reason="died"}"#,
    ] {
        assert_eq!(value(&registry, series), Some(0.0), "{series}");
    }
    assert!(!text(&registry).unwrap().contains("bot_"), "not every node has a pool");
    assert_eq!(metrics.snapshot(), Snapshot::default());
}

#[test]
fn levels_that_nobody_knows_are_not_shown() {
    let (registry, metrics) = node();
    count_everything(&metrics, 2);
    let waiting = r#"bullmq_job_count{queue="queue-0001",state="waiting"}"#;
    assert_eq!(value(&registry, waiting), Some(123_456.0));
    metrics.show_queues(None);
    metrics.show_campaigns(None);
    metrics.show_cluster(&ClusterLevels::default());
    for gone in [waiting, "stampede_nodes", "stampede_campaign_unknown"] {
        assert_eq!(value(&registry, gone), None, "{gone}");
    }
    metrics.show_breakers(&[]);
    assert_eq!(value(&registry, r#"stampede_breaker_open{service="mail"}"#), Some(0.0));
}

#[test]
fn the_levels_of_too_many_queues_are_shown_together() {
    let (registry, metrics) = node();
    count_everything(&metrics, 250);
    let other = |series: &str| value(&registry, series);
    assert_eq!(other(r#"stampede_dead_letters{queue="other"}"#), Some(150.0));
    assert_eq!(other(r#"stampede_queue_paused{queue="other"}"#), Some(1.0));
    assert_eq!(other(r#"queue_jobs_total{queue="other",status="completed"}"#), Some(300.0));
}

#[test]
fn a_total_of_elsewhere_is_counted_once() {
    let (registry, metrics) = node();
    let mut seen = RedisSeen::default();
    for total in [2, 2, 5, 4, 6] {
        let waits = [("day".to_owned(), total), ("a".to_owned(), total), ("b".to_owned(), 1)];
        metrics.redis(&mut seen, total, &waits.into());
    }
    assert_eq!(value(&registry, "stampede_redis_reconnects_total"), Some(6.0));
    let waits = |kind| value(&registry, &format!("stampede_limit_waits_total{{kind=\"{kind}\"}}"));
    assert_eq!([waits("day"), waits("other")], [Some(6.0), Some(7.0)]);
}

#[test]
fn a_hundred_queues_are_written_quickly_and_are_not_many_bytes() {
    let (registry, metrics) = node();
    count_everything(&metrics, 100);
    let began = Instant::now();
    let written = text(&registry).unwrap();
    let took = began.elapsed();
    assert!(written.len() < 500_000, "{} bytes", written.len());
    // A debug build on a busy machine; the server's test measures the route.
    assert!(took < Duration::from_millis(500), "{took:?}");
    println!("{} bytes in {took:?}", written.len());
}

/// BullMQ's own name for the number of its jobs ends like the part of a histogram.
const ACCEPTED: &str =
    "bullmq_job_count non-histogram and non-summary metrics should not have \"_count\" suffix";

#[test]
fn prometheus_own_tool_finds_nothing_wrong() {
    let (registry, metrics) = node();
    count_everything(&metrics, 3);
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is missing: scripts/install promtool");
    promtool.stdin.take().unwrap().write_all(text(&registry).unwrap().as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8(told).unwrap();
    let told: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(told, [ACCEPTED]);
}

#[test]
fn every_metric_of_the_table_is_shown_once_counted() {
    let (registry, metrics) = node();
    count_everything(&metrics, 1);
    let text = text(&registry).unwrap();
    for About { name, help, .. } in Metrics::about() {
        assert!(text.contains(&format!("# HELP {name} {help}\n")), "{name}");
    }
}

/// A line of the document.
fn row(about: &About) -> String {
    let labels: Vec<String> =
        about.labels.iter().map(|label| format!("`{}`", label.name)).collect();
    let counts = if about.is_told { "workers and node" } else { "node" };
    format!("| `{}` | {} | {} | {counts} |\n", about.name, labels.join(", "), about.help)
}

#[test]
fn the_document_lists_the_table() {
    const MARKS: [&str; 2] = ["<!-- the table begins -->\n", "<!-- the table ends -->"];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let rows: String = Metrics::about().into_iter().map(row).collect();
    let head = "| metric | labels | what it says | counted by |\n|---|---|---|---|\n";
    let wanted = format!("{before}{}{head}{rows}{}{after}", MARKS[0], MARKS[1]);
    if std::env::var_os("STAMPEDE_WRITE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert_eq!(
            document, wanted,
            "STAMPEDE_WRITE_DOCS=1 cargo test -p stampede-telemetry writes it"
        );
    }
}
