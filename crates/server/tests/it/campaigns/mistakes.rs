//! Every mistake of a request is named at once, with its field.

use serde_json::json;

use super::{fields, organiser, text};
use crate::start;

#[tokio::test]
async fn all_mistakes_of_a_campaign_are_named_at_once() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let wrong = json!({
        "accountId": "a/b", "nme": "News", "maxAttempts": 0, "endAt": "tomorrow",
        "pacing": {
            "limit": { "max": -1 }, "spacing": { "minMs": 5, "maxMs": 1 }, "speed": 1,
            "quietHours": { "from": "9pm", "to": "09:00", "days": ["friday", "freitag"] },
        },
        "content": { "kind": "own", "text": "x", "whatsappValues": [1] },
        "autoPause": { "failedPercent": 101 },
        "recipients": [
            { "phoneNumber": "79991234567", "message": "x" }, { "message": "x" }, 7,
            { "email": "a@example.org", "address": "b" },
        ],
    });
    let problem = ann.post("/api/contracts", &wrong).await.expect(422);
    let mut named = fields(&problem);
    named.sort();
    let mut wanted = vec![
        "accountId",
        "nme",
        "name",
        "maxAttempts",
        "endAt",
        "pacing.speed",
        "pacing.limit.max",
        "pacing.limit.perMs",
        "pacing.spacing.maxMs",
        "pacing.quietHours.from",
        "pacing.quietHours.days[1]",
        "content.kind",
        "content.whatsappValues[0]",
        "autoPause.failedPercent",
        "recipients[1]",
        "recipients[2]",
        "recipients[3]",
    ];
    wanted.sort_unstable();
    assert_eq!(named, wanted, "{problem}");
    assert_eq!(ann.get("/api/contracts").await.expect(200)["contracts"], json!([]));
}

#[tokio::test]
async fn mistakes_of_the_body_and_of_its_values_come_in_one_round() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let wrong = json!({
        "accountId": "unknown", "name": 7, "startAt": "soon", "timeZone": "Mars/Base", "country": "Germany",
        "content": { "text": "{% for a in b %}x{% endfor %}", "attachTicket": "yes" },
        "pacing": { "rest": { "every": 1, "forMs": 0 } },
        "recipients": [{ "message": "x" }],
    });
    let problem = ann.post("/api/contracts", &wrong).await.expect(422);
    let mut named = fields(&problem);
    named.sort();
    named.dedup();
    let wanted = [
        "accountId",
        "content.attachTicket",
        "content.text",
        "country",
        "name",
        "pacing.rest.forMs",
        "recipients[0]",
        "startAt",
        "timeZone",
    ];
    assert_eq!(named, wanted, "{problem}");
    let made = ann.post("/api/contracts", &json!({ "accountId": "console", "name": "N" })).await;
    let path = format!("/api/contracts/{}", text(&made.expect(201)["id"]));
    let wrong =
        json!({ "maxAttempts": 0, "timeZone": "Mars/Base", "content": { "text": "{{ a b }}" } });
    let mut named = fields(&ann.patch(&path, &wrong).await.expect(422));
    named.sort();
    assert_eq!(named, ["content.text", "maxAttempts", "timeZone"]);
}

#[tokio::test]
async fn mistakes_of_values_and_templates_are_named_with_their_place() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    for (field, value, told) in [
        ("accountId", json!("unknown"), "accountId"),
        ("timeZone", json!("Mars/Base"), "timeZone"),
        ("country", json!("Germany"), "country"),
        ("content", json!({ "text": "{% for a in b %}x{% endfor %}" }), "content"),
    ] {
        let mut body = json!({ "accountId": "console", "name": "News" });
        body[field] = value;
        let problem = ann.post("/api/contracts", &body).await.expect(422);
        assert!(fields(&problem)[0].starts_with(told), "{body}: {problem}");
    }
    let made = ann.post("/api/contracts", &json!({ "accountId": "console", "name": "N" })).await;
    let path = format!("/api/contracts/{}", text(&made.expect(201)["id"]));
    for (body, told) in [
        (json!({}), "changes nothing"),
        (json!({ "status": "running" }), "status cannot be changed"),
        (json!({ "name": null }), "name is missing"),
        (json!({ "pace": {} }), "pace is not known here"),
    ] {
        let problem = ann.patch(&path, &body).await.expect(422);
        assert!(text(&problem["detail"]).contains(told), "{body}: {problem}");
    }
    ann.get("/api/contracts?state=sleeping").await.expect(400);
    ann.get(&format!("{path}/recipients?after=x")).await.expect(400);
    ann.delete("/api/suppressions").await.expect(400);
}

#[tokio::test]
async fn all_mistakes_of_an_account_are_named_and_no_answer_has_its_credentials() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let wrong = json!({ "id": "..", "channel": "pigeon", "settings": [], "shared": true });
    let problem = ann.post("/api/accounts", &wrong).await.expect(422);
    assert_eq!(fields(&problem), ["id", "channel", "settings", "shared"], "{problem}");
    let webhook = json!({ "id": "hook", "channel": "webhook", "settings": { "url": "ftp://x" } });
    let problem = ann.post("/api/accounts", &webhook).await.expect(422);
    let named = fields(&problem);
    assert!(named.contains(&"settings.url".to_owned()), "{problem}");
    assert!(named.contains(&"credentials.secret".to_owned()), "{problem}");

    let secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": "https://example.com/send" },
        "credentials": { "secret": secret },
    });
    let made = ann.post("/api/accounts", &account).await;
    assert!(!String::from_utf8_lossy(&made.bytes).contains(secret));
    made.expect(201);
    assert_eq!(ann.post("/api/accounts", &account).await.expect(409)["code"], "id_taken");
    let patch = json!({ "credentials": { "secret": secret }, "name": "Hook" });
    ann.patch("/api/accounts/hook", &patch).await.expect(200);
    for path in ["/api/accounts", "/api/accounts/hook"] {
        let answer = ann.get(path).await;
        assert!(!String::from_utf8_lossy(&answer.bytes).contains(secret), "{path}");
    }
    let audit = app.admin().get("/api/audit?operation=updateAccount").await;
    let told = String::from_utf8_lossy(&audit.bytes).into_owned();
    assert!(told.contains("\"hook\"") && !told.contains(secret), "{told}");
    assert!(!app.log().contains(secret));
    ann.delete("/api/accounts/hook").await.expect(204);
}
