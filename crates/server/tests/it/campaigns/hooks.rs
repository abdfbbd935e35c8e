//! Receipts: signed ones count once, forged ones not at all.

mod bounces;
mod sms;
mod telegram;
mod whatsapp;

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Receiver, send};

use super::{HERE, campaign, completed, ledger, organiser, text, verb};
use crate::start;

pub(super) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Posts a receipt as Standard Webhooks signs it, with this secret.
pub(super) async fn receipt(app: &App, path: &str, id: &str, body: &Value, secret: &str) -> Answer {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let body = body.to_string();
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signature = STANDARD.encode(hmac::sign(&key, format!("{id}.{at}.{body}").as_bytes()));
    let request = app.stranger().request(Method::POST, path);
    let request = request
        .header("webhook-id", id)
        .header("webhook-timestamp", at.to_string())
        .header("webhook-signature", format!("v1,{signature}"));
    send(request.header("content-type", "application/json").body(body)).await
}

#[tokio::test]
async fn a_signed_receipt_counts_once_and_a_forged_one_not_at_all() {
    let receiver = Receiver::start().await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": receiver.url("/send") },
        "credentials": { "secret": SECRET },
        "pacing": { "limit": { "max": 1_000, "perMs": 1_000 } },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let path = campaign(&ann, "hook", 1).await;
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let sent = receiver.has(1).await;
    assert!(sent[0].is_signed_with(SECRET));
    let id = text(&sent[0].json()["id"]);
    let row = format!("{path}/recipients/{id}");
    assert_eq!(ann.get(&row).await.expect(200)["status"], "sent");

    let delivered = json!({ "id": id, "status": "delivered" });
    let hook = "/hooks/webhook/hook";
    let unsigned = app.stranger().post(hook, &delivered).await.expect(401);
    assert_eq!(unsigned["code"], "wrong_signature", "{unsigned}");
    let forged = "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oD";
    receipt(&app, hook, "m1", &delivered, forged).await.expect(401);
    assert_eq!(ann.get(&row).await.expect(200)["status"], "sent");
    let taken = receipt(&app, hook, "m1", &delivered, SECRET).await.expect(200);
    assert_eq!(taken["applied"], 1, "{taken}");
    assert_eq!(ann.get(&row).await.expect(200)["status"], "delivered");
    let again = receipt(&app, hook, "m1", &delivered, SECRET).await.expect(200);
    assert_eq!(again["applied"], 0, "{again}");
    let backwards = json!({ "id": id, "status": "sent" });
    receipt(&app, hook, "m0", &backwards, SECRET).await.expect(200);
    assert_eq!(ann.get(&row).await.expect(200)["status"], "delivered", "a row only moves up");

    for wrong in [
        "/hooks/whatsapp/hook",
        "/hooks/webhook/nobody",
        "/hooks/pigeon/hook",
        "/hooks/bounces/hook",
    ] {
        receipt(&app, wrong, "m1", &delivered, SECRET).await.expect(404);
    }
    // Meta sends up to 3 MB.
    let long = json!({ "id": id, "status": "read", "detail": "x".repeat(3 << 20) });
    let taken = receipt(&app, hook, "m2", &long, SECRET).await.expect(200);
    assert_eq!(taken["applied"], 1, "{taken}");
    let too_long = json!({ "id": id, "status": "x".repeat(4 << 20) });
    receipt(&app, hook, "m3", &too_long, SECRET).await.expect(413);
}
