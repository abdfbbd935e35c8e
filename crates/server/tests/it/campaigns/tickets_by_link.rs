//! "Send everybody their ticket" over WhatsApp: an approved template with the link of each guest's own ticket.

use serde_json::{Value, json};
use stampede_testkit::{Provider, pdf_text};

use super::{HERE, completed, number, organiser, text, verb};
use crate::{batch_ended, start};

const PUBLIC: &str = "https://tickets.example.org";

#[tokio::test]
async fn every_guest_gets_the_link_of_their_own_ticket_over_whatsapp() {
    let provider = Provider::whatsapp().await;
    let api = provider.url();
    let settings =
        [HERE, ("WORKER_COUNT", "1"), ("WHATSAPP_API_URL", &api), ("PUBLIC_URL", PUBLIC)];
    let app = start(&settings).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "wa", "channel": "whatsapp", "settings": { "phoneNumberId": "106540352242922" },
        "credentials": { "accessToken": "EAAG-token-of-a-test-0123456789" },
        "pacing": { "limit": { "max": 100, "perMs": 1_000 } },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let holder = |n: usize| json!({ "name": format!("Guest {n:03}"), "phoneNumber": format!("+49151000012{n:02}") });
    let mut holders: Vec<Value> = (10..15).map(holder).collect();
    holders.push(json!({ "name": "Nobody" }));
    let order = json!({ "target": event["id"], "holders": holders });
    let order = ann.post("/api/tickets", &order).await.expect(200);
    let batch = text(&order["batchId"]);
    batch_ended(&app, &batch).await;
    let content = json!({
        "whatsappTemplate": "your_ticket", "whatsappLanguage": "en_US",
        "whatsappValues": ["{{ name }}", "{{ ticketUrl }}"],
    });
    let body = json!({ "accountId": "wa", "name": "Tickets", "content": content });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    let report =
        ann.post(&format!("{path}/guests"), &json!({ "batchId": batch })).await.expect(200);
    assert_eq!((&report["rows"], &report["added"]), (&json!(6), &json!(5)), "{report}");
    assert_eq!(verb(&ann, &path, "validate").await.expect(200)["ok"], true);
    verb(&ann, &path, "start").await.expect(200);
    let ended = completed(&ann, &path).await;
    assert_eq!((number(&ended, "sent"), number(&ended, "total")), (5, 6), "{ended}");

    let asked = provider.asked();
    let mut numbers: Vec<String> = Vec::new();
    for message in asked.iter().map(stampede_testkit::Asked::json) {
        let to = text(&message["to"]);
        let template = &message["template"];
        assert_eq!(
            (&message["type"], &template["name"]),
            (&json!("template"), &json!("your_ticket"))
        );
        let values = template["components"][0]["parameters"].as_array().unwrap();
        let [name, link] = values.as_slice() else { panic!("{message}") };
        let (name, link) = (text(&name["text"]), text(&link["text"]));
        assert_eq!(name, format!("Guest 0{}", &to[to.len() - 2..]), "{message}");
        let link = link.strip_prefix(PUBLIC).unwrap_or_else(|| panic!("{link}"));
        let pdf = app.stranger().get(link).await;
        assert_eq!(pdf.status, 200, "{link}");
        assert!(pdf_text(&pdf.bytes).contains(&name), "the ticket of somebody else");
        numbers.push(to);
    }
    numbers.sort();
    let wanted: Vec<String> = (10..15).map(|n| format!("49151000012{n:02}")).collect();
    assert_eq!(numbers, wanted);
}
