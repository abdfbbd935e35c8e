//! The id of a request is in its answer, in its problems, in the log, in the jobs it adds and in the log of their worker.

use reqwest::Method;
use serde_json::json;
use stampede_testkit::{Answer, App, eventually, send};

use crate::{PATIENCE, batch_ended, create_event, start, text};

async fn get(app: &App, path: &str, id: &str) -> Answer {
    send(app.admin().request(Method::GET, path).header("X-Request-Id", id)).await
}

fn id_of(answer: &Answer) -> String {
    answer.headers["x-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_answer_has_an_id_which_the_client_may_choose() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    for path in
        ["/api/events", "/health", "/ready", "/api/docs", "/gate", "/nowhere", "/api/events/x"]
    {
        let (chosen, made) = (get(&app, path, "order-4711.a:b").await, app.admin().get(path).await);
        assert_eq!(id_of(&chosen), "order-4711.a:b", "{path}");
        assert_eq!(id_of(&made).len(), 32, "{path}");
        assert_ne!(id_of(&made), id_of(&app.admin().get(path).await), "{path}");
    }
    for unsafe_one in ["", "a b", "a\"b", "{x}", "é", &"x".repeat(129), &"x".repeat(20_000)] {
        let replaced = id_of(&get(&app, "/api/events", unsafe_one).await);
        assert!(replaced.len() == 32 && replaced != unsafe_one, "{unsafe_one:?}: {replaced}");
    }
}

#[tokio::test]
async fn problems_carry_the_id_of_their_request() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let bodies = [
        get(&app, "/nowhere", "r-404").await.expect(404),
        get(&app, "/api/events/x", "r-id").await.expect(404),
        get(&app, "/api/events?limit=x", "r-400").await.expect(400),
    ];
    let ids: Vec<&str> = bodies.iter().map(|body| body["requestId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r-404", "r-id", "r-400"]);
    let refused = app.stranger().get("/api/events").await;
    assert_eq!(refused.body["requestId"], id_of(&refused));
    refused.expect(401);
    let unknown = send(app.admin().request(Method::PUT, "/api/events")).await;
    assert_eq!(unknown.body["requestId"], id_of(&unknown));
    unknown.expect(405);
}

#[tokio::test]
async fn jobs_and_the_log_of_their_worker_name_the_request_that_caused_them() {
    let slow = [("STAMPEDE_SLOW_TICKETS", "60000"), ("WORKER_COUNT", "1"), ("LOG_LEVEL", "info")];
    let app = start(&slow).await;
    let order = json!({ "target": create_event(&app).await, "name": "Ann" });
    let ordered = app.admin().request(Method::POST, "/api/tickets").header("X-Request-Id", "buy-1");
    let ticket = text(&send(ordered.json(&order)).await.expect(200)["tickets"][0]);
    let path = format!("/api/queues/tickets/jobs/{ticket}");
    eventually(PATIENCE, || async {
        let job = app.admin().get(&path).await.expect(200);
        if job["state"] == "active" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
    let job = app.admin().get(&path).await.expect(200);
    assert_eq!(job["data"]["requestId"], "buy-1", "{job}");
    app.admin().post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    let line = eventually(PATIENCE, || async {
        let log = app.log();
        let line = log.lines().find(|line| line.contains("job was cancelled"));
        line.map(str::to_owned).ok_or(log.clone())
    })
    .await;
    assert!(line.contains("request_id=buy-1") && line.contains(&ticket), "{line}");
}

#[tokio::test]
async fn the_job_of_an_edit_names_the_edit() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let order = json!({ "target": create_event(&app).await, "name": "Ann" });
    let order = app.order(order).await;
    let ticket = text(&order["tickets"][0]);
    batch_ended(&app, &text(&order["batchId"])).await;
    let edit = app.admin().request(Method::PATCH, &format!("/api/tickets/{ticket}"));
    send(edit.header("X-Request-Id", "edit-7").json(&json!({ "name": "Bob" }))).await.expect(200);
    let path = format!("/api/queues/tickets/jobs/{ticket}");
    let job = app.admin().get(&path).await.expect(200);
    assert_eq!(job["data"]["requestId"], "edit-7", "{job}");
}

#[tokio::test]
async fn log_lines_of_a_request_carry_its_id_at_every_level() {
    let app = start(&[("WORKER_MODE", "api"), ("LOG_LEVEL", "info"), ("LOG_FORMAT", "json")]).await;
    let key = json!({ "name": "till", "role": "viewer", "user": "ann" });
    let made = app.admin().request(Method::POST, "/api/keys").header("X-Request-Id", "key-1");
    send(made.json(&key)).await.expect(201);
    let line = eventually(PATIENCE, || async {
        let log = app.log();
        let line = log.lines().find(|line| line.contains("API key made"));
        line.map(str::to_owned).ok_or(log.clone())
    })
    .await;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["span"]["request_id"], "key-1", "{line}");
}
