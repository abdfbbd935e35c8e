//! Receipts: signed ones count once, forged ones not at all.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Receiver, send};

use super::{campaign, completed, organiser, text, verb};
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
    let here = ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1");
    let app = start(&[here, ("WORKER_COUNT", "1")]).await;
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

#[tokio::test]
async fn whatsapp_is_answered_its_challenge_and_its_receipts_are_checked() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "wa", "channel": "whatsapp", "settings": { "phoneNumberId": "106540352242922" },
        "credentials": { "accessToken": "EAAG-token-of-a-test-0123456789", "appSecret": "0123456789abcdef0123456789abcdef", "verifyToken": "our-verify-token" },
    });
    ann.post("/api/accounts", &account).await.expect(201);
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
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef0123456789abcdef");
    let body = json!({ "object": "whatsapp_business_account", "entry": [] }).to_string();
    let right: String = hmac::sign(&key, body.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for _ in 0..2 {
        post(Some(format!("sha256={right}"))).await.expect(200);
    }
}

const BOT_SECRET: &str = "the-secret-of-this-test-0123456789";

/// Posts an update of Telegram in which a person writes a text.
async fn update(app: &App, number: u64, chat: u64, text: &str) -> Value {
    let body = json!({ "update_id": number, "message": { "chat": { "id": chat }, "text": text } });
    let request = app.stranger().request(Method::POST, "/hooks/telegram/bot");
    let request = request.header("x-telegram-bot-api-secret-token", BOT_SECRET);
    send(request.header("content-type", "application/json").body(body.to_string()))
        .await
        .expect(200)
}

#[tokio::test]
async fn an_update_of_telegram_is_applied_once_and_start_lifts_stop_alone() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, admin) = (organiser(&app, "ann"), app.admin());
    let account = json!({
        "id": "bot", "channel": "telegram", "shared": true,
        "credentials": { "token": "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ", "webhookSecret": BOT_SECRET },
    });
    admin.post("/api/accounts", &account).await.expect(201);
    let stopped = update(&app, 7, 41, "/stop").await;
    assert_eq!((&stopped["applied"], &stopped["suppressed"]), (&json!(0), &json!(1)), "{stopped}");
    let list = admin.get("/api/suppressions?account=bot").await.expect(200);
    assert_eq!(
        (&list["suppressions"][0]["address"], &list["suppressions"][0]["owner"]),
        (&json!("41"), &json!(null)),
        "it holds for all who use the account: {list}"
    );
    let campaign = json!({
        "accountId": "bot", "name": "N", "recipients": [{ "chatId": 41, "message": "x" }],
    });
    let made = ann.post("/api/contracts", &campaign).await.expect(201);
    assert_eq!(made["recipients"]["suppressed"], 1, "{made}");

    update(&app, 8, 41, "/start").await;
    let again = update(&app, 7, 41, "/stop").await;
    assert_eq!(again["suppressed"], 0, "it was applied already: {again}");
    let made = ann.post("/api/contracts", &campaign).await.expect(201);
    assert_eq!(made["recipients"]["added"], 1, "{made}");

    let by_hand = json!({ "addresses": ["41"], "accountId": "bot", "shared": true });
    let refused = ann.post("/api/suppressions", &by_hand).await.expect(422);
    assert_eq!(super::fields(&refused), ["shared"], "{refused}");
    assert_eq!(admin.post("/api/suppressions", &by_hand).await.expect(200)["added"], 1);
    update(&app, 9, 41, "/start").await;
    let made = ann.post("/api/contracts", &campaign).await.expect(201);
    assert_eq!(made["recipients"]["suppressed"], 1, "a person did it by hand: {made}");
    let one = "/api/suppressions?account=bot&address=41&shared=1";
    ann.delete(one).await.expect(404);
    admin.delete(one).await.expect(204);
}
