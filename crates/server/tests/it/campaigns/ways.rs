//! From a file to a report.

use reqwest::Method;
use serde_json::json;
use stampede_testkit::send;

use super::{completed, fast_account, fields, organiser, people, text, upload, verb};
use crate::start;

const CSV: &str = "text/csv";

#[tokio::test]
async fn a_thousand_rows_of_csv_become_a_thousand_messages_and_a_report() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    fast_account(&ann, "fast").await;
    let body = json!({
        "accountId": "fast", "name": "Doors open",
        "content": { "text": "Hello {{ name }}, your seat is {{ seat }}." },
    });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    assert_eq!(made["content"]["kind"], "template", "{made}");
    let path = format!("/api/contracts/{}", text(&made["id"]));
    let mut file = "phone;name;seat\n".to_owned();
    for n in 0..1_000 {
        file += &format!("+4915100{n:06};Guest {n};A-{n}\n");
    }
    file += "+4915100000007;Twice;B-1\n;Nobody;B-2\n";
    let dry = upload(&ann, &format!("{path}/recipients?dryRun=1"), CSV, file.clone()).await;
    let dry = dry.expect(200);
    assert_eq!((&dry["dryRun"], &dry["added"]), (&json!(true), &json!(1_000)), "{dry}");
    assert_eq!(ann.get(&path).await.expect(200)["counts"]["total"], 0, "nothing is written");
    let report = upload(&ann, &format!("{path}/recipients"), CSV, file).await.expect(200);
    assert_eq!((&report["added"], &report["duplicates"]), (&json!(1_000), &json!(1)), "{report}");
    assert_eq!(report["duplicateRows"][0], json!({ "line": 1_002, "firstLine": 9 }), "{report}");
    assert!(report["mistakesTotal"].as_u64() >= Some(1), "the last row has no address: {report}");

    let valid = verb(&ann, &path, "validate").await.expect(200);
    assert_eq!((&valid["ok"], &valid["toSend"]), (&json!(true), &json!(1_000)), "{valid}");
    let preview = ann.post(&format!("{path}/preview"), &json!({ "position": 8 })).await.expect(200);
    assert_eq!(preview["text"], "Hello Guest 7, your seat is A-7.", "{preview}");

    verb(&ann, &path, "start").await.expect(200);
    let ended = completed(&ann, &path).await;
    assert_eq!((&ended["counts"]["sent"], &ended["counts"]["failed"]), (&json!(1_000), &json!(0)));
    let report = ann.get(&format!("{path}/report")).await.expect(200);
    assert_eq!(report["contract"]["counts"], ended["counts"]);
    let sent: u64 =
        report["minutes"].as_array().unwrap().iter().map(|m| m["sent"].as_u64().unwrap()).sum();
    assert_eq!(sent, 1_000, "{report}");
    let csv = ann.get(&format!("{path}/report.csv")).await;
    assert!(csv.headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    let compressed = ann.request(Method::GET, &format!("{path}/report.csv"));
    let compressed = send(compressed.header("accept-encoding", "gzip")).await;
    assert_eq!(compressed.headers["content-encoding"], "gzip");
    assert!(compressed.bytes.len() < csv.bytes.len() / 2, "{}", compressed.bytes.len());
    let rows = String::from_utf8(csv.bytes).unwrap();
    let total = ended["counts"]["total"].as_u64().unwrap() as usize;
    assert_eq!(rows.lines().count(), total + 1, "a head, and a row for each recipient");
    let log = app.log();
    assert!(log.contains("Hello Guest 999, your seat is A-999."), "the console writes to the log");

    let page = ann.get(&format!("{path}/recipients?state=sent&limit=2")).await.expect(200);
    assert_eq!(page["next"], 2, "{page}");
    let next = ann.get(&format!("{path}/recipients?state=sent&limit=2&after=2")).await.expect(200);
    let third = &next["recipients"][0];
    assert_eq!((&third["position"], &third["status"]), (&json!(3), &json!("sent")), "{next}");
    let one = ann.get(&format!("{path}/recipients/{}", text(&third["id"]))).await.expect(200);
    assert_eq!((&one["log"][0]["outcome"], &one["attempts"]), (&json!("sent"), &json!(1)), "{one}");
}

