//! A burst of work at an idle node.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_testkit::eventually;

use super::{event_at, nodes};
use crate::{PATIENCE, start, text};

/// How long something may take that takes so long on a machine with nothing else to do.
fn on_this_machine(calm: Duration) -> Duration {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    calm.mul_f64((load / cores as f64).max(1.0))
}

#[tokio::test]
async fn a_burst_brings_all_workers_within_seconds_and_they_go_again_one_by_one() {
    let app = start(&[
        ("SERVER_NAME", "busy"),
        ("WORKER_COUNT", "1"),
        ("MIN_WORKERS", "1"),
        ("MAX_WORKERS", "8"),
        ("JOB_CONCURRENCY", "2"),
        ("STAMPEDE_SLOW_TICKETS", "5000"),
        // Others use this machine too, and a test has no minutes to spare.
        ("SCALE_UP_LOAD", "1000"),
        ("SCALE_DOWN_COOLDOWN", "1"),
        ("SCALE_INTERVAL_MS", "500"),
    ])
    .await;
    let client = app.admin();
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 2_000, "name": "Crowd" });
    client.post("/api/tickets", &order).await.expect(200);
    let begun = Instant::now();
    let workers = |count: u64| {
        let client = &client;
        move || async move {
            let nodes = nodes(client).await?;
            let node = nodes.first().cloned().unwrap_or_default();
            let (running, target) = (&node["workers"], &node["states"]["target"]);
            if *running == count && *target == count {
                Ok(())
            } else {
                Err(format!("{running} of {target} run"))
            }
        }
    };
    eventually(PATIENCE, workers(8)).await;
    let took = begun.elapsed();
    assert!(took < on_this_machine(Duration::from_secs(15)), "all workers after {took:?}");
    // Nobody wants the tickets any more: their jobs end at once.
    client.delete(&format!("/api/events/{event}?force=true")).await.expect(204);
    eventually(PATIENCE, workers(1)).await;

    let history = client.get("/api/scaling/history").await.expect(200);
    let mut steps: Vec<&Value> = history["history"].as_array().unwrap().iter().collect();
    steps.reverse();
    let mut before = 1;
    for step in &steps {
        let after = step["workers"].as_u64().unwrap();
        let (action, reason) = (text(&step["action"]), text(&step["reason"]));
        if after > before {
            assert!(action == "scale_up" && reason.starts_with("Queue pressure"), "{step}");
        } else {
            assert!(action == "scale_down" && reason.starts_with("Idle queue"), "{step}");
            assert_eq!(after, before - 1, "one by one: {steps:?}");
        }
        // The node decides for itself while it has no coordinator, for instance right after its start.
        let decided_by = &step["coordinator"];
        assert!(
            step["nodeId"] == "busy" && (decided_by.is_null() || decided_by == "busy"),
            "{step}"
        );
        before = after;
    }
    assert_eq!(before, 1, "the history explains every step: {steps:?}");
    assert!(steps.iter().filter(|step| step["action"] == "scale_up").count() <= 2, "{steps:?}");
}
