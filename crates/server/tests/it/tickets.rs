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
