//! Settings of every channel: read, wrong in every way, and read again from their own form.

use serde_json::json;

use super::*;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const SID: &str = "AC0123456789abcdef0123456789abcdef";

fn wrong(channel: Channel, settings: Value, credentials: Value) -> Vec<String> {
    let mistakes = read_settings(channel, &settings, &credentials).unwrap_err();
    mistakes.into_iter().map(|mistake| format!("{} {}", mistake.field, mistake.reason)).collect()
}

fn assert_has(found: &[String], wanted: &str) {
    assert!(found.iter().any(|mistake| mistake.contains(wanted)), "{wanted} is not in {found:#?}");
}

/// Settings and credentials of every channel that are right.
fn right() -> Vec<(Channel, Value, Value)> {
    let secret = "0123456789abcdef0123456789abcdef";
    vec![
        (Channel::Console, json!(null), json!(null)),
        (Channel::Console, json!({ "fail": 0.1, "unknown": 0.01, "ms": 50 }), json!({})),
        (Channel::Webhook, json!({ "url": "https://a.example/x" }), json!({ "secret": SECRET })),
        (
            Channel::Webhook,
            json!({ "url": "https://a.example/x", "idempotent": true }),
            json!({ "secret": [SECRET, SECRET] }),
        ),
        (
            Channel::Smtp,
            json!({ "url": "smtps://mail.example.com", "from": "Ann <ann@example.com>" }),
            json!({ "user": "ann", "password": "secret pass", "bounceSecret": SECRET }),
        ),
        (
            Channel::Smtp,
            json!({ "url": "smtp://[::1]:2525?tls=none", "from": "a@b.example", "replyTo": "c@d.example", "hello": "x.example" }),
            json!(null),
        ),
        (
            Channel::Telegram,
            json!({ "withoutPreviews": true, "stopWords": ["halt"] }),
            json!({ "token": "123456:ABCdefGHIjklMNOpqrsTUVwxyz-_0", "webhookSecret": secret }),
        ),
        (
            Channel::Whatsapp,
            json!({ "phoneNumberId": "1055", "alsoInApp": true }),
            json!({ "accessToken": "EAAG0123456789abcdefghij", "appSecret": [secret, secret], "verifyToken": "any text" }),
        ),
        (
            Channel::Sms,
            json!({ "profile": "twilio", "accountSid": SID, "from": "+4930" }),
            json!({ "authToken": secret }),
        ),
        (
            Channel::Sms,
            json!({
                "url": "https://sms.example/send", "method": "put", "headers": { "Content-Type": "application/json" },
                "body": "{\"to\": \"{{ to }}\", \"key\": \"{{ secret.api-key_1 }}\"}\n", "idPointer": "/id", "codePointer": "/code", "codes": { "7": "stop" },
            }),
            json!({ "headers": { "Authorization": "Bearer abc" }, "secret": { "api-key_1": "key 12345" } }),
        ),
    ]
}

