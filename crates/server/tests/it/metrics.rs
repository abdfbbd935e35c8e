//! Metrics: every kind of node shows them, Prometheus' own tool accepts them, and counters never fall when workers die.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_testkit::{App, Client, Redis, eventually, free_port, kill};

use crate::access::client;
use crate::cluster::Cluster;
use crate::{PATIENCE, STAMPEDE, batch_ended, create_event, start, text};

/// Time after which levels are read again.
const FRESH: Duration = Duration::from_millis(2_200);

/// What a node shows.
struct Page {
    text: String,
    /// Values by name and labels, as they are written.
    series: BTreeMap<String, f64>,
    /// Names of counters and histograms.
    growing: BTreeSet<String>,
}

impl Page {
    fn read(text: String) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let series = lines().map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        });
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let growing = types.filter(|(_, kind)| *kind != "gauge").map(|(name, _)| name.to_owned());
        Self { series: series.collect(), growing: growing.collect(), text }
    }

    async fn of(client: &Client) -> Self {
        let answer = client.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let kind = answer.headers["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        Self::read(String::from_utf8(answer.bytes).unwrap())
    }

    fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("no {series} in:\n{}", self.text))
    }

    /// Everything that must never fall: counters, and the parts of histograms.
    fn totals(&self) -> impl Iterator<Item = (&String, f64)> {
        let is_total = |series: &str| {
            let name = series.split('{').next().unwrap_or(series);
            let parts = ["", "_bucket", "_sum", "_count"];
            parts.iter().any(|part| {
                name.strip_suffix(*part).is_some_and(|family| self.growing.contains(family))
            })
        };
        self.series.iter().filter(move |(name, _)| is_total(name)).map(|(name, at)| (name, *at))
    }
}

/// What `promtool check metrics` finds wrong. BullMQ's own name for the number of its jobs is accepted.
fn complaints(text: &str) -> Vec<String> {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is missing: scripts/install promtool");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let told = told.lines().filter(|line| !line.is_empty());
    told.filter(|line| !line.starts_with("bullmq_job_count ")).map(str::to_owned).collect()
}

