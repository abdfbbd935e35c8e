//! Receipts of the Cloud API: many `entry × changes × statuses` in one body, in any order, repeated for days.

use ring::hmac;
use serde::Deserialize;
use stampede_model::Timestamp;
use stampede_model::campaign::SuppressionReason;

use super::codes::{self, Means};
use super::{Credentials, Refusal, Settings};
use crate::answers;
use crate::notice::{Incoming, Notice, Refused, Status};
use crate::proof;

/// The header with the signature.
const SIGNATURE: &str = "x-hub-signature-256";

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    entry: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    value: Value,
}

#[derive(Default, Deserialize)]
struct Value {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    statuses: Vec<Told>,
    #[serde(default)]
    messages: Vec<Inbound>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    phone_number_id: String,
}

#[derive(Deserialize)]
struct Told {
    id: String,
    status: String,
    #[serde(default)]
    timestamp: String,
    /// The person's id, of digits.
    #[serde(default)]
    recipient_id: String,
    #[serde(default)]
    biz_opaque_callback_data: Option<String>,
    #[serde(default)]
    errors: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Inbound {
    #[serde(default)]
    from: String,
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    button: Option<Button>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct Button {
    #[serde(default)]
    text: String,
}

/// Reads receipts. Those for other numbers of the same app are left out.
pub(crate) fn receipts(
    settings: &Settings,
    credentials: &Credentials,
    incoming: &Incoming,
) -> Result<Vec<Notice>, Refused> {
    verify(credentials, incoming)?;
    let body: Body = serde_json::from_slice(incoming.body)
        .map_err(|error| Refused::Malformed(error.to_string()))?;
    let changes = body.entry.into_iter().flat_map(|entry| entry.changes);
    let values = changes.map(|change| change.value);
    let ours = values.filter(|value| value.metadata.phone_number_id == settings.phone_number_id);
    let mut notices = Vec::new();
    for value in ours {
        notices.extend(value.statuses.into_iter().filter_map(|told| receipt(told, incoming.now)));
        for message in value.messages {
            let said = message.text.map(|text| text.body);
            let said = said.or(message.button.map(|button| button.text)).unwrap_or_default();
            for address in spellings(&message.from) {
                notices.extend(settings.stop_words.notice(&said, || address.clone()));
            }
        }
    }
    Ok(notices)
}

/// The telephone numbers that an id of WhatsApp stands for. WhatsApp keeps former spellings of three countries: Mexico with a 1
/// and Argentina with a 9 behind the country's code, mobiles of Brazil without the 9 that all of them have now.
pub(super) fn spellings(wa_id: &str) -> Vec<String> {
    let mut spellings = vec![format!("+{wa_id}")];
    let is_number = wa_id.bytes().all(|byte| byte.is_ascii_digit());
    let (country, rest) = wa_id.split_at_checked(2).filter(|_| is_number).unwrap_or_default();
    spellings.extend(match (country, rest.len()) {
        ("52", 11) => rest.strip_prefix('1').map(|rest| format!("+52{rest}")),
        ("54", 11) => rest.strip_prefix('9').map(|rest| format!("+54{rest}")),
        ("55", 10) => {
            let (area, number) = rest.split_at(2);
            number.starts_with(['6', '7', '8', '9']).then(|| format!("+55{area}9{number}"))
        }
        _ => None,
    });
    spellings
}

fn verify(credentials: &Credentials, incoming: &Incoming) -> Result<(), Refused> {
    if credentials.app_secret.is_empty() {
        return Err(Refused::NotOffered);
    }
    let mut given = incoming.headers.get_all(SIGNATURE).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => return Err(Refused::NoSignature),
        (Some(one), None) => one.to_str().unwrap_or_default(),
        _ => return Err(Refused::WrongSignature),
    };
    let signature = given.strip_prefix("sha256=").and_then(|hex| hex::decode(hex).ok());
    let is_right = signature.is_some_and(|signature| {
        let secrets = &credentials.app_secret;
        proof::is_signed(hmac::HMAC_SHA256, secrets, incoming.body, &signature)
    });
    if is_right { Ok(()) } else { Err(Refused::WrongSignature) }
}

/// One receipt; `None`: a status that says nothing about arriving.
fn receipt(told: Told, now: Timestamp) -> Option<Notice> {
    let status = match told.status.as_str() {
        "sent" => Status::Sent,
        "delivered" => Status::Delivered,
        "read" | "played" => Status::Read,
        "failed" => Status::Failed,
        _ => return None,
    };
    let refusal = told.errors.first();
    // Receipts are answered with 200; the codes that depend on a status do not suppress.
    let means = refusal.map(|refusal| codes::means(200, refusal.code));
    let failure = refusal.map(Refusal::failure).map(|failure| match means {
        Some(Means::NotNow) => codes::not_now(failure),
        _ => failure,
    });
    let (code, detail) = failure.map(|failure| (failure.code, failure.text)).unzip();
    Some(Notice::Receipt {
        recipient: told.biz_opaque_callback_data.and_then(|id| id.parse().ok()),
        provider_id: answers::provider_id(&told.id),
        status,
        code,
        detail,
        is_bounce: means == Some(Means::Bounced),
        suppress: (means == Some(Means::Stop)).then_some(SuppressionReason::Stop),
        addresses: match told.recipient_id.as_str() {
            "" => Vec::new(),
            id => spellings(id),
        },
        at: told
            .timestamp
            .parse()
            .ok()
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .unwrap_or(now),
    })
}

/// The answer to Meta's question whether receipts may be sent: `hub.challenge`, if `hub.verify_token` fits.
pub(crate) fn challenge(credentials: &Credentials, query: &str) -> Option<String> {
    let (mut mode, mut token, mut challenge) = (None, None, None);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "hub.mode" => mode = Some(value),
            "hub.verify_token" => token = Some(value),
            "hub.challenge" => challenge = Some(value),
            _ => {}
        }
    }
    let is_right = mode? == "subscribe" && proof::is_one_of(&credentials.verify_token, &token?);
    // What Meta sends is a number: nothing that a browser would run is given back.
    let challenge = challenge.filter(|text| {
        text.len() <= 200 && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    });
    challenge.filter(|_| is_right).map(std::borrow::Cow::into_owned)
}
