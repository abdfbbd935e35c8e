//! Whole batches: cancelled, tried again, written as a table that can be read again.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{App, eventually, send, temp_dir};

use crate::access::client;
use crate::{PATIENCE, batch_ended, create_event, start, text, tickets_of};

async fn counts(app: &App, batch: &str) -> Value {
    app.admin().get(&format!("/api/batches/{batch}")).await.expect(200)
}

/// Jobs of the queue that are not finished.
async fn waiting(app: &App, batch: &str) -> u64 {
    let stats = &counts(app, batch).await["queueStats"];
    ["waiting", "prioritized", "delayed", "active"]
        .iter()
        .map(|state| stats[state].as_u64().unwrap_or_else(|| panic!("{stats}")))
        .sum()
}

#[tokio::test]
async fn a_cancelled_batch_leaves_the_queue_and_keeps_what_was_made() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "name": "Ann", "quantity": 50 });
    let batch = text(&app.order(order).await["batchId"]);
    assert_eq!(waiting(&app, &batch).await, 50);
    let path = format!("/api/batches/{batch}/cancel");
    client(&app, "organiser", "bob").post(&path, &json!({})).await.expect(403);
    app.admin().post(&path, &json!({ "made": "burn" })).await.expect(422);
    app.admin().post(&path, &json!({ "mode": "void" })).await.expect(422);
    let told = send(app.admin().request(Method::POST, &path)).await.expect(200);
    assert_eq!((&told["cancelled"], &told["madeVoided"]), (&json!(50), &json!(0)));
    assert_eq!((&told["kept"], &told["voided"]), (&json!(0), &json!(50)));
    eventually(PATIENCE, || async {
        match waiting(&app, &batch).await {
            0 => Ok(()),
            left => Err(format!("{left} jobs are left")),
        }
    })
    .await;
    let again = app.admin().post(&path, &json!({})).await.expect(200);
    assert_eq!((&again["cancelled"], &again["voided"]), (&json!(0), &json!(50)));
    let ended = counts(&app, &batch).await;
    assert_eq!((&ended["status"], &ended["voided"]), (&json!("completed"), &json!(50)));
    let unknown = "/api/batches/01890a5d-ac96-774b-bcce-b302099a8057";
    app.admin().post(&format!("{unknown}/cancel"), &json!({})).await.expect(404);
    app.admin().post(&format!("{unknown}/retry"), &json!({})).await.expect(404);
}