#[tokio::test]
async fn recipients_come_as_ndjson_and_json_too_and_as_guests_of_an_order() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let path = super::campaign(&ann, "console", 1).await;
    let recipients = format!("{path}/recipients");
    let lines = "{\"phoneNumber\":\"+4915200000001\",\"message\":\"a\"}\n{\"phoneNumber\":\"+4915200000002\",\"message\":\"b\"}\n";
    let report = upload(&ann, &recipients, "application/x-ndjson", lines).await.expect(200);
    assert_eq!(report["added"], 2, "{report}");
    let json = json!(people(3)[1..]).to_string();
    let report = upload(&ann, &recipients, "application/json", json).await.expect(200);
    assert_eq!(report["added"], 2, "{report}");
    let report = upload(&ann, &recipients, "text/csv", "colour\nred\n").await.expect(422);
    assert_eq!(report["code"], "unreadable_file", "{report}");
    let report = upload(&ann, &recipients, "text/csv", "colour,tz\nred,Mars\n").await.expect(422);
    let errors = report["errors"].as_array().unwrap();
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64()).collect();
    assert_eq!((lines, &report["errorCount"]), (vec![Some(1), Some(2)], &json!(2)), "{report}");
    upload(&ann, &recipients, "image/png", "x").await.expect(415);

    let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let holders = json!([
        { "name": "Ann", "email": "ann@example.org" },
        { "name": "Bob" },
        { "name": "Kim", "phoneNumber": 4_915_200_000_001_u64, "chatId": "42" },
    ]);
    let order = json!({ "target": event["id"], "holders": holders });
    let order = ann.post("/api/tickets", &order).await.expect(200);
    let mail =
        ann.post("/api/contracts", &json!({ "accountId": "console", "name": "Guests" })).await;
    let mail = format!("/api/contracts/{}", text(&mail.expect(201)["id"]));
    let guests = json!({ "batchId": order["batchId"] });
    let report = ann.post(&format!("{mail}/guests"), &guests).await.expect(200);
    assert_eq!((&report["rows"], &report["added"]), (&json!(3), &json!(2)), "{report}");
    let told = &report["mistakes"][0]["message"];
    assert_eq!(told, "ticket 2: its holder has no address", "{report}");
    assert_eq!(report["first"][2]["address"], "+4915200000001", "{report}");
    let made = ann.get(&mail).await.expect(200);
    assert_eq!((&made["eventId"], &made["batchId"]), (&event["id"], &order["batchId"]), "{made}");
    let again = ann.post(&format!("{mail}/guests"), &guests).await.expect(200);
    assert_eq!((&again["added"], &again["duplicates"]), (&json!(0), &json!(2)), "{again}");
    let ticket = crate::tickets_of(&app, &text(&order["batchId"])).await.remove(2);
    assert_eq!(
        (&ticket["phoneNumber"], &ticket["chatId"]),
        (&json!("4915200000001"), &json!("42"))
    );
    let patch = json!({ "phoneNumber": null, "chatId": 43 });
    let path = format!("/api/tickets/{}", text(&ticket["id"]));
    let changed = ann.patch(&path, &patch).await.expect(200);
    assert_eq!((changed.get("phoneNumber"), &changed["chatId"]), (None, &json!("43")), "{changed}");
    let bob = organiser(&app, "bob");
    let foreign = bob.post("/api/contracts", &json!({ "accountId": "console", "name": "B" })).await;
    let foreign = format!("/api/contracts/{}", text(&foreign.expect(201)["id"]));
    let problem = bob.post(&format!("{foreign}/guests"), &guests).await.expect(422);
    assert_eq!(fields(&problem), ["batchId"]);
}