fn made(status: &str) -> String {
    format!(r#"queue_jobs_total{{queue="tickets",status="{status}"}}"#)
}

/// Orders tickets; returns the order's id.
async fn order(app: &App, quantity: u64) -> String {
    let event = create_event(app).await;
    let order = json!({ "target": event, "name": "Guest", "quantity": quantity });
    text(&app.order(order).await["batchId"])
}

/// Waits until a node shows this value.
async fn until(client: &Client, series: &str, wanted: f64) -> Page {
    eventually(PATIENCE, || async {
        let page = Page::of(client).await;
        match page.series.get(series) {
            Some(value) if *value == wanted => Ok(page),
            other => Err(format!("{series} is {other:?} instead of {wanted}")),
        }
    })
    .await
}

#[tokio::test]
async fn every_kind_of_node_shows_metrics_that_prometheus_accepts() {
    let cluster = Cluster::start().await;
    let listen = format!("127.0.0.1:{}", free_port());
    let api = cluster.node("a", "api", &[]).await;
    let settings = [("METRICS_LISTEN", listen.as_str()), ("WORKER_COUNT", "2")];
    let _worker = cluster.node("w", "worker", &settings).await;
    let both = cluster.node("b", "both", &[]).await;
    let batch = order(&api, 60).await;
    batch_ended(&api, &batch).await;

    let open = Client::new(format!("http://{listen}"), None);
    let workers = [open, both.admin()];
    let completed = made("completed");
    eventually(PATIENCE, || async {
        let (first, second) = (Page::of(&workers[0]).await, Page::of(&workers[1]).await);
        let sum = first.value(&completed) + second.value(&completed);
        if sum == 60.0 { Ok(()) } else { Err(format!("{sum} jobs")) }
    })
    .await;
    tokio::time::sleep(FRESH).await;
    let mut leaders = 0.0;
    for client in [&api.admin(), &workers[0], &workers[1]] {
        let page = until(client, "stampede_nodes", 3.0).await;
        assert_eq!(complaints(&page.text), [""; 0]);
        for part in ["redis", "store", "files"] {
            assert_eq!(page.value(&format!(r#"stampede_up{{part="{part}"}}"#)), 1.0);
        }
        let done = r#"bullmq_job_count{queue="tickets",state="completed"}"#;
        assert_eq!(page.value(done), 60.0, "every node shows the whole queue");
        assert!(page.value("process_resident_memory_bytes") > 1e6);
        leaders += page.value("stampede_leader");
    }
    assert_eq!(leaders, 1.0);
    let page = Page::of(&workers[0]).await;
    let slots = page.value("stampede_worker_slots");
    assert!(slots > 0.0 && page.value(r#"stampede_workers{state="running"}"#) == 2.0);
    assert!(page.value(r#"stampede_store_seconds_count{kind="write"}"#) > 0.0);
    let (stamped, other) =
        (r#"stampede_render_seconds_count{mode="stamped"}"#, Page::of(&workers[1]).await);
    assert!(page.value(stamped) + other.value(stamped) >= 60.0);
    let page = Page::of(&api.admin()).await;
    let orders = r#"stampede_http_request_duration_seconds_count{method="POST",route="/api/tickets",status="200"}"#;
    assert_eq!((page.value(orders), page.value("stampede_worker_slots")), (1.0, 0.0));
    assert!(!page.text.contains(&batch), "no id is in a label");
}

#[tokio::test]
async fn metrics_want_any_key_that_is_not_limited_and_their_own_address_wants_none() {
    let listen = format!("127.0.0.1:{}", free_port());
    let app = start(&[("WORKER_MODE", "api"), ("METRICS_LISTEN", &listen)]).await;
    for role in ["viewer", "scanner", "organiser", "admin"] {
        Page::of(&client(&app, role, "ann")).await;
    }
    app.stranger().get("/metrics").await.expect(401);
    app.client("stp_wrong").get("/metrics").await.expect(401);
    let event = create_event(&app).await;
    for limit in [json!({ "event": event }), json!({ "queues": ["tickets"] })] {
        let mut key = json!({ "name": limit.to_string(), "role": "admin", "user": "root" });
        key.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
        let secret = app.admin().post("/api/keys", &key).await.expect(201)["secret"].clone();
        let problem = app.client(&text(&secret)).get("/metrics").await.expect(403);
        assert_eq!(problem["code"], "out_of_scope");
    }
    let open = Client::new(format!("http://{listen}"), None);
    Page::of(&open).await;
    open.get("/api/events").await.expect(404);
    open.get("/health").await.expect(404);
}

#[tokio::test]
async fn a_node_that_only_works_wants_a_key_on_its_port() {
    let cluster = Cluster::start().await;
    let api = cluster.node("a", "api", &[]).await;
    let worker = cluster.node("w", "worker", &[]).await;
    worker.stranger().get("/metrics").await.expect(401);
    let secret = json!({ "name": "Prometheus", "role": "viewer", "user": "prometheus" });
    let secret = text(&api.admin().post("/api/keys", &secret).await.expect(201)["secret"]);
    let page = Page::of(&worker.client(&secret)).await;
    assert_eq!(page.value(r#"stampede_up{part="redis"}"#), 1.0);
}

#[tokio::test]
async fn counters_never_fall_while_workers_are_killed() {
    let app = start(&[("WORKER_COUNT", "2")]).await;
    let batch = order(&app, 3_000).await;
    let (mut before, mut kills) = (Page::of(&app.admin()).await, 0.0);
    let began = Instant::now();
    let mut next = Duration::from_millis(500);
    while kills < 4.0 {
        let page = Page::of(&app.admin()).await;
        let now: BTreeMap<&String, f64> = page.totals().collect();
        for (series, value) in before.totals() {
            assert!(now.get(series).is_some_and(|now| *now >= value), "{series}: {value}, {now:?}");
        }
        before = page;
        if began.elapsed() > next
            && let Some(worker) = app.workers().first()
        {
            kill(*worker);
            kills += 1.0;
            next += Duration::from_millis(1_500);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    batch_ended(&app, &batch).await;
    let died = r#"stampede_worker_restarts_total{reason="died"}"#;
    let page = until(&app.admin(), died, kills).await;
    let done = page.value(&made("completed"));
    assert!(
        done > 0.0 && done <= 3_000.0,
        "{done}: each ticket once, but for the killed workers' last second"
    );
}

#[tokio::test]
async fn workers_that_end_in_good_order_have_told_everything() {
    let app = start(&[("WORKER_COUNT", "2")]).await;
    let batch = order(&app, 300).await;
    batch_ended(&app, &batch).await;
    let restart = json!({ "action": "restart" });
    app.admin().post("/api/nodes/all/commands", &restart).await.expect(202);
    let rolled = r#"stampede_worker_restarts_total{reason="rolling"}"#;
    until(&app.admin(), rolled, 2.0).await;
    let page = until(&app.admin(), &made("completed"), 300.0).await;
    for series in [
        r#"queue_job_duration_seconds_count{queue="tickets"}"#,
        r#"stampede_job_wait_seconds_count{queue="tickets"}"#,
        r#"stampede_tickets_total{status="completed"}"#,
    ] {
        assert_eq!(page.value(series), 300.0, "{series}");
    }
}

#[tokio::test]
async fn a_hundred_queues_are_shown_quickly() {
    let redis = Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let admin = app.admin();
    for number in 0..100 {
        let job = json!({ "name": "send" });
        admin.post(&format!("/api/queues/q-{number:03}/jobs"), &job).await.expect(200);
    }
    redis.cli(&["HSET", "bull:q-007:meta", "paused", "1"]);
    redis.cli(&["LPUSH", "bull:q-007-dlq:wait", "x"]);
    let mut fastest = Duration::MAX;
    let mut page = Page::of(&admin).await;
    for _ in 0..4 {
        tokio::time::sleep(FRESH).await;
        let began = Instant::now();
        page = Page::of(&admin).await;
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    assert!(page.text.len() < 500_000, "{} bytes", page.text.len());
    assert_eq!(page.value(r#"bullmq_job_count{queue="q-042",state="waiting"}"#), 1.0);
    assert!(page.value(r#"stampede_queue_oldest_waiting_seconds{queue="q-042"}"#) > 5.0);
    assert_eq!(page.value(r#"stampede_queue_paused{queue="q-007"}"#), 1.0);
    assert_eq!(page.value(r#"stampede_dead_letters{queue="q-007"}"#), 1.0);
    assert!(!page.text.contains("-dlq"), "dead letters are counted with their queue");
}

#[tokio::test]
async fn what_redis_knows_is_not_shown_while_it_is_away() {
    let mut redis = Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let (up, waiting) =
        (r#"stampede_up{part="redis"}"#, r#"bullmq_job_count{queue="tickets",state="waiting"}"#);
    let page = until(&app.admin(), up, 1.0).await;
    assert_eq!(page.value(waiting), 0.0);
    redis.stop().await;
    let page = until(&app.admin(), up, 0.0).await;
    assert!(!page.series.contains_key(waiting) && !page.series.contains_key("stampede_nodes"));
    assert_eq!(page.value(r#"stampede_up{part="store"}"#), 1.0);
    redis.start_again().await;
    until(&app.admin(), up, 1.0).await;
    let page = Page::of(&app.admin()).await;
    assert!(page.value("stampede_redis_reconnects_total") >= 1.0);
}

#[test]
fn a_wrong_address_for_metrics_is_named_at_the_start() {
    for wrong in ["9464", "127.0.0.1", "metrics.example:9464", "127.0.0.1:0"] {
        let output = Command::new(STAMPEDE)
            .arg("serve")
            .env_clear()
            .env("METRICS_LISTEN", wrong)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("METRICS_LISTEN"), "{wrong}: {told}");
    }
}
