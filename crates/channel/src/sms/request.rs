//! A provider of which only the form of its requests is known.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{Answer, Client, Request};

use super::template::{Escape, Name, Template};
use super::{HttpSettings, header_map};
use crate::answers;
use crate::message::Message;
use crate::webhook::{AGENT, failed};

/// Most bytes of a provider's id that are kept.
const LONGEST_ID: usize = 256;

/// An account that is ready to send.
pub(crate) struct Custom {
    settings: HttpSettings,
    method: Method,
    headers: HeaderMap,
    template: Template,
}

impl Custom {
    pub(super) fn new(
        settings: HttpSettings,
        secret_headers: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let wrong = |reason: &str| Failure::new("settings", reason);
        let method = Method::from_bytes(settings.method.as_bytes())
            .map_err(|_| wrong("the method is none of HTTP"))?;
        let escape = Escape::of(&settings.method, &settings.headers);
        let template = Template::parse(&settings.body, escape).map_err(|error| wrong(&error))?;
        let mut headers = header_map(&settings.headers, secret_headers);
        if method != Method::GET && !headers.contains_key(CONTENT_TYPE) {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, form);
        }
        if !headers.contains_key(USER_AGENT) {
            headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        }
        Ok(Self { settings, method, headers, template })
    }

    /// The request of a message. With `GET`, the filled body is the query.
    pub(super) fn request(&self, message: &Message) -> Request {
        let filled = self.template.fill(|name| match name {
            Name::To => message.address.clone(),
            Name::ToDigits => message.address.trim_start_matches('+').to_owned(),
            Name::Text => message.text.clone(),
            Name::Recipient => message.recipient.to_string(),
        });
        let (method, headers, mut url) =
            (self.method.clone(), self.headers.clone(), self.settings.url.clone());
        let mut body = filled;
        if method == Method::GET {
            let query = match url.query() {
                Some(given) if !given.is_empty() => format!("{given}&{body}"),
                _ => body,
            };
            url.set_query(Some(&query));
            body = String::new();
        }
        Request { method, url, headers, body: body.into() }
    }

    /// What an answer means: by its code, then by its status.
    pub(super) fn outcome(&self, answer: &Answer) -> Outcome {
        let json: Value = answers::json(answer).unwrap_or_default();
        let at = |pointer: &Option<String>| text(json.pointer(pointer.as_deref()?)?);
        let (code, provider_id) = (at(&self.settings.code_pointer), at(&self.settings.id_pointer));
        let status = answer.status.to_string();
        let known = |code: &str| self.settings.codes.get(code).copied();
        let mut failure = answers::failure(answer);
        if let Some(code) = &code {
            failure.code.clone_from(code);
        }
        if let Some(action) = code.as_deref().and_then(known).or_else(|| known(&status)) {
            return action.outcome(failure, provider_id, answers::pause(answer));
        }
        match answer.status {
            200..=299 if self.settings.id_pointer.is_none() || provider_id.is_some() => {
                Outcome::Sent { provider_id, moved_to: None }
            }
            _ => match answers::foreign(answer) {
                Outcome::Unknown(_) if answer.status < 300 => {
                    let text = format!("the answer has no id where it should be: {}", failure.text);
                    Outcome::Unknown(Failure::new(failure.code, &text))
                }
                other => other,
            },
        }
    }

    /// Asks with `HEAD`, which sends no message: the provider must be there.
    pub(super) async fn check(&self, client: &Client) -> Result<String, Failure> {
        let (url, headers) = (self.settings.url.clone(), self.headers.clone());
        let request = Request { method: Method::HEAD, url, headers, body: Default::default() };
        let answer = client.send(request).await.map_err(|error| failed(&error))?;
        match answer.status {
            300..=399 | 401 | 403 | 500.. => Err(answers::failure(&answer)),
            status => Ok(format!("the provider answers {status} to HEAD; no message was sent")),
        }
    }
}

/// A text or a number.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty() && text.len() <= LONGEST_ID && !text.chars().any(char::is_control))
        .then_some(text)
}
