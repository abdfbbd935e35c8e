//! Telegram: updates with the secret of the webhook.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{App, send};

use super::organiser;
use crate::campaigns::fields;
use crate::start;

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
    let forged = json!({ "update_id": 6, "message": { "chat": { "id": 41 }, "text": "/stop" } });
    for secret in [
        None,
        Some(""),
        Some("the-secret-of-this-test-012345678"),
        Some("another-secret-0123456789"),
    ] {
        let mut request = app.stranger().request(Method::POST, "/hooks/telegram/bot").json(&forged);
        if let Some(secret) = secret {
            request = request.header("x-telegram-bot-api-secret-token", secret);
        }
        let problem = send(request).await.expect(401);
        assert_eq!(problem["code"], "wrong_signature", "{secret:?}: {problem}");
    }
    let list = admin.get("/api/suppressions?account=bot").await.expect(200);
    assert_eq!(list["suppressions"], json!([]));
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
    assert_eq!(fields(&refused), ["shared"], "{refused}");
    assert_eq!(admin.post("/api/suppressions", &by_hand).await.expect(200)["added"], 1);
    update(&app, 9, 41, "/start").await;
    let made = ann.post("/api/contracts", &campaign).await.expect(201);
    assert_eq!(made["recipients"]["suppressed"], 1, "a person did it by hand: {made}");
    let one = "/api/suppressions?account=bot&address=41&shared=1";
    ann.delete(one).await.expect(404);
    admin.delete(one).await.expect(204);
}
