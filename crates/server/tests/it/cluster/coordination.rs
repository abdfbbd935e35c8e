//! One node coordinates, and never two.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_testkit::{Redis, Signal, eventually};

use super::{NOTICED, coordinator_other_than, node_becomes};
use crate::start;

#[tokio::test]
async fn a_coordinator_that_was_paused_is_replaced_and_does_not_act_any_more() {
    let redis = Redis::start().await;
    let url = redis.url();
    let common = [("REDIS_URL", url.as_str()), ("WORKER_MODE", "api")];
    let with_name = |name| [common[0], common[1], ("SERVER_NAME", name)];
    let mut first = start(&with_name("first")).await;
    let second = start(&with_name("second")).await;
    let client = second.admin();
    assert_eq!(coordinator_other_than(&client, "").await, "first");
    let token = |shown: serde_json::Value| shown["coordinator"]["token"].as_u64().unwrap();
    let before = token(client.get("/api/cluster").await.expect(200));

    let paused = Instant::now();
    first.signal(Signal::STOP);
    assert_eq!(coordinator_other_than(&client, "first").await, "second");
    assert!(paused.elapsed() < Duration::from_secs(10), "{:?}", paused.elapsed());
    let after = token(client.get("/api/cluster").await.expect(200));
    assert!(after > before, "{after} {before}");

    first.signal(Signal::CONT);
    eventually(NOTICED, || async {
        let log = first.log();
        if log.contains("not coordinate the cluster any more") { Ok(()) } else { Err(log) }
    })
    .await;
    node_becomes(&client, "first", |node| node["isCoordinator"] == false).await;
    assert_eq!(token(client.get("/api/cluster").await.expect(200)), after);
    let health = client.get("/health").await.expect(200);
    assert_eq!(health["roles"], json!(["api", "coordinator"]), "{health}");

    // One that leaves in good order hands over at once, and raises no alarm.
    drop(second);
    let client = first.admin();
    assert_eq!(coordinator_other_than(&client, "second").await, "first");
}

#[tokio::test]
async fn nodes_that_may_not_coordinate_scale_by_themselves() {
    let redis = Redis::start().await;
    let url = redis.url();
    let app = start(&[
        ("REDIS_URL", &url),
        ("SERVER_NAME", "alone"),
        ("IS_COORDINATOR", "false"),
        ("WORKER_COUNT", "1"),
        ("MIN_WORKERS", "1"),
        ("MAX_WORKERS", "3"),
        ("SCALE_UP_LOAD", "1000"),
        ("SCALE_INTERVAL_MS", "500"),
        ("SCALE_DOWN_COOLDOWN", "1"),
        ("JOB_CONCURRENCY", "1"),
        ("STAMPEDE_SLOW_TICKETS", "50"),
    ])
    .await;
    let client = app.admin();
    let event = super::event_at(&client).await;
    let order = json!({ "target": event, "quantity": 250, "name": "Crowd" });
    client.post("/api/tickets", &order).await.expect(200);
    node_becomes(&client, "alone", |node| node["workers"] == 3).await;
    let cluster = client.get("/api/cluster").await.expect(200);
    assert_eq!(cluster["coordinator"], json!(null), "{cluster}");
    let history = redis.cli(&["LRANGE", "scaling:history", "0", "-1"]);
    assert!(history.contains("\"by\":\"node\""), "{history}");
    node_becomes(&client, "alone", |node| node["states"]["target"] == 1).await;
}

#[tokio::test]
async fn a_queue_in_which_nothing_moves_raises_an_alert() {
    let app = start(&[("WORKER_MODE", "api"), ("STUCK_QUEUE_AFTER", "2")]).await;
    let client = app.admin();
    let event = super::event_at(&client).await;
    let order = json!({ "target": event, "quantity": 3, "name": "Nobody makes these" });
    client.post("/api/tickets", &order).await.expect(200);
    let alert = eventually(NOTICED, || async {
        let alerts = client.try_get("/api/cluster").await?.body["alerts"].take();
        let stuck = alerts.as_array().into_iter().flatten().find(|a| a["kind"] == "queue-stuck");
        stuck.cloned().ok_or_else(|| alerts.to_string())
    })
    .await;
    assert_eq!(alert["subject"], "tickets");
    assert!(alert["message"].as_str().unwrap().contains("3 jobs wait"), "{alert}");
    assert!(app.log().contains("queue tickets is stuck"), "{}", app.log());
    let (told, table) = app.command(&["nodes", "cluster"]);
    assert!(told && table.contains("queue-stuck"), "{table}");
}

#[tokio::test]
async fn whoever_commands_a_node_is_told_what_came_of_it() {
    let settings =
        [("SERVER_NAME", "n"), ("WORKER_COUNT", "1"), ("MIN_WORKERS", "1"), ("MAX_WORKERS", "2")];
    let app = start(&settings).await;
    let (worked, told) = app.command(&["nodes", "scale-up", "n"]);
    assert!(worked && told.contains("n: 1 → 2 workers, all running"), "{told}");
    assert_eq!(app.workers().len(), 2);
    let (worked, told) = app.command(&["nodes", "scale-up", "all", "--count", "5"]);
    assert!(
        worked && told.contains("stays at 2 workers") && told.contains("MAX_WORKERS"),
        "{told}"
    );
    let before = app.workers();
    let (worked, told) = app.command(&["nodes", "restart", "n", "--json"]);
    assert!(worked, "{told}");
    let answer: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    assert_eq!(answer["nodes"][0]["outcome"], "done", "{answer}");
    assert!(app.workers().iter().all(|pid| !before.contains(pid)), "{before:?}");
    let (worked, told) = app.command(&["nodes", "scale-down", "n", "--no-wait"]);
    assert!(worked && told.contains("told; what comes of it"), "{told}");
}

#[tokio::test]
async fn only_administrators_see_and_command_the_cluster() {
    let app = start(&[("WORKER_MODE", "api"), ("SERVER_NAME", "only")]).await;
    let (_, key) = app.command(&["token", "create", "--role", "organiser"]);
    let key = key.split_whitespace().find(|word| word.starts_with("stp_")).unwrap().to_owned();
    for path in ["/api/nodes", "/api/cluster", "/api/scaling/history"] {
        app.stranger().get(path).await.expect(401);
        app.client(&key).get(path).await.expect(403);
        app.admin().get(path).await.expect(200);
    }
    let command = json!({ "action": "scale_up" });
    let path = "/api/nodes/only/commands";
    app.stranger().post(path, &command).await.expect(401);
    app.client(&key).post(path, &command).await.expect(403);
    let nonsense = app.admin().post(path, &json!({ "action": "explode" })).await.expect(422);
    assert!(nonsense["error"].as_str().unwrap().contains("scale_down"), "{nonsense}");
    app.admin().post("/api/nodes/nobody/commands", &command).await.expect(404);
    let deaf = app.admin().post(path, &command).await.expect(409);
    assert!(deaf["error"].as_str().unwrap().contains("runs no workers"), "{deaf}");
}
