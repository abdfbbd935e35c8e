//! A node that is told to stop in the middle of its work.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_testkit::{Signal, eventually};

use super::{Cluster, NOTICED, all_made, event_at, node_becomes};
use crate::text;

#[tokio::test]
async fn a_node_told_to_stop_ends_in_time_and_others_take_over_at_once() {
    let cluster = Cluster::start().await;
    // Longer than it has to drain, so that jobs are handed back.
    let slow =
        [("STAMPEDE_SLOW_TICKETS", "7000"), ("JOB_CONCURRENCY", "8"), ("SHUTDOWN_TIMEOUT", "4")];
    let api = cluster.node("api", "api", &[]).await;
    let (mut going, _staying) = tokio::join!(
        cluster.node("going", "worker", &slow),
        cluster.node("staying", "worker", &slow),
    );
    let client = api.admin();
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 12, "name": "Crowd" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    let busy = |node: &serde_json::Value| node["busy"].as_u64() >= Some(4);
    tokio::join!(node_becomes(&client, "going", busy), node_becomes(&client, "staying", busy),);

    let told = Instant::now();
    going.signal(Signal::TERM);
    let status = going.ended().await;
    let took = told.elapsed();
    assert!(status.success(), "{status}: {}", going.log());
    // The half second is for this test to notice.
    assert!(took < Duration::from_millis(4_500), "ended after {took:?}");
    assert!(took > Duration::from_secs(2), "its jobs had time to end: {took:?}");
    // Taken over within seconds: nothing waits for a lock to expire.
    eventually(Duration::from_secs(10), || async {
        let active = cluster.redis_cli(&["LRANGE", "bull:tickets:active", "0", "-1"]);
        let mut holders: Vec<String> = Vec::new();
        for id in active.lines() {
            holders.push(cluster.redis_cli(&["GET", &format!("bull:tickets:{id}:lock")]));
        }
        let theirs = holders.iter().filter(|lock| lock.starts_with("going")).count();
        if theirs == 0 { Ok(()) } else { Err(format!("{holders:?}")) }
    })
    .await;
    all_made(&client, &text(&order["batchId"]), 12).await;
    // Each job was completed once, by whoever, and none failed.
    eventually(NOTICED, || async {
        let jobs = client.try_get("/api/cluster").await?.body["jobs"].take();
        let wanted = json!({ "completed": 12, "failed": 0, "stalled": 0 });
        if jobs == wanted { Ok(()) } else { Err(jobs.to_string()) }
    })
    .await;
    let alerts = client.get("/api/cluster").await.expect(200)["alerts"].to_string();
    assert!(!alerts.contains("going"), "it said good-bye: {alerts}");
}