#[test]
fn what_is_stored_reads_as_the_same_again_and_holds_no_secret_in_its_settings() {
    for (channel, settings, credentials) in right() {
        let read = read_settings(channel, &settings, &credentials);
        let (stored, secrets) = read.unwrap_or_else(|mistakes| panic!("{channel:?} {mistakes:?}"));
        for secret in [
            SECRET,
            "secret pass",
            "0123456789abcdef0123456789abcdef",
            "ABCdef",
            "EAAG",
            "Bearer",
            "key 12345",
        ] {
            let of_account = stored.replace(SID, "");
            assert!(!of_account.contains(secret), "{stored}");
        }
        let again: Value = serde_json::from_str(&stored).unwrap();
        let secrets_again: Value = serde_json::from_slice(&secrets).unwrap();
        assert_eq!(read_settings(channel, &again, &secrets_again), Ok((stored, secrets)));
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let found = wrong(
        Channel::Smtp,
        json!({ "url": "http://x", "from": "nobody", "reply_to": "a@b.example", "password": "p" }),
        json!({ "user": "ann", "url": "smtp://x" }),
    );
    assert_eq!(found.len(), 6, "{found:#?}");
    assert_has(&found, "settings.url must begin with smtps:// or smtp://");
    assert_has(&found, "settings.from must be an address");
    assert_has(&found, "settings.reply_to is not known here; did you mean replyTo?");
    assert_has(&found, "settings.password is a secret: it belongs into credentials");
    assert_has(&found, "credentials.password is missing: there is a user");
    assert_has(&found, "credentials.url is no secret: it belongs into settings");
    let found = wrong(Channel::Telegram, json!([1]), json!("token"));
    assert_has(&found, "settings must be an object");
    assert_has(&found, "credentials must be an object");
    assert_has(&found, "credentials.token is missing");
}

#[test]
fn each_field_says_what_would_be_right() {
    use Channel::{Console, Sms, Smtp, Telegram, Webhook, Whatsapp};
    let http = |change: Value| {
        let mut settings = json!({ "url": "https://sms.example/", "body": "{{ text }}" });
        for (name, value) in change.as_object().unwrap() {
            settings[name] = value.clone();
        }
        settings
    };
    let from = "a@b.example";
    for (channel, settings, credentials, told) in [
        (
            Console,
            json!({ "fail": 1.5 }),
            json!(null),
            "settings.fail must be a number from 0 to 1",
        ),
        (Console, json!({ "ms": "x" }), json!(null), "settings.ms must be a number"),
        (Console, json!({ "fial": 0.5 }), json!(null), "did you mean fail?"),
        (Console, json!(null), json!({ "token": "x" }), "nothing is expected"),
        (Webhook, json!({ "url": 5 }), json!({}), "settings.url must be a text"),
        (Webhook, json!({ "url": "https://a.example:22" }), json!({}), "port 22"),
        (Webhook, json!({ "url": "https://ann:pw@a.example" }), json!({}), "no user"),
        (
            Webhook,
            json!({ "url": "https://a.example", "idempotent": "yes" }),
            json!({}),
            "true or false",
        ),
        (Webhook, json!({}), json!({ "secret": "abc" }), "credentials.secret must be whsec_"),
        (Webhook, json!({}), json!({ "secret": "whsec_YWJj" }), "at least 24 bytes"),
        (Webhook, json!({}), json!({ "secret": [SECRET, SECRET, SECRET, SECRET] }), "at most 3"),
        (
            Smtp,
            json!({ "url": "smtp://ann:pw@mail.example", "from": from }),
            json!({}),
            "belong into credentials",
        ),
        (
            Smtp,
            json!({ "url": "smtps://mail.example?tls=none", "from": from }),
            json!({}),
            "only ?tls=none",
        ),
        (
            Smtp,
            json!({ "url": "smtp://mail.example?tls=maybe", "from": from }),
            json!({}),
            "only ?tls=none",
        ),
        (Smtp, json!({ "url": "smtp://mail.example:22", "from": from }), json!({}), "port 22"),
        (Smtp, json!({ "url": "smtp://", "from": from }), json!({}), "settings.url"),
        (
            Smtp,
            json!({ "url": "smtp://m.example", "from": "a@b.example\r\nBcc: x@y.example" }),
            json!({}),
            "no control characters",
        ),
        (Telegram, json!({}), json!({ "token": "secret-without-colon" }), "as @BotFather tells it"),
        (Telegram, json!({}), json!({ "webhookSecret": "with space in it !!" }), "letters"),
        (Whatsapp, json!({ "phoneNumberId": "+49" }), json!({}), "digits"),
        (Whatsapp, json!({ "phoneNumberId": "1", "apiVersion": "../x" }), json!({}), "v23.0"),
        (Whatsapp, json!({ "phoneNumberId": "1", "stopWords": "STOP" }), json!({}), "list"),
        (Sms, json!({ "profile": "nexmo" }), json!({}), "must be twilio, or http"),
        (
            Sms,
            json!({ "profile": "twilio", "accountSid": "AC/../x" }),
            json!({}),
            "32 hexadecimal digits",
        ),
        (
            Sms,
            json!({ "profile": "twilio", "accountSid": SID }),
            json!({}),
            "either from or messagingServiceSid",
        ),
        (Sms, http(json!({ "method": "DELETE" })), json!({}), "must be one of POST, PUT, GET"),
        (Sms, http(json!({ "body": "{{ name }}" })), json!({}), "known are to, toDigits"),
        (
            Sms,
            http(json!({ "body": "{{ secret.key }}" })),
            json!({ "secret": { "kee": "x" } }),
            "settings.body has {{ secret.key }}, which is not in credentials.secret",
        ),
        (Sms, http(json!({})), json!({ "secret": "x" }), "credentials.secret must be an object"),
        (Sms, http(json!({})), json!({ "secret": { "a b": "x" } }), "credentials.secret.a b has"),
        (Sms, http(json!({})), json!({ "secret": { "a": "" } }), "credentials.secret.a must have"),
        (Sms, http(json!({ "headers": { "Host": "x" } })), json!({}), "set by the client"),
        (
            Sms,
            http(json!({ "headers": { "Authorization": "x" } })),
            json!({}),
            "belongs into credentials.headers",
        ),
        (Sms, http(json!({ "headers": { "X": "a\r\nB: c" } })), json!({}), "no header"),
        (Sms, http(json!({ "idPointer": "id" })), json!({}), "JSON pointer"),
        (
            Sms,
            http(json!({ "codes": { "1": "explode" } })),
            json!({}),
            "must be one of sent, slow_down",
        ),
    ] {
        assert_has(&wrong(channel, settings, credentials), told);
    }
}

#[test]
fn no_mistake_tells_a_secret() {
    for (channel, credentials) in [
        (Channel::Webhook, json!({ "secret": "hunter2-hunter2" })),
        (Channel::Telegram, json!({ "token": "hunter2-hunter2", "webhookSecret": "hunter2 " })),
        (Channel::Whatsapp, json!({ "accessToken": "hunter2", "appSecret": "hunter2-" })),
        (Channel::Sms, json!({ "headers": { "X-Key": "hunter2\n" } })),
        (Channel::Sms, json!({ "secret": { "key": "hunter2\n" } })),
        (Channel::Smtp, json!({ "user": "hunter2\u{7}", "password": "hunter2\u{7}" })),
    ] {
        for mistake in read_settings(channel, &json!({}), &credentials).unwrap_err() {
            assert!(!format!("{mistake:?}").contains("hunter2"), "{mistake:?}");
        }
    }
}
