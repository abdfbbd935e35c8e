//! A provider of which only the form of its requests is known.

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{Answer, Client, Request};

use super::table::Action;
use super::template::{Escape, Name, Template};
use super::{Credentials, HttpSettings, header_map};
use crate::answers;
use crate::checked::Checked;
use crate::message::Message;
use crate::webhook::{AGENT, failed};

/// An account that is ready to send.
pub(crate) struct Custom {
    settings: HttpSettings,
    method: Method,
    headers: HeaderMap,
    template: Template,
}

impl Custom {
    pub(super) fn new(settings: HttpSettings, credentials: &Credentials) -> Result<Self, Failure> {
        let wrong = |reason: &str| Failure::new("settings", reason);
        let method = Method::from_bytes(settings.method.as_bytes())
            .map_err(|_| wrong("the method is none of HTTP"))?;
        let escape = Escape::of(&settings.method, &settings.headers);
        let template = Template::parse(&settings.body, escape, &credentials.secret)
            .map_err(|error| wrong(&error))?;
        let mut headers = header_map(&settings.headers, &credentials.headers);
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
        let HttpSettings { id_pointer, code_pointer, codes, .. } = &self.settings;
        let json: Value = answers::json(answer).unwrap_or_default();
        let at = |pointer: &Option<String>| {
            json.pointer(pointer.as_deref()?).filter(|value| is_something(value))
        };
        let (id, code) = (at(id_pointer).and_then(answers::scalar), at(code_pointer));
        let told =
            Told { has_id: id.is_some(), has_code: code.is_some(), is_whole: answer.is_whole };
        let code = code.and_then(code_text);
        let provider_id = id.and_then(|id| answers::provider_id(&id));
        let mut failure = answers::failure(answer);
        if let Some(code) = &code {
            failure.code = answers::code(code);
        }
        let by_code = code.and_then(|code| codes.get(&code));
        let by_status = codes.get(&answer.status.to_string());
        let is_success = match by_code.or(by_status) {
            Some(Action::Sent) => true,
            Some(_) => false,
            None => (200..300).contains(&answer.status),
        };
        if is_success
            && by_code.is_none()
            && let Some(doubt) = self.doubt(told, by_status.is_some())
        {
            return Outcome::Unknown(Failure::new(
                failure.code,
                &format!("{doubt}: {}", failure.text),
            ));
        }
        match by_code.or(by_status) {
            Some(action) => action.outcome(failure, provider_id, answers::pause(answer)),
            None if is_success => Outcome::Sent { provider_id, moved_to: None },
            None => answers::by_status(answer, failure),
        }
    }

    /// Why an answer that looks like a success may be none. Many providers answer 200 to everything, and tell in the code what
    /// became of the message: if the table says which codes mean sent, no other code does.
    fn doubt(&self, told: Told, is_status_known: bool) -> Option<&'static str> {
        let HttpSettings { id_pointer, code_pointer, codes, .. } = &self.settings;
        let has_codes = code_pointer.is_some() && !codes.is_empty();
        let names_success = has_codes && codes.values().any(|action| *action == Action::Sent);
        if has_codes && !told.is_whole {
            Some("the answer broke off before its code was known")
        } else if names_success && told.has_code {
            Some("the answer has a code that is not in the account's table")
        } else if is_status_known {
            None
        } else if id_pointer.is_some() && !told.has_id {
            Some("the answer has no id where it should be")
        } else if names_success && !told.has_id {
            Some("the answer has no code where it should be")
        } else {
            None
        }
    }

    /// Asks with `HEAD`, which sends no message: the provider must be there.
    pub(super) async fn check(&self, client: &Client) -> Result<Checked, Failure> {
        let (url, headers) = (self.settings.url.clone(), self.headers.clone());
        let request = Request { method: Method::HEAD, url, headers, body: Default::default() };
        let answer = client.send(request).await.map_err(|error| failed(&error))?;
        match answer.status {
            300..=399 | 401 | 403 => Err(answers::failure(&answer)),
            _ => Checked::by_head("provider", &answer),
        }
    }
}

/// What an answer has where it should be.
#[derive(Clone, Copy)]
struct Told {
    has_id: bool,
    /// Also a code that cannot be in a table, such as a list.
    has_code: bool,
    is_whole: bool,
}

/// Whether a value says anything: `null` and an empty text are absent.
fn is_something(value: &Value) -> bool {
    !value.is_null() && value.as_str() != Some("")
}

/// A code as the table has it: a text, a number or a truth value.
fn code_text(code: &Value) -> Option<String> {
    match code {
        Value::Bool(flag) => Some(flag.to_string()),
        code => answers::scalar(code),
    }
}
