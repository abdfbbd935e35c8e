//! Everything an outside program needs: seed 000's names, with nothing but redis-cli.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stampede_testkit::{Redis, eventually};

use super::{NOTICED, event_at};
use crate::outside_readers::Listener;
use crate::{batch_ended, start, text};

/// One field of a hash, as JSON.
fn field(redis: &Redis, key: &str, field: &str) -> Value {
    serde_json::from_str(&redis.cli(&["HGET", key, field])).unwrap_or(Value::Null)
}

async fn workers_are(redis: &Redis, count: u64) {
    eventually(NOTICED, || async {
        let stats = field(redis, "workers:stats", "node-1");
        if stats["workers"] == count { Ok(()) } else { Err(stats.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn redis_cli_alone_watches_and_commands_the_cluster() {
    let redis = Redis::start().await;
    let url = redis.url();
    let mut app = start(&[
        ("REDIS_URL", &url),
        ("SERVER_NAME", "node-1"),
        ("WORKER_COUNT", "1"),
        ("MIN_WORKERS", "1"),
        ("MAX_WORKERS", "4"),
    ])
    .await;
    workers_are(&redis, 1).await;
    let stats = field(&redis, "workers:stats", "node-1");
    assert_eq!(stats["instanceId"], "node-1");
    for number in ["workers", "load", "memUsage", "timestamp"] {
        assert!(stats[number].is_number(), "{number} in {stats}");
    }
    let metrics = eventually(NOTICED, || async {
        let metrics = field(&redis, "queue:metrics", "node-1");
        if metrics.is_object() { Ok(metrics) } else { Err("no metrics") }
    })
    .await;
    for number in [
        "waiting",
        "active",
        "completed",
        "failed",
        "queuePressure",
        "queueGrowth",
        "workers",
        "load",
        "memUsage",
        "timestamp",
    ] {
        assert!(metrics[number].is_number(), "{number} in {metrics}");
    }
    let worker = eventually(NOTICED, || async {
        let id = redis.cli(&["HKEYS", "workers:active"]);
        if id.starts_with("node-1-worker-") { Ok(id) } else { Err(id) }
    })
    .await;
    let active = field(&redis, "workers:active", &worker);
    assert_eq!((&active["instance_id"], &active["status"]), (&json!("node-1"), &json!("running")));
    assert!(active["start_time"].is_u64(), "{active}");
    let heartbeat = field(&redis, "workers:heartbeat", &worker);
    assert_eq!(heartbeat["worker_id"], json!(worker));
    assert!(
        heartbeat["last_heartbeat"].is_u64() && heartbeat["status"] == "running",
        "{heartbeat}"
    );

    // A worker starts, and everybody hears of it.
    let started = Listener::subscribe(&redis, &["worker:started"]);
    let events = Listener::subscribe(&redis, &["scaling:event"]);
    let commands = "worker:commands:node-1";
    let heard = redis.cli(&["PUBLISH", commands, r#"{"action":"scale_up"}"#]);
    assert_eq!(heard, "1");
    let (_, event) = events.message();
    assert_eq!(
        (&event["instanceId"], &event["action"], &event["workers"]),
        (&json!("node-1"), &json!("scale_up"), &json!(2))
    );
    let (_, begun) = started.message();
    assert_eq!(begun["instanceId"], "node-1");
    workers_are(&redis, 2).await;

    // What is no command changes nothing, and a flood is worth no more than its sum.
    for nonsense in
        ["scale_up", r#"{"action":"explode"}"#, "[]", r#"{"action":"scale_up","count":-5}"#]
    {
        assert_eq!(redis.cli(&["PUBLISH", commands, nonsense]), "1");
    }
    let mut flood = Command::new("redis-cli")
        .args(["-p", &redis.port().to_string(), "--pipe"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = flood.stdin.take().unwrap();
    for _ in 0..10_000 {
        pipe.write_all(b"PUBLISH worker:commands:all '{\"action\":\"scale_up\"}'\r\n").unwrap();
    }
    drop(pipe);
    assert!(flood.wait().unwrap().success());
    workers_are(&redis, 4).await;
    let refused = eventually(NOTICED, || async {
        let stats = field(&redis, "workers:stats", "node-1");
        stats["refusedCommands"].as_u64().filter(|n| *n > 0)
    })
    .await;
    assert_eq!(refused, 4);
    redis.cli(&["PUBLISH", commands, r#"{"action":"scale_down","count":3}"#]);
    workers_are(&redis, 1).await;
    let before = app.workers();
    redis.cli(&["PUBLISH", "worker:commands:all", r#"{"action":"restart"}"#]);
    eventually(NOTICED, || async {
        let now = app.workers();
        if now.len() == 1 && now != before { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;

    // What the coordinator keeps.
    let cluster = eventually(NOTICED, || async {
        let text = redis.cli(&["GET", "cluster:stats"]);
        serde_json::from_str::<Value>(&text).map_err(|_| text)
    })
    .await;
    for part in ["totalWorkers", "totalWaiting", "avgLoad", "nodeCount", "timestamp"] {
        assert!(cluster[part].is_number(), "{part} in {cluster}");
    }
    assert_eq!(cluster["nodes"]["node-1"]["type"], "worker", "{cluster}");
    let history = redis.cli(&["LRANGE", "scaling:history", "0", "-1"]);
    let steps: Vec<Value> =
        history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(steps.len() <= 100 && steps.iter().all(|step| step["timestamp"].is_u64()), "{history}");
    let actions: Vec<String> = steps.iter().rev().map(|step| text(&step["action"])).collect();
    assert_eq!(actions.first().map(String::as_str), Some("scale_up"), "{history}");
    assert_eq!(actions.last().map(String::as_str), Some("restart"), "{history}");

    // What was done is counted by node.
    let event = event_at(&app.admin()).await;
    let order = app.order(json!({ "target": event, "quantity": 3, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    eventually(NOTICED, || async {
        let count = redis.cli(&["HGET", "stats:completed", "node-1"]);
        if count == "3" { Ok(()) } else { Err(count) }
    })
    .await;

    // The entries of the dead vanish by themselves.
    app.kill_everything();
    eventually(NOTICED, || async {
        let hashes = ["workers:stats", "queue:metrics", "workers:active", "workers:heartbeat"];
        let left: Vec<String> = hashes.iter().map(|h| redis.cli(&["HKEYS", h])).collect();
        if left.iter().all(String::is_empty) { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}
