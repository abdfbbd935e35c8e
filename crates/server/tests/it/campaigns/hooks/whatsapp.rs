//! WhatsApp: the challenge, and receipts that are signed with the app secret.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{App, Provider, hub_signature, send, whatsapp_receipts};

use super::{HERE, campaign, completed, ledger, organiser, text, verb};
use crate::start;

const APP_SECRET: &str = "0123456789abcdef0123456789abcdef";
const PHONE_NUMBER: &str = "106540352242922";

/// An account of WhatsApp that sends from the same number as others.
fn whatsapp_account(id: &str, app_secret: &str) -> Value {
    json!({
        "id": id, "channel": "whatsapp", "settings": { "phoneNumberId": PHONE_NUMBER },
        "credentials": { "accessToken": "EAAG-token-of-a-test-0123456789", "appSecret": app_secret, "verifyToken": "our-verify-token" },
    })
}

#[tokio::test]
async fn whatsapp_is_answered_its_challenge_and_its_receipts_are_checked() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    ann.post("/api/accounts", &whatsapp_account("wa", APP_SECRET)).await.expect(201);
    let ask = |token: &str| {
        format!(
            "/hooks/whatsapp/wa?hub.mode=subscribe&hub.verify_token={token}&hub.challenge=1158201444"
        )
    };
    let stranger = app.stranger();
    let answer = stranger.get(&ask("our-verify-token")).await;
    assert_eq!((answer.status, answer.bytes.as_slice()), (200, b"1158201444".as_slice()));
    stranger.get(&ask("another")).await.expect(403);
    let post = |signature: Option<String>| {
        let body = json!({ "object": "whatsapp_business_account", "entry": [] }).to_string();
        let mut request = stranger.request(Method::POST, "/hooks/whatsapp/wa").body(body);
        if let Some(signature) = signature {
            request = request.header("x-hub-signature-256", signature);
        }
        send(request.header("content-type", "application/json"))
    };
    post(None).await.expect(401);
    post(Some(format!("sha256={}", "0".repeat(64)))).await.expect(401);
    let body = json!({ "object": "whatsapp_business_account", "entry": [] }).to_string();
    let right = hub_signature(APP_SECRET, &body);
    for _ in 0..2 {
        post(Some(right.clone())).await.expect(200);
    }
}

/// Posts receipts as Meta signs them: (recipient's id, message's id, status, code).
async fn meta(
    app: &App,
    account: &str,
    secret: &str,
    told: &[(&str, &str, &str, Option<i64>)],
) -> Value {
    let body = whatsapp_receipts(PHONE_NUMBER, told);
    let request = app.stranger().request(Method::POST, &format!("/hooks/whatsapp/{account}"));
    let request = request.header("x-hub-signature-256", hub_signature(secret, &body));
    send(request.header("content-type", "application/json").body(body)).await.expect(200)
}

#[tokio::test]
async fn receipts_of_whatsapp_move_a_row_up_once_and_only_those_of_its_account() {
    let provider = Provider::whatsapp().await;
    let api = provider.url();
    let app = start(&[HERE, ("WORKER_COUNT", "1"), ("WHATSAPP_API_URL", &api)]).await;
    let ann = organiser(&app, "ann");
    let other_secret = "fedcba9876543210fedcba9876543210";
    for (id, secret) in [("wa", APP_SECRET), ("wa2", other_secret)] {
        ann.post("/api/accounts", &whatsapp_account(id, secret)).await.expect(201);
    }
    let path = campaign(&ann, "wa", 1).await;
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let row = ledger(&ann, &path).await.remove(0);
    let (id, message) = (text(&row["id"]), text(&row["providerId"]));
    assert_eq!(row["status"], "sent", "{row}");
    let is_now = async |wanted: &str| {
        let row = ann.get(&format!("{path}/recipients/{id}")).await.expect(200);
        assert_eq!(row["status"], wanted, "{row}");
    };
    // By its name, by the provider's id, and with both: it is the row of another account.
    for (named, sent) in [(id.as_str(), "wamid.x"), ("", &message), (&id, &message)] {
        let told = meta(&app, "wa2", other_secret, &[(named, sent, "read", None)]).await;
        assert_eq!(told["applied"], 0, "{told}");
    }
    is_now("sent").await;
    for (status, code, applied, wanted) in [
        ("sent", None, 0, "sent"),
        ("delivered", None, 1, "delivered"),
        ("delivered", None, 0, "delivered"),
        ("sent", None, 0, "delivered"),
        ("failed", Some(131_026), 0, "delivered"),
        ("read", None, 1, "read"),
        ("delivered", None, 0, "read"),
        ("read", None, 0, "read"),
    ] {
        // The provider's id alone names the row, too.
        let named = if status == "read" { "" } else { &id };
        let told = meta(&app, "wa", APP_SECRET, &[(named, &message, status, code)]).await;
        assert_eq!(told["applied"], applied, "{status}: {told}");
        is_now(wanted).await;
    }
    let counts = &ann.get(&path).await.expect(200)["counts"];
    assert_eq!(
        (&counts["read"], &counts["sent"], &counts["failed"]),
        (&json!(1), &json!(0), &json!(0))
    );
}

#[tokio::test]
async fn receipts_of_one_request_are_all_applied_in_any_order() {
    let provider = Provider::whatsapp().await;
    let api = provider.url();
    let app = start(&[HERE, ("WORKER_COUNT", "1"), ("WHATSAPP_API_URL", &api)]).await;
    let ann = organiser(&app, "ann");
    ann.post("/api/accounts", &whatsapp_account("wa", APP_SECRET)).await.expect(201);
    let path = campaign(&ann, "wa", 2).await;
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let rows = ledger(&ann, &path).await;
    let ids: Vec<String> = rows.iter().map(|row| text(&row["id"])).collect();
    let backwards = [
        (ids[0].as_str(), "wamid.1", "read", None),
        (&ids[0], "wamid.1", "delivered", None),
        (&ids[1], "wamid.2", "failed", Some(131_050)),
    ];
    let told = meta(&app, "wa", APP_SECRET, &backwards).await;
    assert_eq!(told["applied"], 2, "{told}");
    let rows = ledger(&ann, &path).await;
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&json!("read"), &json!("failed")));
    assert_eq!(rows[1]["code"], "131050", "{rows:?}");
    let list = ann.get("/api/suppressions?account=wa").await.expect(200);
    let one = &list["suppressions"][0];
    assert_eq!((&one["address"], &one["reason"]), (&rows[1]["address"], &json!("stop")), "{list}");
}
