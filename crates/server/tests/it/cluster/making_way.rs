//! `WORKER_MODE=auto`: workers make way for the API, as long as others can work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use stampede_testkit::{Client, eventually};
use tokio::task::JoinSet;

use super::{Cluster, NOTICED, all_made, event_at, node_becomes};
use crate::text;

/// How many ask at the same time. One alone on an idle machine may be answered within the millisecond.
const ASKING: usize = 12;

/// Asks without a pause until told to stop, so that there is something to measure.
async fn keep_asking(client: Client, enough: Arc<AtomicBool>) {
    while !enough.load(Ordering::Relaxed) {
        client.get("/api/events").await.expect(200);
    }
}

#[tokio::test]
async fn workers_make_way_for_the_api_down_to_none_if_others_work_and_come_back() {
    let cluster = Cluster::start().await;
    // No request is answered that quickly when others wait too, so the API seems slow whenever they ask.
    let settings = [
        ("WORKER_COUNT", "2"),
        ("MAX_WORKERS", "2"),
        ("MIN_WORKERS", "0"),
        ("API_LATENCY_LIMIT_MS", "1"),
        ("SCALE_INTERVAL_MS", "500"),
        ("SCALE_UP_LOAD", "1000"),
        ("SCALE_UP_COOLDOWN", "0"),
    ];
    let auto = cluster.node("auto", "auto", &settings).await;
    let mut other = cluster.node("other", "worker", &[("STAMPEDE_SLOW_TICKETS", "200")]).await;
    let client = auto.admin();
    node_becomes(&client, "auto", |node| node["workers"] == 2).await;
    node_becomes(&client, "other", |node| node["workers"] == 1).await;

    let enough = Arc::new(AtomicBool::new(false));
    let asking: JoinSet<()> =
        (0..ASKING).map(|_| keep_asking(auto.admin(), enough.clone())).collect();
    let node = node_becomes(&client, "auto", |node| node["states"]["target"] == 0).await;
    assert_eq!(node["max"], 0, "and it says so: {node}");
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 5, "name": "Ann" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    all_made(&client, &text(&order["batchId"]), 5).await;

    // When nobody else works, one of ours has to, however slow the API is.
    other.stop().await;
    node_becomes(&client, "auto", |node| node["workers"] == 1).await;
    let order = json!({ "target": event, "quantity": 5, "name": "Ben" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    all_made(&client, &text(&order["batchId"]), 5).await;

    // When nobody asks any more, there is room for all of them again.
    enough.store(true, Ordering::Relaxed);
    asking.join_all().await;
    // Looked at without asking the API.
    eventually(2 * NOTICED, || async {
        let stats = cluster.redis_cli(&["HGET", "workers:stats", "auto"]);
        let max = serde_json::from_str::<Value>(&stats).map(|stats| stats["max"].clone());
        if max.is_ok_and(|max| max == 2) { Ok(()) } else { Err(stats) }
    })
    .await;
    let history = client.get("/api/scaling/history").await.expect(200).to_string();
    for reason in ["the API needs the machine", "no other node works"] {
        assert!(history.contains(reason), "{history}");
    }
}
