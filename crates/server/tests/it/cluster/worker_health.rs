//! A node that only works says how it is, and nothing else.

use serde_json::json;
use stampede_testkit::{Redis, eventually, temp_dir};

use super::NOTICED;
use crate::start;

#[tokio::test]
async fn a_node_that_only_works_answers_health_and_ready() {
    let (mut redis, folder) = (Redis::start().await, temp_dir());
    let (url, database) = (redis.url(), format!("sqlite:{}", folder.path().join("a.db").display()));
    let settings = [
        ("REDIS_URL", url.as_str()),
        ("DATABASE_URL", &database),
        ("WORKER_MODE", "worker"),
        ("SERVER_NAME", "w"),
        ("WORKER_COUNT", "1"),
    ];
    let worker = start(&settings).await;
    let log = worker.log();
    assert!(log.contains("works as node w: 1 process") && log.contains("/health;"), "{log}");
    eventually(NOTICED, || async {
        let ready = worker.stranger().try_get("/ready").await?;
        if ready.status == 200 { Ok(()) } else { Err(ready.body.to_string()) }
    })
    .await;
    let health = worker.stranger().get("/health").await.expect(200);
    assert_eq!(health, json!({ "status": "ok" }));
    let refused = worker.stranger().get("/api/events").await.expect(404);
    assert!(refused["error"].as_str().unwrap().contains("only works"), "{refused}");
    redis.stop().await;
    let ready = worker.stranger().get("/ready").await.expect(503);
    assert_eq!((&ready["redis"], &ready["database"]), (&json!("down"), &json!("up")), "{ready}");
    worker.stranger().get("/health").await.expect(200);
}
