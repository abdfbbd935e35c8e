//! A whole cluster that loses a worker node, an API node and its coordinator in the middle of an order.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_testkit::{ADMIN_KEY, App, Client, Nginx, eventually};

use super::{Cluster, NOTICED, all_made, coordinator_other_than, event_at, made, node_becomes};
use crate::text;

/// Tickets of the large order; fewer with `STAMPEDE_CLUSTER_TICKETS`.
fn quantity() -> u64 {
    let asked = std::env::var("STAMPEDE_CLUSTER_TICKETS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(5_000)
}

/// nginx with the configuration that ships, in front of two API nodes.
async fn nginx(first: &App, second: &App) -> Nginx {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nginx/nginx.conf");
    let address = |app: &App| app.url().trim_start_matches("http://").to_owned();
    let replaced = [("127.0.0.1:3000", address(first)), ("127.0.0.1:3001", address(second))];
    Nginx::start(&config, "listen 80;", &replaced).await
}

/// What became of small orders that came in all the while, one after the other.
struct Orders {
    batches: Vec<String>,
    lost: Vec<String>,
}

/// Orders one ticket after the other through nginx until told to stop.
async fn keep_ordering(client: Client, event: String, enough: Arc<AtomicBool>) -> Orders {
    let mut orders = Orders { batches: Vec::new(), lost: Vec::new() };
    while !enough.load(Ordering::Relaxed) {
        let order = json!({ "target": event, "quantity": 1, "name": "One more" });
        let sent = client.request(reqwest::Method::POST, "/api/tickets").json(&order).send().await;
        match sent {
            Ok(response) if response.status() == 200 => {
                let answer: Value = response.json().await.unwrap();
                orders.batches.push(text(&answer["batchId"]));
            }
            Ok(response) => orders.lost.push(response.status().to_string()),
            Err(error) => orders.lost.push(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    orders
}

#[tokio::test]
async fn a_cluster_that_loses_a_worker_node_an_api_node_and_its_coordinator_makes_every_ticket_once()
 {
    let cluster = Cluster::start().await;
    // Slow enough that everything happens in the middle.
    let slow = [("STAMPEDE_SLOW_TICKETS", "60")];
    // The first one leads.
    let mut worker_3 = cluster.node("worker-3", "worker", &slow).await;
    let (api_1, mut api_2, mut worker_1, _worker_2) = tokio::join!(
        cluster.node("api-1", "api", &[]),
        cluster.node("api-2", "api", &[]),
        cluster.node("worker-1", "worker", &slow),
        cluster.node("worker-2", "worker", &slow),
    );
    let nginx = nginx(&api_1, &api_2).await;
    let client = Client::new(nginx.url(), Some(ADMIN_KEY));
    for name in ["api-1", "api-2", "worker-1", "worker-2", "worker-3"] {
        node_becomes(&client, name, |_| true).await;
    }
    assert_eq!(coordinator_other_than(&client, "").await, "worker-3");

    let event = event_at(&client).await;
    let total = quantity();
    let order = json!({ "target": event, "quantity": total, "name": "Crowd" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    let batch_id = text(&order["batchId"]);
    let enough = Arc::new(AtomicBool::new(false));
    let ordering = tokio::spawn(keep_ordering(client.clone(), event, enough.clone()));

    made(&client, &batch_id, total / 20).await;
    worker_1.kill_everything();
    made(&client, &batch_id, total / 10).await;
    api_2.kill();
    made(&client, &batch_id, total / 5).await;
    worker_3.kill_everything();
    let killed = Instant::now();
    let succession = async {
        let leader = coordinator_other_than(&client, "worker-3").await;
        (leader, killed.elapsed())
    };
    let (_worker_4, (leader, took)) =
        tokio::join!(cluster.node("worker-4", "worker", &slow), succession);
    assert!(took < Duration::from_secs(10), "{leader} took over after {took:?}");
    node_becomes(&client, "worker-4", |node| node["workers"] == 1).await;
    let joined = made(&client, &batch_id, 0).await;
    assert_eq!(joined["status"], "processing", "a new node joins in the middle: {joined}");

    all_made(&client, &batch_id, total).await;
    enough.store(true, Ordering::Relaxed);
    let Orders { batches, lost } = ordering.await.unwrap();
    assert!(lost.len() <= 1, "only what was in flight to the killed node: {lost:?}");
    assert!(batches.len() > 20, "{}", batches.len());
    for batch in &batches {
        all_made(&client, batch, 1).await;
    }
    assert_files(&cluster, &client, &batch_id, total).await;
    let (healthy, report) = api_1.command(&["doctor"]);
    assert!(healthy, "{report}");
    let failed = cluster.redis_cli(&["ZCARD", "bull:tickets:failed"]);
    assert_eq!(failed, "0");
    // A new coordinator gives everybody time to come back.
    eventually(NOTICED, || async {
        let alerts = client.get("/api/cluster").await.expect(200)["alerts"].to_string();
        let told = |dead: &&str| alerts.contains(&format!("node {dead} is gone"));
        if ["worker-1", "api-2", "worker-3"].iter().all(told) { Ok(()) } else { Err(alerts) }
    })
    .await;
    println!("{total} tickets and {} small orders; new coordinator after {took:?}", batches.len());
}

/// Every ticket of the batch has its PDF in the shared folder.
async fn assert_files(cluster: &Cluster, client: &Client, batch: &str, total: u64) {
    let mut after = String::new();
    let mut seen = 0;
    loop {
        let path = format!("/api/tickets?batch={batch}&limit=1000{after}");
        let page = client.get(&path).await.expect(200);
        for ticket in page["tickets"].as_array().unwrap() {
            assert_eq!(ticket["status"], "completed", "{ticket}");
            let file = cluster.public.path().join(text(&ticket["image"]).trim_start_matches('/'));
            let start = std::fs::read(&file).map(|pdf| pdf.starts_with(b"%PDF"));
            assert!(matches!(start, Ok(true)), "{}", file.display());
            seen += 1;
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, total);
}
