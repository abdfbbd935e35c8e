//! Webhook: an HTTP endpoint of the account's owner, after Standard Webhooks.
//!
//! `POST url {id, campaign, recipient: {address, fields}, message: {subject?, text, html?}, attempt}`. The id and the header
//! `Idempotency-Key` are the recipient's and the same in every attempt. Receipts come back as `{id, status}`, signed in the same
//! way.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{Failure, Outcome};
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_outbound::signature::{self, Unproven};
use stampede_outbound::{Answer, BeforeWrite, Client, Request};
use url::Url;

use crate::answers::{self, PAUSE};
use crate::checked::Checked;
use crate::message::Message;
use crate::notice::{Incoming, Notice, Refused, Status};
use crate::settings::{Part, Reader, endpoint};

/// The code of a receipt whose address does not exist.
const BOUNCE: &str = "bounce";
/// The agent that all requests of channels name.
pub(crate) const AGENT: &str = concat!("Stampede-Campaigns/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    #[serde(with = "crate::settings::as_text")]
    url: Url,
    /// The endpoint promises to carry out a message once, however often it gets its id.
    #[serde(default)]
    pub(crate) idempotent: bool,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Credentials {
    /// `whsec_…`: the present one and former ones.
    secret: Vec<String>,
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let url = reader.checked(Part::Settings, "url", 2_000, endpoint);
    let idempotent = reader.flag("idempotent");
    let secret = required_secrets(reader, "secret");
    Some((Settings { url: url?, idempotent }, Credentials { secret: secret? }))
}

/// Secrets of Standard Webhooks.
pub(crate) fn secrets(reader: &mut Reader, name: &'static str) -> Vec<String> {
    reader.secrets(name, |secret| signature::parse_secret(secret).map(drop))
}

fn required_secrets(reader: &mut Reader, name: &'static str) -> Option<Vec<String>> {
    let secrets = secrets(reader, name);
    if secrets.is_empty() {
        reader.wrong(
            Part::Credentials,
            name,
            "must be whsec_ and at least 24 bytes in base64 behind it",
        );
        return None;
    }
    Some(secrets)
}

#[derive(Serialize)]
struct Body<'a> {
    id: RecipientId,
    campaign: CampaignId,
    recipient: Recipient<'a>,
    message: Text<'a>,
    attempt: u32,
}

#[derive(Serialize)]
struct Recipient<'a> {
    address: &'a str,
    fields: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<&'a str>,
}

