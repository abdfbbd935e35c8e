//! WhatsApp: the Cloud API of Meta.
//!
//! The recipient's id travels as `biz_opaque_callback_data` and comes back in receipts: so they settle messages of which nobody
//! knew whether they arrived.

mod codes;
mod receipts;

use std::time::Instant;

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{Answer, BeforeWrite, Client, Request};
use url::Url;

pub(crate) use self::codes::State;
pub(crate) use self::receipts::{challenge, receipts};
use crate::answers;
use crate::message::Message;
use crate::settings::{Part, Reader, word};
use crate::webhook::AGENT;
use crate::words::StopWords;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    phone_number_id: String,
    #[serde(default = "version")]
    api_version: String,
    /// The number is used in the app, too: Meta allows it fewer messages.
    #[serde(default)]
    pub(crate) also_in_app: bool,
    #[serde(default, skip_serializing_if = "StopWords::is_default")]
    stop_words: StopWords,
}

fn version() -> String {
    "v23.0".to_owned()
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    access_token: String,
    /// What receipts are signed with: the present secret and former ones.
    #[serde(default)]
    app_secret: Vec<String>,
    /// What Meta shows when it asks whether receipts may be sent.
    #[serde(default)]
    verify_token: Vec<String>,
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let id = reader.checked(Part::Settings, "phoneNumberId", 40, |text| {
        match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Ok(text.to_owned()),
            false => Err("must be the number's id: digits".to_owned()),
        }
    });
    let api_version = reader.checked_if_given(Part::Settings, "apiVersion", 10, |text| match text
        .strip_prefix('v')
        .and_then(|rest| rest.split_once('.'))
    {
        Some((major, minor)) if [major, minor].iter().all(|part| part.parse::<u16>().is_ok()) => {
            Ok(text.to_owned())
        }
        _ => Err("must be a version such as v23.0".to_owned()),
    });
    let also_in_app = reader.flag("alsoInApp");
    let stop_words = StopWords::read(reader);
    let access_token =
        reader.checked(Part::Credentials, "accessToken", 1_000, |text| word(text, "_-.|", 20));
    let app_secret = reader.secrets("appSecret", |secret| word(secret, "", 16).map(drop));
    let verify_token = reader.secrets("verifyToken", |_| Ok(()));
    let api_version = api_version.unwrap_or_else(version);
    Some((
        Settings { phone_number_id: id?, api_version, also_in_app, stop_words },
        Credentials { access_token: access_token?, app_secret, verify_token },
    ))
}

/// A request about the account's number.
fn request(
    settings: &Settings,
    credentials: &Credentials,
    base: &Url,
    method: Method,
    (path, body): (&str, String),
) -> Result<Request, Failure> {
    let base = base.as_str().trim_end_matches('/');
    let (version, id) = (&settings.api_version, &settings.phone_number_id);
    let wrong = |_| Failure::new("request", "WHATSAPP_API_URL is no base of URLs");
    let url: Url = format!("{base}/{version}/{id}{path}").parse().map_err(wrong)?;
    let mut headers = HeaderMap::new();
    let bearer = format!("Bearer {}", credentials.access_token);
    let mut bearer = HeaderValue::try_from(bearer)
        .map_err(|_| Failure::new("request", "the access token is not fit for a header"))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(Request { method, url, headers, body: body.into() })
}

/// The body of a message: an approved template, or a text, which Meta takes only within a day of the person's last message.
fn body(message: &Message) -> Value {
    // Numbers go without their plus.
    let to = message.address.trim_start_matches('+');
    let mut body = json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "biz_opaque_callback_data": message.recipient,
    });
    let content = match &message.whatsapp {
        Some(template) => {
            let values: Vec<Value> = template
                .values
                .iter()
                .map(|text| json!({ "type": "text", "text": text }))
                .collect();
            let components = match values.is_empty() {
                true => json!([]),
                false => json!([{ "type": "body", "parameters": values }]),
            };
            body["type"] = json!("template");
            (
                "template",
                json!({
                    "name": template.name,
                    "language": { "code": template.language },
                    "components": components,
                }),
            )
        }
        None => {
            body["type"] = json!("text");
            ("text", json!({ "body": message.text, "preview_url": false }))
        }
    };
    body[content.0] = content.1;
    body
}

pub(crate) async fn send(
    settings: &Settings,
    credentials: &Credentials,
    state: &State,
    (client, base): (&Client, &Url),
    message: &Message,
    before: &mut dyn BeforeWrite,
) -> Outcome {
    let what = ("/messages", body(message).to_string());
    let request = match request(settings, credentials, base, Method::POST, what) {
        Ok(request) => request,
        Err(failure) => return Outcome::Account(failure),
    };
    match client.send_when(request, before).await {
        Ok(answer) => outcome(&answer, message, state, Instant::now()),
        Err(error) => answers::unanswered(&error),
    }
}

/// What an answer says.
enum Told {
    Messages(Vec<Accepted>),
    Error(Refusal),
}

#[derive(Deserialize)]
struct Accepted {
    id: String,
}

#[derive(Deserialize)]
struct Whole {
    messages: Option<Vec<Accepted>>,
    error: Option<Refusal>,
}

impl Whole {
    fn told(self) -> Option<Told> {
        match (self.error, self.messages) {
            (Some(error), _) => Some(Told::Error(error)),
            (None, messages) => messages.map(Told::Messages),
        }
    }
}

/// An error as the Cloud API tells it. Only the code says what to do.
#[derive(Deserialize)]
struct Refusal {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    error_data: Option<Data>,
    #[serde(default)]
    fbtrace_id: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    details: Option<String>,
}

impl Refusal {
    fn failure(&self) -> Failure {
        let details = self.error_data.as_ref().and_then(|data| data.details.as_deref());
        let mut text = details.unwrap_or(&self.message).to_owned();
        if let Some(trace) = &self.fbtrace_id {
            text = format!("{text} (fbtrace_id {trace})");
        }
        Failure::new(self.code.to_string(), &text)
    }
}

/// What an answer means.
fn outcome(answer: &Answer, message: &Message, state: &State, now: Instant) -> Outcome {
    match answers::json::<Whole>(answer).and_then(Whole::told) {
        Some(Told::Messages(messages)) if (200..300).contains(&answer.status) => {
            state.worked(message.recipient, now);
            let provider_id = messages.first().and_then(|sent| answers::provider_id(&sent.id));
            Outcome::Sent { provider_id, moved_to: None }
        }
        Some(Told::Error(refusal)) => {
            codes::outcome(answer.status, refusal.code, refusal.failure(), message, state, now)
        }
        _ => answers::foreign(answer),
    }
}

/// Asks for the account's number.
pub(crate) async fn check(
    settings: &Settings,
    credentials: &Credentials,
    (client, base): (&Client, &Url),
) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Number {
        display_phone_number: String,
        #[serde(default)]
        verified_name: String,
    }
    let path = "?fields=display_phone_number,verified_name";
    let what = (path, String::new());
    let request = request(settings, credentials, base, Method::GET, what)?;
    let answer = client.send(request).await.map_err(|error| crate::webhook::failed(&error))?;
    match answers::json::<Number>(&answer) {
        Some(told) if answer.status == 200 => {
            Ok(format!("the number {} of {}", told.display_phone_number, told.verified_name))
        }
        _ => match answers::json::<Whole>(&answer).and_then(Whole::told) {
            Some(Told::Error(refusal)) => Err(refusal.failure()),
            _ => Err(answers::failure(&answer)),
        },
    }
}

#[cfg(test)]
mod tests;
