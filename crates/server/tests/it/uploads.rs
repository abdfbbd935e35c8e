//! Files of guests: as spreadsheets and programs make them, with every mistake named, in bounded memory.

mod arrival;
mod command;
mod large;
mod meanwhile;

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Client, send};

use crate::access::client;
use crate::{assert_all_ready, create_event, start, text, tickets_of};

/// Uploads a file.
async fn upload(client: &Client, path: &str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = client.request(Method::POST, path).header("Content-Type", kind);
    send(request.body(body.into())).await
}

fn path(event: &str) -> String {
    format!("/api/events/{event}/batches")
}

/// Number of orders for an event.
async fn orders(app: &App, event: &str) -> usize {
    let page = app.admin().get(&path(event)).await.expect(200);
    page["batches"].as_array().unwrap().len()
}

fn wide(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// `имя` and `Зоя` in windows-1251.
const CYRILLIC: &[u8] =
    b"\xe8\xec\xff;\xec\xe5\xf1\xf2\xee\r\n\xc7\xee\xff;A1\r\n\xc8\xe2\xe0\xed;A2\r\n";

#[tokio::test]
async fn a_file_becomes_tickets_whatever_its_form() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let csv = "\u{feff}ФИО;E-Mail;Место;Цена;Notes\r\n\"Зоя \"\"Z\"\" Петрова\";zoe@example.com;VIP 1;49,90;\"two\r\nlines\"\r\n\
               Ann;;;\r\n";
    let ndjson = "{\"name\":\"Зоя \\\"Z\\\" Петрова\",\"email\":\"zoe@example.com\",\"seat\":\"VIP 1\",\"price\":49.9}\n\n\
                  {\"name\":\"Ann\"}";
    let json = json!({ "holders": [
        { "name": "Зоя \"Z\" Петрова", "email": "zoe@example.com", "seat": "VIP 1", "price": "49.90" },
        { "name": "Ann" },
    ]});
    for (kind, body) in [
        ("text/csv", csv.as_bytes().to_vec()),
        ("text/csv; charset=utf-16le", wide(csv)),
        ("application/x-ndjson", ndjson.as_bytes().to_vec()),
        ("application/jsonl; charset=utf-8", ndjson.as_bytes().to_vec()),
        ("application/json", json.to_string().into_bytes()),
    ] {
        let answer = upload(&app.admin(), &path(&event), kind, body).await;
        let location = answer.headers.get("location").cloned();
        let accepted = answer.expect(202);
        let batch = text(&accepted["batchId"]);
        assert_eq!(location.unwrap().to_str().unwrap(), format!("/api/batches/{batch}"));
        assert_eq!((&accepted["success"], &accepted["total"]), (&json!(true), &json!(2)), "{kind}");
        assert!(accepted.get("tickets").is_none());
        assert_all_ready(&app, &batch, 2).await;
        let tickets = tickets_of(&app, &batch).await;
        assert_eq!(tickets[0]["name"], "Зоя \"Z\" Петрова", "{kind}");
        assert_eq!(tickets[0]["email"], "zoe@example.com");
        assert_eq!((&tickets[0]["seat"], &tickets[0]["price"]), (&json!("VIP 1"), &json!("49.90")));
        assert_eq!((&tickets[1]["name"], &tickets[1]["price"]), (&json!("Ann"), &json!(null)));
        assert_eq!((&tickets[0]["index"], &tickets[1]["index"]), (&json!(1), &json!(2)));
    }
    let listed = app.admin().get(&format!("{}?limit=3", path(&event))).await.expect(200);
    assert_eq!(listed["batches"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&listed["batches"][0]["completed"], &listed["batches"][0]["eventId"]),
        (&json!(2), &json!(event))
    );
    let next = text(&listed["next"]);
    let rest = app.admin().get(&format!("/api/batches?limit=3&after={next}")).await.expect(200);
    assert_eq!((rest["batches"].as_array().unwrap().len(), &rest["next"]), (2, &json!(null)));
    let numbers: Vec<Value> =
        tickets_of(&app, &next).await.iter().map(|t| t["number"].clone()).collect();
    assert_eq!(numbers, [json!(5), json!(6)], "numbers go on from order to order");
}

