//! SMS: any provider that takes a request for each message, and Twilio, whose requests, codes and receipts are known.
//!
//! | settings | meaning |
//! |---|---|
//! | `profile: "twilio"` | `accountSid`, and `from` or `messagingServiceSid`; `apiUrl` for tests |
//! | otherwise | `method`, `url`, `headers`, `body` (a template), `idPointer` and `codePointer` into the answer, `codes` |
//!
//! What proves to another provider who asks is in `credentials.headers`, or in `credentials.secret`, which the body names.

mod request;
mod table;
mod template;
pub(crate) mod twilio;

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{AccountId, Failure, Outcome};
use stampede_outbound::{BeforeWrite, Client};
use url::Url;

use self::request::Custom;
use self::table::Action;
use self::template::{Escape, Template};
use self::twilio::Twilio;
use crate::answers;
use crate::checked::Checked;
use crate::message::Message;
use crate::notice::{Incoming, Notice, Refused};
use crate::settings::{LONGEST_SECRET, Part, Reader, endpoint, shown, word};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "profile")]
pub(crate) enum Settings {
    Twilio(twilio::Settings),
    Http(HttpSettings),
}

/// A provider of which only the form of its requests is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpSettings {
    method: String,
    #[serde(with = "crate::settings::as_text")]
    url: Url,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id_pointer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code_pointer: Option<String>,
    /// A code or a status of HTTP, and what follows.
    #[serde(default)]
    codes: BTreeMap<String, Action>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Credentials {
    /// Twilio's: the present token and former ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    auth_token: Vec<String>,
    /// Headers that prove who asks, such as `Authorization`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    /// What the body names as `{{ secret.NAME }}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    secret: BTreeMap<String, String>,
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let profile = reader.text(Part::Settings, "profile", 20);
    match profile.as_deref() {
        Some("twilio") => twilio::read(reader),
        None | Some("http") => read_http(reader),
        Some(_) => {
            reader.wrong(
                Part::Settings,
                "profile",
                "must be twilio, or http for any other provider",
            );
            None
        }
    }
}

fn read_http(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let methods = ["POST", "PUT", "GET"];
    let method = reader.checked_if_given(Part::Settings, "method", 10, |text| {
        let upper = text.to_uppercase();
        match methods.contains(&upper.as_str()) {
            true => Ok(upper),
            false => Err(format!("must be one of {}", methods.join(", "))),
        }
    });
    let method = method.unwrap_or_else(|| "POST".to_owned());
    let url = reader.checked(Part::Settings, "url", 2_000, endpoint);
    let headers = read_headers(reader, Part::Settings);
    let secret_headers = read_headers(reader, Part::Credentials);
    let secret = read_secrets(reader);
    let escape = Escape::of(&method, &headers);
    let body = reader.template("body", |text| Template::parse(text, escape, &secret).map(drop));
    let mut pointer = |name: &'static str| {
        reader.checked_if_given(Part::Settings, name, 200, |text| match text.starts_with('/') {
            true => Ok(text.to_owned()),
            false => Err("must be a JSON pointer such as /message/id".to_owned()),
        })
    };
    let (id_pointer, code_pointer) = (pointer("idPointer"), pointer("codePointer"));
    let mut codes = BTreeMap::new();
    for (code, word) in reader.pairs(Part::Settings, "codes") {
        match Action::from_word(&word) {
            Some(action) => {
                codes.insert(code, action);
            }
            None => {
                let known = Action::WORDS.map(|(word, _)| word).join(", ");
                reader.wrong(
                    Part::Settings,
                    &format!("codes.{code}"),
                    format!("must be one of {known}"),
                );
            }
        }
    }
    let (url, body) = (url?, body?);
    let settings = HttpSettings { method, url, headers, body, id_pointer, code_pointer, codes };
    let credentials = Credentials { headers: secret_headers, secret, ..Credentials::default() };
    Some((Settings::Http(settings), credentials))
}

fn read_headers(reader: &mut Reader, part: Part) -> BTreeMap<String, String> {
    let headers = reader.pairs(part, "headers");
    for (name, value) in &headers {
        let field = format!("headers.{name}");
        let is_ours = ["host", "content-length", "transfer-encoding", "connection"];
        if is_ours.contains(&name.to_lowercase().as_str()) {
            reader.wrong(part, &field, "is set by the client");
        } else if part == Part::Settings && name.eq_ignore_ascii_case("authorization") {
            reader.wrong(part, &field, "is a secret: it belongs into credentials.headers");
        } else if HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err() {
            reader.wrong(part, &field, "is no header of HTTP");
        }
    }
    headers
}

/// The secrets that a body may name.
fn read_secrets(reader: &mut Reader) -> BTreeMap<String, String> {
    let secrets = reader.pairs(Part::Credentials, "secret");
    for (name, value) in &secrets {
        let field = format!("secret.{}", shown(name));
        if let Err(reason) = word(name, "_-", 1) {
            reader.wrong(Part::Credentials, &field, format!("has a name that {reason}"));
        } else if value.is_empty() || value.len() > LONGEST_SECRET {
            let reason = format!("must have from 1 to {LONGEST_SECRET} bytes");
            reader.wrong(Part::Credentials, &field, reason);
        } else if value.chars().any(char::is_control) {
            let reason = "must have no control characters and no line breaks";
            reader.wrong(Part::Credentials, &field, reason);
        }
    }
    secrets
}

/// All headers of a request, the secret ones marked.
fn header_map(settings: &BTreeMap<String, String>, secret: &BTreeMap<String, String>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (headers, is_secret) in [(settings, false), (secret, true)] {
        for (name, value) in headers {
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                value.set_sensitive(is_secret);
                map.insert(name, value);
            }
        }
    }
    map
}

/// An account that is ready to send.
pub(crate) enum Sender {
    Twilio(Twilio),
    Http(Custom),
}

impl Sender {
    pub(crate) fn open(settings: Settings, credentials: Credentials) -> Result<Self, Failure> {
        match settings {
            Settings::Twilio(settings) => {
                Twilio::new(settings, credentials.auth_token).map(Self::Twilio)
            }
            Settings::Http(settings) => Custom::new(settings, &credentials).map(Self::Http),
        }
    }

    pub(crate) async fn send(
        &self,
        client: &Client,
        receipts: Option<&Url>,
        account: &AccountId,
        message: &Message,
        before: &mut dyn BeforeWrite,
    ) -> Outcome {
        let request = match self {
            Self::Twilio(twilio) => twilio.request(receipts, account, message),
            Self::Http(custom) => custom.request(message),
        };
        let answer = match client.send_when(request, before).await {
            Ok(answer) => answer,
            Err(error) => return answers::unanswered(&error),
        };
        match self {
            Self::Twilio(_) => twilio::outcome(&answer),
            Self::Http(custom) => custom.outcome(&answer),
        }
    }

    pub(crate) async fn check(&self, client: &Client) -> Result<Checked, Failure> {
        match self {
            Self::Twilio(twilio) => twilio.check(client).await.map(Checked::verified),
            Self::Http(custom) => custom.check(client).await,
        }
    }
}

/// Receipts: Twilio's only.
pub(crate) fn receipts(
    settings: &Settings,
    credentials: &Credentials,
    incoming: &Incoming,
) -> Result<Vec<Notice>, Refused> {
    match settings {
        Settings::Twilio(settings) => twilio::receipts(settings, &credentials.auth_token, incoming),
        Settings::Http(_) => Err(Refused::NotOffered),
    }
}

#[cfg(test)]
mod tests;
