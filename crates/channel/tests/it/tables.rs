//! Every row of the tables of WhatsApp and webhooks, over HTTP. Those of Telegram, Twilio and mail are beside their other tests.

use serde_json::json;
use stampede_channel::{Incoming, Notice, Status, receipts};
use stampede_model::Timestamp;
use stampede_model::campaign::{Channel, Outcome};
use stampede_testkit::{Provider, Reply, hub_signature, whatsapp_receipts};

use crate::http::{KEY, NOWHERE, SECRET, whatsapp_account};
use crate::{account, channels, message, word};

/// The codes of the Cloud API, and what follows from each.
const WHATSAPP: [(&str, &[i64]); 12] = [
    ("slow_down 1", &[130_429]),
    ("slow_down 60", &[4, 80_007, 131_057]),
    ("wait 1", &[131_056]),
    ("temporary", &[1, 2, 131_000, 131_016, 135_000]),
    ("bounced", &[131_026]),
    ("never", &[131_021, 131_030, 130_472, 131_047, 131_053, 130_497]),
    ("never stop", &[131_050]),
    ("never not_now", &[131_049]),
    (
        "content",
        &[
            33, 100, 131_008, 131_009, 131_051, 131_063, 132_000, 132_001, 132_005, 132_007,
            132_008, 132_012, 132_015, 132_016, 132_068, 132_069,
        ],
    ),
    ("account", &[0, 3, 10, 190, 368, 131_005, 131_031, 131_042, 131_045]),
    ("account", &[131_048, 131_064, 133_010, 200, 201, 210, 250, 275, 298, 299]),
    ("never", &[555_555, 199, 300, 131_099]),
];

#[tokio::test]
async fn whatsapp_refuses_with_every_code_of_its_table() {
    let provider = Provider::whatsapp().await;
    let (channels, account) = (channels(NOWHERE, &provider.url()), whatsapp_account());
    let mut sent = 0;
    for (wanted, codes) in WHATSAPP {
        for code in codes {
            let outcome = channels.send(&account, &message(&format!("+1999{code}"))).await;
            let failure = outcome.failure().unwrap();
            let found = match failure.code.as_str() {
                "not_now" => format!("{} not_now", word(&outcome)),
                told => {
                    assert_eq!(
                        (told, failure.text.as_str()),
                        (code.to_string().as_str(), "in detail (fbtrace_id Az)")
                    );
                    word(&outcome)
                }
            };
            assert_eq!(found, wanted, "{code}");
            sent += 1;
        }
    }
    assert_eq!(provider.asked().len(), sent, "each was sent once");
}

#[tokio::test]
async fn receipts_of_whatsapp_fail_with_every_code_of_its_table() {
    for (wanted, codes) in WHATSAPP {
        for code in codes {
            let id = message("+1").recipient;
            let told = [(&*id.to_string(), "wamid.1", "failed", Some(*code))];
            let body = whatsapp_receipts("1055", &told);
            let mut headers = http::HeaderMap::new();
            headers.insert("x-hub-signature-256", hub_signature(KEY, &body).parse().unwrap());
            let now = Timestamp::now();
            let body = body.as_bytes();
            let incoming = Incoming { headers: &headers, url: "", query: "", body, now };
            let notices = receipts(&whatsapp_account(), &incoming).unwrap().notices;
            let [Notice::Receipt { recipient, status, code: kept, is_bounce, suppress, .. }] =
                notices.as_slice()
            else {
                panic!("{code}: {notices:?}");
            };
            assert_eq!((*recipient, *status), (Some(id), Status::Failed), "{code}");
            let number = code.to_string();
            let wanted_code = if wanted == "never not_now" { "not_now" } else { &number };
            assert_eq!(kept.as_deref(), Some(wanted_code));
            assert_eq!(*is_bounce, wanted == "bounced", "{code}");
            assert_eq!(suppress.is_some(), wanted == "never stop", "{code}");
        }
    }
}

#[tokio::test]
async fn webhooks_answer_with_every_status_of_their_table() {
    // The address says how the endpoint answers.
    let provider = Provider::start(|asked| {
        let address = asked.json()["recipient"]["address"].as_str().unwrap_or_default().to_owned();
        let (status, pause) = address.split_once(' ').unwrap_or((&address, ""));
        let status = status.parse().unwrap_or(400);
        match pause {
            "" => Reply::Json(status, json!({})),
            pause => Reply::With(status, "Retry-After", pause.to_owned(), json!({})),
        }
    })
    .await;
    let channels = channels(NOWHERE, NOWHERE);
    for (answer, wanted, of_idempotent) in [
        ("200", "sent", "sent"),
        ("201", "sent", "sent"),
        ("204", "sent", "sent"),
        ("301", "account", "account"),
        ("308", "account", "account"),
        ("400", "never", "never"),
        ("401", "account", "account"),
        ("403", "account", "account"),
        ("404", "never", "never"),
        ("408", "never", "temporary"),
        ("410", "account", "account"),
        ("422", "never", "never"),
        ("425", "never", "temporary"),
        ("429", "slow_down 60", "slow_down 60"),
        ("429 7", "slow_down 7", "slow_down 7"),
        ("500", "temporary", "temporary"),
        ("502", "unknown", "temporary"),
        ("503", "temporary", "temporary"),
        ("503 9", "slow_down 9", "slow_down 9"),
        ("504", "unknown", "temporary"),
    ] {
        for (is_idempotent, wanted) in [(false, wanted), (true, of_idempotent)] {
            let settings = json!({ "url": provider.url(), "idempotent": is_idempotent });
            let mut account = account(Channel::Webhook, &settings, &json!({ "secret": SECRET }));
            account.id = format!("hook-{is_idempotent}").parse().unwrap();
            let outcome: Outcome = channels.send(&account, &message(answer)).await;
            assert_eq!(word(&outcome), wanted, "{answer} {is_idempotent}");
        }
    }
}
