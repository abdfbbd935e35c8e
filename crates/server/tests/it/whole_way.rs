//! One order, from HTTP to a correct PDF, on every database.

use serde_json::json;
use stampede_testkit::{Postgres, Redis, eventually, pdf_pages, pdf_text};

use crate::{
    PATIENCE, assert_proves, batch_ended, create_event, key_ring, start, text, tickets_of,
};

const NAMES: [&str; 6] = [
    "Anna Bērziņa",
    "Иван Петров",
    "Zoë O’Connor",
    "<script>alert(1)</script>",
    "#let x = 1",
    "../../etc/passwd",
];

async fn an_order_becomes_correct_pdfs(settings: &[(&str, &str)]) {
    let app = start(settings).await;
    let event = create_event(&app).await;
    let holders: Vec<_> = NAMES
        .iter()
        .enumerate()
        .map(|(n, name)| json!({"name": name, "seat": format!("A-{n}"), "price": 49.9}))
        .collect();
    let order =
        app.order(json!({ "target": event, "quantity": NAMES.len(), "holders": holders })).await;
    assert_eq!(order["success"], true);
    let batch_id = text(&order["batchId"]);

    let batch = batch_ended(&app, &batch_id).await;
    assert_eq!(batch["status"], "completed");
    assert_eq!(batch["completed"], NAMES.len());
    assert_eq!(batch["secondsLeft"], 0.0);
    assert!(batch["queueStats"]["completed"].is_u64(), "{batch}");

    let keys = key_ring(&app, &event).await;
    let tickets = tickets_of(&app, &batch_id).await;
    for (n, ticket) in tickets.iter().enumerate() {
        let id = text(&ticket["id"]);
        assert_eq!(order["tickets"][n], id, "tickets are listed in the order they were ordered");
        assert_eq!((&ticket["price"], &ticket["currency"]), (&json!("49.90"), &json!("EUR")));
        let answer = app.admin().get(&format!("/api/tickets/{id}/pdf")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "application/pdf");
        let printed = pdf_text(&answer.bytes);
        for expected in [NAMES[n], &format!("A-{n}"), "€49.90", "Opening Night", "Main Hall"] {
            assert!(printed.contains(expected), "{expected:?} is not printed:\n{printed}");
        }
        assert_eq!(pdf_pages(&answer.bytes), 1);
        assert_eq!(ticket["number"], n + 1);
        assert_proves(&answer.bytes, &keys, ticket);
    }
}

#[tokio::test]
async fn an_order_becomes_correct_pdfs_with_nothing_configured() {
    an_order_becomes_correct_pdfs(&[]).await;
}

#[tokio::test]
async fn an_order_becomes_correct_pdfs_on_postgresql() {
    let (postgres, redis) = tokio::join!(Postgres::start(), Redis::start());
    let secret = "the-secret-of-all-nodes-of-this-test".to_owned();
    let settings = [
        ("DATABASE_URL", postgres.url()),
        ("REDIS_URL", redis.url()),
        ("TICKET_KEY_SECRET", secret),
    ];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    an_order_becomes_correct_pdfs(&settings).await;
}

#[tokio::test]
async fn an_order_of_ten_thousand_is_accepted_at_once() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 10_000, "name": "Crowd" })).await;
    assert_eq!(order["tickets"].as_array().unwrap().len(), 10_000);
    let path = format!("/api/batches/{}", text(&order["batchId"]));
    let batch = app.admin().get(&path).await.expect(200);
    assert_eq!((&batch["total"], &batch["pending"]), (&json!(10_000), &json!(10_000)));
    eventually(PATIENCE, || async {
        let batch = app.admin().get(&path).await.expect(200);
        if batch["queueStats"]["prioritized"] == 10_000 { Ok(()) } else { Err(batch.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn the_same_order_sent_twice_is_one_order() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "quantity": 3, "name": "Ann" });
    let send = || {
        let request = app.admin().request(reqwest::Method::POST, "/api/tickets");
        stampede_testkit::send(request.header("Idempotency-Key", "click-1").json(&order))
    };
    let (first, second) = tokio::join!(send(), send());
    assert_eq!(first.expect(200), second.expect(200));
    let other = json!({ "target": event, "quantity": 4, "name": "Ann" });
    let request = app.admin().request(reqwest::Method::POST, "/api/tickets");
    let answer =
        stampede_testkit::send(request.header("Idempotency-Key", "click-1").json(&other)).await;
    assert!(text(&answer.expect(422)["error"]).contains("another order"));
    let listed = app.admin().get("/api/tickets").await.expect(200);
    assert_eq!(listed["tickets"].as_array().unwrap().len(), 3);
}
