//! Twilio: receipts and texts of people, signed over the URL that Twilio has called.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Provider, send, twilio_signature};

use super::{HERE, campaign, completed, ledger, organiser, text, verb};
use crate::start;

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
