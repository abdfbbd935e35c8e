//! Receipts: signed ones count once, forged ones not at all.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use stampede_testkit::{
    Answer, App, MailServer, Provider, Receiver, hub_signature, send, twilio_signature,
    whatsapp_receipts,
};

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

const APP_SECRET: &str = "0123456789abcdef0123456789abcdef";
const PHONE_NUMBER: &str = "106540352242922";

/// An account of WhatsApp that sends from the same number as others.
fn whatsapp_account(id: &str, app_secret: &str) -> Value {
    json!({
        "id": id, "channel": "whatsapp", "settings": { "phoneNumberId": PHONE_NUMBER },
        "credentials": { "accessToken": "EAAG-token-of-a-test-0123456789", "appSecret": app_secret, "verifyToken": "our-verify-token" },
    })
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

const SID: &str = "AC0123456789abcdef0123456789abcdef";
const AUTH_TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn twilio_account(id: &str, auth_token: &str, api: &str) -> Value {
    json!({
        "id": id, "channel": "sms",
        "settings": { "profile": "twilio", "accountSid": SID, "from": "+4930901820", "apiUrl": api },
        "credentials": { "authToken": auth_token },
    })
}

/// A form that Twilio posts.
struct Form<'a> {
    /// Where it is posted: the path with its query.
    path: &'a str,
    fields: &'a [(&'a str, &'a str)],
    signature: Option<String>,
    host: Option<&'a str>,
}

impl Form<'_> {
    async fn post(self, app: &App) -> Answer {
        let pair = |(name, value): &(&str, &str)| format!("{name}={}", value.replace('+', "%2B"));
        let body: Vec<String> = self.fields.iter().map(pair).collect();
        let mut request = app.stranger().request(Method::POST, self.path);
        if let Some(signature) = self.signature {
            request = request.header("x-twilio-signature", signature);
        }
        if let Some(host) = self.host {
            request = request.header("host", host);
        }
        let kind = "application/x-www-form-urlencoded";
        send(request.header("content-type", kind).body(body.join("&"))).await
    }
}

#[tokio::test]
async fn receipts_of_twilio_are_signed_over_the_public_address() {
    const PUBLIC: &str = "https://tickets.example.org";
    let provider = Provider::twilio().await;
    let app = start(&[HERE, ("WORKER_COUNT", "1"), ("PUBLIC_URL", PUBLIC)]).await;
    let ann = organiser(&app, "ann");
    let other_token = "fedcba9876543210fedcba9876543210";
    for (id, token) in [("sms", AUTH_TOKEN), ("sms2", other_token)] {
        let account = twilio_account(id, token, &provider.url());
        ann.post("/api/accounts", &account).await.expect(201);
    }
    let path = campaign(&ann, "sms", 1).await;
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let row = ledger(&ann, &path).await.remove(0);
    let (id, sid) = (text(&row["id"]), text(&row["providerId"]));
    let asked = provider.asked().remove(0);
    let form = reqwest::Url::parse(&format!("http://x/?{}", asked.body)).unwrap();
    let callback = form.query_pairs().find(|(name, _)| name == "StatusCallback").unwrap().1;
    let hook = callback.strip_prefix(PUBLIC).unwrap_or_else(|| panic!("{callback}"));
    assert_eq!(hook, format!("/hooks/sms/sms?recipient={id}"));

    let fields = |status| [("AccountSid", SID), ("MessageSid", &sid), ("MessageStatus", status)];
    let signed = |url: &str, status, token| Some(twilio_signature(token, url, &fields(status)));
    let tell = async |path: &str, status, signature| {
        Form { path, fields: &fields(status), signature, host: None }.post(&app).await
    };
    let is_now = async |wanted: &str| {
        let row = ann.get(&format!("{path}/recipients/{id}")).await.expect(200);
        assert_eq!(row["status"], wanted, "{row}");
    };
    let here = format!("{}{hook}", app.url());
    for wrong in [
        None,
        Some(String::new()),
        signed(&callback, "delivered", other_token),
        signed(&callback, "read", AUTH_TOKEN),
        // The address of the server behind the proxy is not what Twilio has called.
        signed(&here, "delivered", AUTH_TOKEN),
        signed(&here.replace("http:", "https:"), "delivered", AUTH_TOKEN),
    ] {
        let problem = tell(hook, "delivered", wrong.clone()).await.expect(401);
        assert_eq!(problem["code"], "wrong_signature", "{wrong:?}: {problem}");
    }
    is_now("sent").await;
    for (status, applied, wanted) in [
        ("sent", 0, "sent"),
        ("delivered", 1, "delivered"),
        ("delivered", 0, "delivered"),
        ("sent", 0, "delivered"),
        ("undelivered", 0, "delivered"),
    ] {
        let signature = signed(&callback, status, AUTH_TOKEN);
        let told = tell(hook, status, signature).await.expect(200);
        assert_eq!(told["applied"], applied, "{status}: {told}");
        is_now(wanted).await;
    }
    // Another account names the row in its address, and signs rightly.
    let foreign = hook.replace("/sms?", "/sms2?");
    let signature = signed(&format!("{PUBLIC}{foreign}"), "read", other_token);
    assert_eq!(tell(&foreign, "read", signature).await.expect(200)["applied"], 0);
    is_now("delivered").await;
    let others = [("AccountSid", "AC99999999999999999999999999999999"), ("MessageStatus", "read")];
    let signature = Some(twilio_signature(AUTH_TOKEN, &callback, &others));
    Form { path: hook, fields: &others, signature, host: None }.post(&app).await.expect(400);
}