/// The request of a message.
fn request(
    settings: &Settings,
    credentials: &Credentials,
    message: &Message,
    now: Timestamp,
) -> Request {
    let body = Body {
        id: message.recipient,
        campaign: message.campaign,
        recipient: Recipient { address: &message.address, fields: &message.fields },
        message: Text {
            subject: message.subject.as_deref(),
            text: &message.text,
            html: message.html.as_deref(),
        },
        attempt: message.attempt,
    };
    // Texts and numbers can always be written.
    let body = serde_json::to_string(&body).unwrap_or_default();
    let signatures =
        signature::signatures(&keys(&credentials.secret), message.recipient, now, &body);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in [
        ("webhook-id", message.recipient.to_string()),
        ("webhook-timestamp", now.as_second().to_string()),
        ("webhook-signature", signatures),
        ("idempotency-key", message.recipient.to_string()),
    ] {
        // Ids, numbers and base64 are always fit for a header.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    Request { method: Method::POST, url: settings.url.clone(), headers, body: body.into() }
}

fn keys(secrets: &[String]) -> Vec<Vec<u8>> {
    secrets.iter().filter_map(|secret| signature::parse_secret(secret).ok()).collect()
}

pub(crate) async fn send(
    settings: &Settings,
    credentials: &Credentials,
    client: &Client,
    message: &Message,
    before: &mut dyn BeforeWrite,
) -> Outcome {
    let request = request(settings, credentials, message, Timestamp::now());
    match client.send_when(request, before).await {
        Ok(answer) => outcome(&answer, settings.idempotent),
        Err(error) => answers::unanswered(&error),
    }
}

/// What an answer means.
fn outcome(answer: &Answer, is_idempotent: bool) -> Outcome {
    let failure = || answers::failure(answer);
    match answer.status {
        200..=299 => Outcome::Sent { provider_id: provider_id(answer), moved_to: None },
        300..=399 => answers::redirected(answer),
        429 => Outcome::SlowDown(answers::pause(answer).unwrap_or(PAUSE), failure()),
        503 if let Some(pause) = answers::pause(answer) => Outcome::SlowDown(pause, failure()),
        401 | 403 | 410 => Outcome::Account(failure()),
        408 | 425 | 500.. if is_idempotent => Outcome::Temporary(failure()),
        status if answers::is_lost(status) => Outcome::Unknown(failure()),
        500.. => Outcome::Temporary(failure()),
        _ => Outcome::Never(failure(), None),
    }
}

/// The field `id` of an answer, if there is one: a text or a number.
fn provider_id(answer: &Answer) -> Option<String> {
    #[derive(Deserialize)]
    struct Accepted {
        id: serde_json::Value,
    }
    let id = answers::scalar(&answers::json::<Accepted>(answer)?.id)?;
    answers::provider_id(&id)
}

/// Asks the endpoint with `HEAD`, which sends no message: it must be there, whatever it says about the method.
/// Asks with `HEAD`, which sends no message: the endpoint must be there. Many know no other method than `POST`.
pub(crate) async fn check(settings: &Settings, client: &Client) -> Result<Checked, Failure> {
    let (method, headers) = (Method::HEAD, HeaderMap::new());
    let request = Request { method, url: settings.url.clone(), headers, body: Default::default() };
    match client.send(request).await {
        Ok(answer) if matches!(answer.status, 300..=399 | 410) => Err(answers::failure(&answer)),
        Ok(answer) => Checked::by_head("endpoint", &answer),
        Err(error) => Err(failed(&error)),
    }
}

/// The failure of a call without an answer.
pub(crate) fn failed(error: &stampede_outbound::Error) -> Failure {
    let outcome = answers::unanswered(error);
    outcome.failure().cloned().unwrap_or_else(|| Failure::new("no_answer", ""))
}

/// The body of a request that is signed with one of the account's secrets.
pub(crate) fn proven<'a, T: Deserialize<'a>>(
    secrets: &[String],
    incoming: &Incoming<'a>,
) -> Result<T, Refused> {
    if secrets.is_empty() {
        return Err(Refused::NotOffered);
    }
    let verified = signature::verify(&keys(secrets), incoming.headers, incoming.body, incoming.now);
    verified.map_err(|unproven| match unproven {
        Unproven::Unsigned => Refused::NoSignature,
        Unproven::Wrong | Unproven::Old => Refused::WrongSignature,
    })?;
    serde_json::from_slice(incoming.body).map_err(|error| Refused::Malformed(error.to_string()))
}

#[derive(Deserialize)]
struct Receipt {
    id: RecipientId,
    status: Told,
    code: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Told {
    Sent,
    Delivered,
    Read,
    Failed,
}

/// Reads a receipt.
pub(crate) fn receipts(
    credentials: &Credentials,
    incoming: &Incoming,
) -> Result<Vec<Notice>, Refused> {
    let receipt: Receipt = proven(&credentials.secret, incoming)?;
    let code = answers::code(&receipt.code.unwrap_or_default());
    let failure = Failure::new(code, &receipt.detail.unwrap_or_default());
    let status = match receipt.status {
        Told::Sent => Status::Sent,
        Told::Delivered => Status::Delivered,
        Told::Read => Status::Read,
        Told::Failed => Status::Failed,
    };
    Ok(vec![Notice::Receipt {
        recipient: Some(receipt.id),
        provider_id: None,
        status,
        is_bounce: failure.code == BOUNCE,
        code: Some(failure.code).filter(|code| !code.is_empty()),
        detail: Some(failure.text).filter(|text| !text.is_empty()),
        suppress: None,
        addresses: Vec::new(),
        at: incoming.now,
    }])
}

#[cfg(test)]
mod tests;
