//! What a campaign would do: messages that are too long, empty, or of many parts; test messages.

use serde_json::{Value, json};
use stampede_testkit::{Client, Receiver};

use super::{HERE, fast_account, organiser, text, verb};
use crate::start;

/// Makes a campaign with a template; returns its path.
async fn templated(ann: &Client, account: &str, template: &str, recipients: &Value) -> String {
    let body = json!({
        "accountId": account, "name": "News", "content": { "text": template }, "recipients": recipients,
    });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    assert_eq!(made["recipients"]["added"], recipients.as_array().unwrap().len(), "{made}");
    format!("/api/contracts/{}", text(&made["id"]))
}

#[tokio::test]
async fn a_campaign_is_told_which_messages_are_too_long_or_empty() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "bot", "channel": "telegram", "credentials": { "token": "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ" },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    // Telegram counts UTF-16: a ticket is two.
    let tickets = |count: usize| "🎟".repeat(count);
    let template = format!("{{% if name %}}{{{{ name }}}}{}{{% endif %}}", tickets(1_548));
    let chats = json!([
        { "chatId": 1, "name": "🎟".repeat(500) },
        { "chatId": 2, "name": "🎟".repeat(501) },
        { "chatId": 3, "name": "" },
        { "chatId": 4, "name": "🎟".repeat(600) },
        { "chatId": 5, "name": "Ann" },
    ]);
    let path = templated(&ann, "bot", &template, &chats).await;
    let valid = verb(&ann, &path, "validate").await.expect(200);
    assert_eq!(
        valid["tooLong"],
        json!({ "recipients": 2, "positions": [2, 4], "longest": 4_296, "most": 4_096 }),
        "{valid}"
    );
    assert_eq!(valid["empty"], json!({ "recipients": 1, "positions": [3] }), "{valid}");
    assert_eq!((&valid["ok"], &valid["lookedAt"]), (&json!(true), &json!(5)), "{valid}");
    assert_eq!((&valid["toSend"], &valid["willFail"]), (&json!(2), &json!(3)), "{valid}");
    assert_eq!((&valid["segments"], &valid["problems"]), (&json!(null), &json!([])), "{valid}");
    let empty = json!([{ "field": "name", "recipients": 1, "positions": [3] }]);
    assert_eq!(valid["emptyFields"], empty, "{valid}");

    let fine = json!([{ "chatId": 1, "name": "🎟".repeat(500) }, { "chatId": 2, "name": "Ann" }]);
    let path = templated(&ann, "bot", &template, &fine).await;
    let valid = verb(&ann, &path, "validate").await.expect(200);
    assert_eq!(
        (&valid["ok"], &valid["tooLong"], &valid["empty"]),
        (&json!(true), &json!(null), &json!(null)),
        "{valid}"
    );
}

#[tokio::test]
async fn a_campaign_of_text_messages_is_told_its_parts() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "sms", "channel": "sms",
        "settings": { "profile": "twilio", "accountSid": "AC0123456789abcdef0123456789abcdef", "from": "+4930901820" },
        "credentials": { "authToken": "0123456789abcdef0123456789abcdef" },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let person =
        |n: u32, name: String| json!({ "phoneNumber": format!("+491510000000{n}"), "name": name });
    let people = json!([
        // 160 and 161 letters of the GSM alphabet, in which a euro is two; 70 and 71 others; 1,601 letters.
        person(1, "a".repeat(160)),
        person(2, "a".repeat(161)),
        person(3, format!("€{}", "a".repeat(158))),
        person(4, format!("€{}", "a".repeat(159))),
        person(5, "Ж".repeat(70)),
        person(6, "Ж".repeat(71)),
        person(7, "a".repeat(1_601)),
    ]);
    let path = templated(&ann, "sms", "{{ name }}", &people).await;
    let valid = verb(&ann, &path, "validate").await.expect(200);
    let total = 1 + 2 + 1 + 2 + 1 + 2 + 11;
    assert_eq!(valid["segments"], json!({ "total": total, "most": 11, "unicode": 2 }), "{valid}");
    assert_eq!(
        valid["tooLong"],
        json!({ "recipients": 1, "positions": [7], "longest": 1_601, "most": 1_600 }),
        "{valid}"
    );
    let preview = ann.post(&format!("{path}/preview"), &json!({ "position": 4 })).await.expect(200);
    assert_eq!((&preview["segments"], &preview["length"]), (&json!(2), &json!(160)), "{preview}");
}

#[tokio::test]
async fn a_test_message_goes_out_in_quiet_hours_and_not_to_who_is_suppressed() {
    let receiver = Receiver::start().await;
    let app = start(&[HERE, ("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    // All of the day but its first minute.
    let all_day = json!({ "from": "00:01", "to": "00:00" });
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": receiver.url("/send") },
        "credentials": { "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" },
        "pacing": { "limit": { "max": 100, "perMs": 1_000 }, "quietHours": all_day },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let people = json!([{ "phoneNumber": "+4915100000001", "name": "Ann" }]);
    let path = templated(&ann, "hook", "Hello {{ name }}", &people).await;
    let stopped = json!({ "addresses": ["+4915100000003"], "accountId": "hook" });
    assert_eq!(ann.post("/api/suppressions", &stopped).await.expect(200)["added"], 1);

    let body = json!({ "addresses": ["+49 151 00000002", "+49 151 00000003"] });
    let told = ann.post(&format!("{path}/test"), &body).await.expect(200);
    let outcomes: Vec<_> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["address"]), text(&one["outcome"])))
        .collect();
    let wanted = [("+4915100000002", "sent"), ("+4915100000003", "suppressed")];
    assert_eq!(outcomes, wanted.map(|(to, outcome)| (to.to_owned(), outcome.to_owned())), "{told}");
    let come = receiver.received();
    let [message] = come.as_slice() else { panic!("{come:?}") };
    assert_eq!(message.json()["recipient"]["address"], "+4915100000002");
    assert_eq!(message.json()["message"]["text"], "Hello Ann");
    // The ledger does not know of it.
    let contract = ann.get(&path).await.expect(200);
    assert_eq!((&contract["status"], &contract["counts"]["pending"]), (&json!("draft"), &json!(1)));
}

#[tokio::test]
async fn a_template_with_an_unknown_field_is_refused_as_soon_as_recipients_tell_their_fields() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    fast_account(&ann, "fast").await;
    let body = json!({ "accountId": "fast", "name": "N", "content": { "text": "Hi {{ nmae }}" } });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    let row = "{\"phoneNumber\":\"+4915100000001\",\"name\":\"Ann\"}\n";
    super::upload(&ann, &format!("{path}/recipients"), "application/x-ndjson", row)
        .await
        .expect(200);
    let valid = verb(&ann, &path, "validate").await.expect(200);
    assert_eq!(valid["ok"], false, "{valid}");
    let mistake = &valid["templateMistakes"][0];
    assert_eq!((&mistake["part"], &mistake["line"]), (&json!("text"), &json!(1)), "{valid}");
    assert!(text(&mistake["message"]).contains("name"), "{valid}");
    assert_eq!(verb(&ann, &path, "start").await.expect(409)["code"], "campaign_not_ready");
    let wrong = json!({ "content": { "text": "Hi {{ nmae }}!" } });
    assert_eq!(super::fields(&ann.patch(&path, &wrong).await.expect(422)), ["content.text"]);
    ann.patch(&path, &json!({ "content": { "text": "Hi {{ name }}" } })).await.expect(200);
    assert_eq!(verb(&ann, &path, "validate").await.expect(200)["ok"], true);
}
