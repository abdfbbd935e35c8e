//! Tickets after they were ordered: changed, withdrawn, deleted.

use serde_json::json;
use stampede_testkit::{eventually, pdf_text};

use crate::{PATIENCE, batch_ended, create_event, start, text};

#[tokio::test]
async fn a_changed_ticket_gets_a_new_pdf() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann", "price": 10 })).await;
    let (batch, path) =
        (text(&order["batchId"]), format!("/api/tickets/{}", text(&order["tickets"][0])));
    batch_ended(&app, &batch).await;
    let changed =
        app.admin().patch(&path, &json!({ "name": "Beatrice", "seat": "VIP" })).await.expect(200);
    assert_eq!((&changed["name"], &changed["status"]), (&json!("Beatrice"), &json!("pending")));
    let pdf = eventually(PATIENCE, || async {
        let answer = app.admin().get(&format!("{path}/pdf")).await;
        if answer.status == 200 { Ok(answer.bytes) } else { Err(answer.body.to_string()) }
    })
    .await;
    let printed = pdf_text(&pdf);
    assert!(
        printed.contains("Beatrice") && printed.contains("VIP") && printed.contains("€10.00"),
        "{printed}"
    );
    assert_eq!(batch_ended(&app, &batch).await["completed"], 1);
    app.admin().patch(&path, &json!({ "name": "" })).await.expect(422);
    app.admin().patch(&path, &json!({ "naem": "Typo" })).await.expect(422);
    let cleared =
        app.admin().patch(&path, &json!({ "seat": null, "price": null })).await.expect(200);
    assert_eq!((&cleared["seat"], &cleared["price"]), (&json!(null), &json!(null)));
}

#[tokio::test]
async fn tickets_are_numbered_within_their_event_whatever_the_order() {
    let app = start(&[]).await;
    let (event, other) = (create_event(&app).await, create_event(&app).await);
    app.order(json!({ "target": event, "quantity": 2, "name": "Ann" })).await;
    app.order(json!({ "target": other, "quantity": 5, "name": "Eve" })).await;
    let order = app.order(json!({ "target": event, "name": "Bob" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let path = format!("/api/tickets/{}", text(&order["tickets"][0]));
    let ticket = app.admin().get(&path).await.expect(200);
    assert_eq!((&ticket["number"], &ticket["index"]), (&json!(3), &json!(1)));
    let printed = pdf_text(&app.admin().get(&format!("{path}/pdf")).await.bytes);
    assert!(printed.contains("0003"), "{printed}");
}

#[tokio::test]
async fn changes_at_the_same_time_do_not_undo_each_other() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    let (event, ticket) =
        (format!("/api/events/{event}"), format!("/api/tickets/{}", text(&order["tickets"][0])));
    for round in 0..10 {
        let (name, place) = (format!("Name {round}"), format!("Place {round}"));
        let (a, b, c, d) = (
            json!({ "name": name }),
            json!({ "location": place }),
            json!({ "name": name }),
            json!({ "seat": place }),
        );
        let client = app.admin();
        let answers = tokio::join!(
            client.patch(&event, &a),
            client.patch(&event, &b),
            client.patch(&ticket, &c),
            client.patch(&ticket, &d),
        );
        for answer in [answers.0, answers.1, answers.2, answers.3] {
            answer.expect(200);
        }
        let (event, ticket) =
            (client.get(&event).await.expect(200), client.get(&ticket).await.expect(200));
        assert_eq!((&event["name"], &event["location"]), (&json!(name), &json!(place)));
        assert_eq!((&ticket["name"], &ticket["seat"]), (&json!(name), &json!(place)));
    }
}

#[tokio::test]
async fn a_void_ticket_is_not_handed_out_and_does_not_hold_up_its_batch() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    let path = format!("/api/tickets/{}", text(&order["tickets"][0]));
    let void = app.admin().patch(&path, &json!({ "status": "void" })).await.expect(200);
    assert_eq!(void["status"], "void");
    app.admin().get(&format!("{path}/pdf")).await.expect(410);
    app.admin().patch(&path, &json!({ "name": "Bob" })).await.expect(409);
    app.admin().patch(&path, &json!({ "status": "completed" })).await.expect(422);
    let batch =
        app.admin().get(&format!("/api/batches/{}", text(&order["batchId"]))).await.expect(200);
    assert_eq!((&batch["status"], &batch["voided"]), (&json!("completed"), &json!(1)));
}

#[tokio::test]
async fn deleting_removes_record_job_and_file() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 2, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let id = text(&order["tickets"][0]);
    let file = app.data_dir().join(format!("public/tickets/ticket-{id}.pdf"));
    assert!(file.exists());
    app.admin().delete(&format!("/api/tickets/{id}")).await.expect(204);
    app.admin().get(&format!("/api/tickets/{id}")).await.expect(404);
    app.admin().delete(&format!("/api/tickets/{id}")).await.expect(404);
    assert!(!file.exists());
    assert_eq!(batch_ended(&app, &text(&order["batchId"])).await["total"], 1);

    let path = format!("/api/events/{event}");
    assert!(text(&app.admin().delete(&path).await.expect(409)["error"]).contains("force=true"));
    app.admin().delete(&format!("{path}?force=true")).await.expect(204);
    app.admin().get(&path).await.expect(404);
    assert_eq!(app.admin().get("/api/tickets").await.expect(200)["tickets"], json!([]));
}
