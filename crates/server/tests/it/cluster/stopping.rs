//! A node that is told to stop in the middle of its work.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_testkit::{Signal, eventually};

use super::{Cluster, NOTICED, all_made, event_at};
use crate::{PATIENCE, text};

/// Who holds the jobs that are being worked on.
fn holders(cluster: &Cluster) -> Vec<String> {
    let active = cluster.redis_cli(&["LRANGE", "bull:tickets:active", "0", "-1"]);
    let lock = |id: &str| cluster.redis_cli(&["GET", &format!("bull:tickets:{id}:lock")]);
    let node = |lock: String| lock.split("-worker-").next().unwrap_or_default().to_owned();
    active.lines().map(|id| node(lock(id))).collect()
}

/// Waits until all eight jobs are held by this node.
async fn held_by(cluster: &Cluster, node: &str, patience: Duration) {
    eventually(patience, || async {
        let holders = holders(cluster);
        if holders == [node; 8] { Ok(()) } else { Err(format!("{holders:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_node_told_to_stop_ends_in_time_and_others_take_over_at_once() {
    let cluster = Cluster::start().await;
    // Longer than it has to drain, so that jobs are handed back.
    let slow = [("STAMPEDE_SLOW_TICKETS", "15000"), ("SHUTDOWN_TIMEOUT", "4")];
    let (api, mut going) =
        tokio::join!(cluster.node("api", "api", &[]), cluster.node("going", "worker", &slow),);
    let client = api.admin();
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 8, "name": "Crowd" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    held_by(&cluster, "going", PATIENCE).await;
    let _staying = cluster.node("staying", "worker", &slow).await;

    let told = Instant::now();
    going.signal(Signal::TERM);
    let status = going.ended().await;
    let took = told.elapsed();
    assert!(status.success(), "{status}: {}", going.log());
    // The half second is for this test to notice.
    assert!(took < Duration::from_millis(4_500), "ended after {took:?}");
    assert!(took > Duration::from_secs(2), "its jobs had time to end: {took:?}");
    // Nothing waits for a lock to expire, which would take 15 s.
    held_by(&cluster, "staying", Duration::from_secs(5)).await;
    all_made(&client, &text(&order["batchId"]), 8).await;
    // Each job was completed once, and none failed.
    eventually(NOTICED, || async {
        let jobs = client.try_get("/api/cluster").await?.body["jobs"].take();
        let wanted = json!({ "completed": 8, "failed": 0, "stalled": 0 });
        if jobs == wanted { Ok(()) } else { Err(jobs.to_string()) }
    })
    .await;
    let alerts = client.get("/api/cluster").await.expect(200)["alerts"].to_string();
    assert!(!alerts.contains("going"), "it said good-bye: {alerts}");
}
