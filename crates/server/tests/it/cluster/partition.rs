//! A worker node that is cut off from Redis and PostgreSQL, and comes back.

use std::time::Duration;

use serde_json::json;
use stampede_testkit::{Proxy, eventually};
use tokio::time::Instant;

use super::{Cluster, NOTICED, all_made, event_at, made, node_becomes, nodes};
use crate::{PATIENCE, text};

/// How long nothing goes through; another time with `STAMPEDE_PARTITION_SECONDS`.
fn partition() -> Duration {
    let asked = std::env::var("STAMPEDE_PARTITION_SECONDS").ok();
    Duration::from_secs(asked.and_then(|n| n.parse().ok()).unwrap_or(40))
}

#[tokio::test]
async fn the_jobs_of_a_node_that_is_cut_off_are_done_by_others_and_it_comes_back_by_itself() {
    let cluster = Cluster::start().await;
    let slow = [("STAMPEDE_SLOW_TICKETS", "400"), ("JOB_CONCURRENCY", "4")];
    let to_redis = Proxy::start(cluster.redis.port()).await;
    let to_postgres = Proxy::start(cluster.postgres.port()).await;
    let redis = to_redis.instead_of(&cluster.redis.url());
    let database = to_postgres.instead_of(&cluster.database);
    let api = cluster.node("api", "api", &[]).await;
    let (far, mut near) = tokio::join!(
        cluster.node_through("far", "worker", &redis, &database, &slow),
        cluster.node("near", "worker", &slow),
    );
    let client = api.admin();
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 100, "name": "Crowd" });
    let batch = text(&client.post("/api/tickets", &order).await.expect(200)["batchId"]);
    made(&client, &batch, 10).await;
    node_becomes(&client, "far", |node| node["busy"].as_u64() > Some(0)).await;

    let begun = Instant::now();
    to_redis.silence();
    to_postgres.silence();
    // Its entry vanishes, somebody is told, and the others do its work.
    eventually(NOTICED, || async {
        let names: Vec<String> = nodes(&client).await?.iter().map(|n| text(&n["id"])).collect();
        if names.contains(&"far".to_owned()) { Err(format!("{names:?}")) } else { Ok(()) }
    })
    .await;
    eventually(NOTICED, || async {
        let alerts = client.try_get("/api/cluster").await?.body["alerts"].to_string();
        if alerts.contains("node far is gone") { Ok(()) } else { Err(alerts) }
    })
    .await;
    // Nothing goes through yet, so the others have made them all.
    all_made(&client, &batch, 100).await;
    assert_eq!(far.workers().len(), 1, "a node that knows nothing keeps its workers");
    tokio::time::sleep_until(begun + partition()).await;

    to_redis.mend();
    to_postgres.mend();
    node_becomes(&client, "far", |node| node["workers"] == 1).await;
    // Its late results have changed nothing.
    all_made(&client, &batch, 100).await;
    let (healthy, report) = api.command(&["doctor"]);
    assert!(healthy, "{report}");
    // And it works: nobody else could have made these.
    near.stop().await;
    let order = json!({ "target": event, "quantity": 20, "name": "Late" });
    let late = text(&client.post("/api/tickets", &order).await.expect(200)["batchId"]);
    tokio::time::timeout(PATIENCE, all_made(&client, &late, 20)).await.unwrap();
    assert_eq!(cluster.redis_cli(&["ZCARD", "bull:tickets:failed"]), "0");
}