#[tokio::test]
async fn without_a_public_address_twilio_signs_over_the_host_that_it_has_called() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let account = twilio_account("sms", AUTH_TOKEN, "https://api.example.org");
    ann.post("/api/accounts", &account).await.expect(201);
    let said = [("AccountSid", SID), ("From", "+4915100000001"), ("Body", "Stop")];
    let (path, host) = ("/hooks/sms/sms", "sms.example.net");
    let tell = async |signed_host: &str| {
        let url = format!("https://{signed_host}{path}");
        let signature = Some(twilio_signature(AUTH_TOKEN, &url, &said));
        Form { path, fields: &said, signature, host: Some(host) }.post(&app).await
    };
    tell("other.example.net").await.expect(401);
    let list = "/api/suppressions?account=sms";
    assert_eq!(ann.get(list).await.expect(200)["suppressions"], json!([]));
    for suppressed in [1, 0] {
        let told = tell(host).await.expect(200);
        assert_eq!(told["suppressed"], suppressed, "{told}");
    }
    let list = ann.get(list).await.expect(200);
    let one = &list["suppressions"][0];
    assert_eq!(
        (&one["address"], &one["reason"]),
        (&json!("+4915100000001"), &json!("stop")),
        "{list}"
    );
}

#[tokio::test]
async fn bounces_and_complaints_are_signed_and_suppress() {
    let server = MailServer::start().await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
    let other_secret = "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oD";
    for (id, secret) in [("mail", SECRET), ("mail2", other_secret)] {
        let account = json!({
            "id": id, "channel": "smtp", "settings": { "url": url, "from": "News <news@example.org>" },
            "credentials": { "bounceSecret": secret },
            "pacing": { "limit": { "max": 1_000, "perMs": 1_000 } },
        });
        ann.post("/api/accounts", &account).await.expect(201);
    }
    let to = |name: &str| json!({ "email": format!("{name}@example.org"), "message": "Hello" });
    let body = json!({ "accountId": "mail", "name": "N", "recipients": [to("ann"), to("bob"), to("kim")] });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let rows = ledger(&ann, &path).await;
    let (hook, row) = ("/hooks/bounces/mail", |n: usize| rows[n]["id"].clone());
    let hard = json!({ "recipient": row(0), "type": "hard" });

    let unsigned = app.stranger().post(hook, &hard).await.expect(401);
    assert_eq!(unsigned["code"], "wrong_signature", "{unsigned}");
    receipt(&app, hook, "b1", &hard, other_secret).await.expect(401);
    let foreign = receipt(&app, "/hooks/bounces/mail2", "b1", &hard, other_secret).await;
    assert_eq!(foreign.expect(200)["applied"], 0, "the row of another account");
    assert_eq!(ledger(&ann, &path).await, rows);
    for account in ["mail", "mail2"] {
        let list = ann.get(&format!("/api/suppressions?account={account}")).await.expect(200);
        assert_eq!(list["suppressions"], json!([]), "{account}");
    }

    for applied in [1, 0] {
        let told = receipt(&app, hook, "b1", &hard, SECRET).await.expect(200);
        assert_eq!(told["applied"], applied, "{told}");
    }
    let soft = json!({ "recipient": row(1), "type": "soft" });
    assert_eq!(receipt(&app, hook, "b2", &soft, SECRET).await.expect(200)["applied"], 1);
    let complaint = json!({ "email": "kim@example.org", "type": "complaint" });
    assert_eq!(receipt(&app, hook, "b3", &complaint, SECRET).await.expect(200)["suppressed"], 1);
    for wrong in [json!({ "type": "hard" }), json!({ "email": "a@example.org", "type": "x" })] {
        receipt(&app, hook, "b4", &wrong, SECRET).await.expect(400);
    }
    let found: Vec<(String, Option<String>)> = ledger(&ann, &path)
        .await
        .iter()
        .map(|row| (text(&row["status"]), row["code"].as_str().map(str::to_owned)))
        .collect();
    let failed = |code: &str| ("failed".to_owned(), Some(code.to_owned()));
    assert_eq!(found, [failed("bounce"), failed("soft_bounce"), ("sent".to_owned(), None)]);
    let list = ann.get("/api/suppressions?account=mail").await.expect(200);
    let mut suppressed: Vec<(String, String)> = list["suppressions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["address"]), text(&one["reason"])))
        .collect();
    suppressed.sort();
    let wanted = [("ann@example.org", "bounce"), ("kim@example.org", "complaint")];
    assert_eq!(suppressed, wanted.map(|(address, why)| (address.to_owned(), why.to_owned())));
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
    assert_eq!(super::fields(&refused), ["shared"], "{refused}");
    assert_eq!(admin.post("/api/suppressions", &by_hand).await.expect(200)["added"], 1);
    update(&app, 9, 41, "/start").await;
    let made = ann.post("/api/contracts", &campaign).await.expect(201);
    assert_eq!(made["recipients"]["suppressed"], 1, "a person did it by hand: {made}");
    let one = "/api/suppressions?account=bot&address=41&shared=1";
    ann.delete(one).await.expect(404);
    admin.delete(one).await.expect(204);
}