#[tokio::test]
async fn every_mistake_of_a_file_is_told_with_its_line_and_nothing_is_ordered() {
    let app = start(&[("WORKER_MODE", "api"), ("MAX_QUANTITY", "2000")]).await;
    let event = create_event(&app).await;
    let admin = app.admin();
    let csv = "name,email,price\nAnn,,\nBob,nobody,1\n,,-1\n\"Eve\n\",eve@example.com,2\n";
    let problem = upload(&admin, &path(&event), "text/csv", csv).await.expect(422);
    assert_eq!((&problem["code"], &problem["errorCount"]), (&json!("invalid_rows"), &json!(3)));
    let lines: Vec<(u64, &str)> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["line"].as_u64().unwrap(), error["field"].as_str().unwrap()))
        .collect();
    assert_eq!(lines, [(3, "email"), (4, "name"), (4, "price")]);
    assert!(
        text(&problem["detail"]).contains("line 3: email must be an e-mail address"),
        "{problem}"
    );

    let flood = format!("name,email\n{}", "Ann,x\n".repeat(1_500));
    let problem = upload(&admin, &path(&event), "text/csv", flood).await.expect(422);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1_000);
    assert_eq!(problem["errorCount"], 1_500);

    let many = format!("name\n{}", "Ann\n".repeat(2_001));
    for (kind, body, told) in [
        ("text/csv", many.into_bytes(), "more than 2000 rows"),
        ("text/csv", CYRILLIC.to_vec(), "charset=windows-1251"),
        ("text/csv", b"seat,price\nA,1\n".to_vec(), "no column is called \"name\""),
        ("text/csv", b"name\nAnn\n\"Bob\nEve\n".to_vec(), "opens on line 3"),
        ("text/csv", b"".to_vec(), "the file is empty"),
        ("text/csv", ",".repeat(100_000).into_bytes(), "columns"),
        ("application/x-ndjson", b"\n".to_vec(), "the file is empty"),
    ] {
        let problem = upload(&admin, &path(&event), kind, body).await.expect(422);
        assert_eq!(problem["code"], "unreadable_file", "{problem}");
        assert!(text(&problem["detail"]).contains(told), "{told}: {problem}");
    }
    let problem = upload(&admin, &path(&event), "application/json", "{").await.expect(400);
    assert_eq!(problem["code"], "invalid_json");
    for kind in ["text/plain", "multipart/form-data; boundary=x", "text/csv; charset=klingon"] {
        upload(&admin, &path(&event), kind, "name\nAnn\n").await.expect(415);
    }
    upload(&admin, &format!("{}?delimter=tab", path(&event)), "text/csv", "name\nA\n")
        .await
        .expect(400);
    upload(&admin, &format!("{}?price=x", path(&event)), "text/csv", "name\nA\n").await.expect(400);
    assert_eq!(orders(&app, &event).await, 0);
    let bob = client(&app, "organiser", "bob");
    upload(&bob, &path(&event), "text/csv", "name\nAnn\n").await.expect(403);
    bob.get(&path(&event)).await.expect(403);
    assert_eq!(bob.get("/api/batches").await.expect(200)["batches"], json!([]));
    let accepted =
        upload(&admin, &path(&event), "text/csv; charset=windows-1251", CYRILLIC).await.expect(202);
    assert_eq!(tickets_of(&app, &text(&accepted["batchId"])).await[0]["name"], "Зоя");
}

#[tokio::test]
async fn a_dry_run_tells_what_would_happen_and_writes_nothing() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let csv = "Guest;emial;Seat;Price\nAnn;a;A;10,50\n\u{13080};b;;\nБоб;;;5\n";
    let dry = format!("{}?dryRun=1&price=2", path(&event));
    let told = upload(&app.admin(), &dry, "text/csv", csv).await.expect(200);
    assert_eq!(
        (&told["dryRun"], &told["accepted"], &told["total"]),
        (&json!(true), &json!(true), &json!(3))
    );
    assert_eq!((&told["totalPrice"], &told["currency"]), (&json!("17.50"), &json!("EUR")));
    assert_eq!((&told["delimiter"], &told["encoding"]), (&json!("semicolon"), &json!("UTF-8")));
    let fields: Vec<&Value> =
        told["columns"].as_array().unwrap().iter().map(|c| &c["field"]).collect();
    assert_eq!(fields, [&json!("name"), &json!(null), &json!("seat"), &json!("price")]);
    assert_eq!(told["rows"][1]["line"], 3);
    let warnings = told["warnings"].as_array().unwrap();
    assert!(text(&warnings[0]["message"]).contains("did you mean email?"), "{told}");
    let glyph = warnings.iter().find(|w| w["kind"] == "missing_glyphs").unwrap();
    assert_eq!((&glyph["line"], &glyph["index"]), (&json!(3), &json!(2)), "{told}");
    let strict =
        upload(&app.admin(), &format!("{dry}&strict=1"), "text/csv", csv).await.expect(200);
    assert_eq!(strict["accepted"], false);
    let refused =
        upload(&app.admin(), &format!("{}?strict=1", path(&event)), "text/csv", csv).await;
    assert_eq!(refused.expect(422)["code"], "has_warnings");
    let wrong =
        upload(&app.admin(), &dry, "text/csv", "name,price\nAnn,x\nBob,1\n").await.expect(200);
    assert_eq!(
        (&wrong["accepted"], &wrong["total"], &wrong["errorCount"]),
        (&json!(false), &json!(1), &json!(1))
    );
    assert_eq!(
        (&wrong["errors"][0]["line"], &wrong["errors"][0]["field"]),
        (&json!(2), &json!("price"))
    );
    assert_eq!(orders(&app, &event).await, 0);
}

#[tokio::test]
async fn a_file_that_is_sent_twice_with_one_key_is_one_order() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let send_with = |body: &'static str, query: &str| {
        let request = app.admin().request(Method::POST, &format!("{}{query}", path(&event)));
        let request =
            request.header("Content-Type", "text/csv").header("Idempotency-Key", "guests-1");
        send(request.body(body))
    };
    let first = send_with("name\nAnn\nBob\n", "").await.expect(202);
    let again = send_with("name\nAnn\nBob\n", "").await.expect(202);
    assert_eq!((&first["batchId"], &again["total"]), (&again["batchId"], &json!(2)));
    for (body, query) in [("name\nAnn\nEve\n", ""), ("name\nAnn\nBob\n", "?seat=A")] {
        assert_eq!(send_with(body, query).await.expect(422)["code"], "key_reused");
    }
    let racing = futures::future::join_all((0..8).map(|_| async {
        let request = app.admin().request(Method::POST, &path(&event));
        let request =
            request.header("Content-Type", "text/csv").header("Idempotency-Key", "guests-2");
        let answer = send(request.body("name\nAnn\n")).await;
        (answer.status, answer.body["batchId"].clone())
    }))
    .await;
    let placed: std::collections::BTreeSet<String> =
        racing.iter().filter(|(status, _)| *status == 202).map(|(_, id)| text(id)).collect();
    assert_eq!(placed.len(), 1, "{racing:?}");
    assert!(racing.iter().all(|(status, _)| [202, 409, 429].contains(status)), "{racing:?}");
    assert_eq!(orders(&app, &event).await, 2);
}