#[tokio::test]
async fn cancelling_while_workers_run_is_exact() {
    let app = start(&[("STAMPEDE_SLOW_TICKETS", "20"), ("JOB_CONCURRENCY", "2")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "name": "Ann", "quantity": 300 });
    let batch = text(&app.order(order).await["batchId"]);
    eventually(PATIENCE, || async {
        match counts(&app, &batch).await["completed"].as_u64().unwrap() {
            0..20 => Err("too few".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    let path = format!("/api/batches/{batch}/cancel");
    let told = app.admin().post(&path, &json!({})).await.expect(200);
    let (cancelled, kept) = (told["cancelled"].as_u64().unwrap(), told["kept"].as_u64().unwrap());
    assert!(cancelled > 0 && cancelled + kept == 300, "{told}");
    let ended = batch_ended(&app, &batch).await;
    assert_eq!((&ended["completed"], &ended["voided"]), (&json!(kept), &json!(cancelled)));
    eventually(PATIENCE, || async {
        match waiting(&app, &batch).await {
            0 => Ok(()),
            left => Err(format!("{left} jobs are left")),
        }
    })
    .await;
    // Workers that were in the middle of a void ticket leave no file.
    let tickets = tickets_of(&app, &batch).await;
    let file = |ticket: &Value| {
        app.data_dir().join(format!("public/tickets/ticket-{}.pdf", text(&ticket["id"])))
    };
    let files = || -> (usize, usize) {
        let (made, void): (Vec<&Value>, Vec<&Value>) =
            tickets.iter().partition(|ticket| ticket["status"] == "completed");
        let there =
            |tickets: Vec<&Value>| tickets.iter().filter(|ticket| file(ticket).exists()).count();
        (there(made), there(void))
    };
    assert_eq!(files(), (kept as usize, 0));
    assert!(app.command(&["doctor"]).0, "counters are those of the tickets");

    let told = app.admin().post(&path, &json!({ "made": "void" })).await.expect(200);
    assert_eq!((&told["madeVoided"], &told["kept"]), (&json!(kept), &json!(0)));
    eventually(PATIENCE, || async {
        let left = tickets.iter().filter(|ticket| file(ticket).exists()).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} files are left")) }
    })
    .await;
}

/// Typeset for every ticket; fails for one name.
const PICKY: &str = r#"
#let t = json("ticket.json")
#if t.name == "Bob" { panic("no such guest") }
#t.name
"#;

#[tokio::test]
async fn failed_tickets_are_tried_again() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, PICKY).unwrap();
    let mut app = start(&[("TICKET_TEMPLATE", &template.display().to_string())]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann" }, { "name": "Bob" }]);
    let batch = text(&app.order(json!({ "target": event, "holders": holders })).await["batchId"]);
    let ended = batch_ended(&app, &batch).await;
    assert_eq!((&ended["completed"], &ended["failed"]), (&json!(1), &json!(1)), "{ended}");
    // The operator mends the template.
    std::fs::write(&template, PICKY.replace("Bob", "Nobody")).unwrap();
    app.stop().await;
    app.start_again(&[]).await;
    let path = format!("/api/batches/{batch}/retry");
    client(&app, "organiser", "bob").post(&path, &json!({})).await.expect(403);
    let answer = send(app.admin().request(Method::POST, &path)).await;
    assert_eq!(answer.headers["location"], format!("/api/batches/{batch}").as_str());
    let told = answer.expect(202);
    assert_eq!((&told["retried"], &told["pending"]), (&json!(1), &json!(1)));
    let ended = batch_ended(&app, &batch).await;
    assert_eq!((&ended["completed"], &ended["failed"]), (&json!(2), &json!(0)));
    let again = send(app.admin().request(Method::POST, &path)).await.expect(202);
    assert_eq!(again["retried"], 0);
}

#[tokio::test]
async fn a_batch_is_written_as_a_table_that_can_be_uploaded_again() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let mut holders: Vec<Value> =
        (0..250).map(|n| json!({ "name": format!("Guest {n}"), "price": "1.50" })).collect();
    holders.push(json!({ "name": "=HYPERLINK(\"http://evil\",\"x\")", "email": "+x@example.com", "seat": "-1" }));
    holders.push(json!({ "name": "O'Neil; \"Zoë\", Иван", "seat": "@SUM(A1)" }));
    let order = json!({ "target": event, "holders": holders });
    let batch = text(&app.order(order).await["batchId"]);
    let path = format!("/api/batches/{batch}/tickets.csv");
    let answer = app.admin().get(&path).await;
    assert_eq!(answer.headers["content-type"], "text/csv; charset=utf-8; header=present");
    let table = String::from_utf8(answer.bytes).unwrap();
    assert!(table.starts_with("name,email,seat,price,currency,status,"), "{table}");
    assert_eq!(table.lines().count(), 253);
    assert!(table.contains("\"'=HYPERLINK(") && table.contains(",'+x@example.com,'-1,"), "{table}");
    let marked = app.admin().get(&format!("{path}?bom")).await.bytes;
    assert_eq!(&marked[..3], b"\xef\xbb\xbf");
    client(&app, "organiser", "bob").get(&path).await.expect(403);
    let upload =
        app.admin().request(Method::POST, &format!("/api/events/{event}/batches?strict=1"));
    let again = send(upload.header("Content-Type", "text/csv").body(marked)).await.expect(202);
    let (first, second) =
        (tickets_of(&app, &batch).await, tickets_of(&app, &text(&again["batchId"])).await);
    assert_eq!(second.len(), 252);
    for (one, two) in first.iter().zip(&second) {
        for field in ["name", "email", "seat", "price", "index"] {
            assert_eq!(one[field], two[field]);
        }
    }
}
