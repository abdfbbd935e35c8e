//! Twilio: `Messages.json`, its codes, and its signed receipts. Our id travels in the URL that receipts are sent to: so they
//! settle messages of which nobody knew whether they arrived.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use ring::hmac;
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{AccountId, Failure, Outcome, SuppressionReason};
use stampede_outbound::{Answer, Client, Request};
use url::Url;
use url::form_urlencoded::{self, Serializer};

use super::Credentials;
use crate::answers::{self, PAUSE};
use crate::message::Message;
use crate::notice::{Incoming, Notice, Refused, Status};
use crate::proof;
use crate::settings::{Part, Reader, endpoint, word};
use crate::webhook::{AGENT, failed};
use crate::words::StopWords;

const API: &str = "https://api.twilio.com";
/// The header with the signature.
const SIGNATURE: &str = "x-twilio-signature";
/// The parameter of the receipts' URL with our id.
const RECIPIENT: &str = "recipient";
/// Most fields of a receipt, which has about twenty. They are sorted before anything is proven.
const MOST_FIELDS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    account_sid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messaging_service_sid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_url: Option<String>,
    #[serde(default, skip_serializing_if = "StopWords::is_default")]
    stop_words: StopWords,
}

pub(super) fn read(reader: &mut Reader) -> Option<(super::Settings, Credentials)> {
    let sid = |prefix: &'static str| {
        move |text: &str| match text.strip_prefix(prefix) {
            Some(rest) if rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(text.to_owned())
            }
            _ => Err(format!("must be {prefix} and 32 hexadecimal digits")),
        }
    };
    let account_sid = reader.checked(Part::Settings, "accountSid", 40, sid("AC"));
    let from = reader.text(Part::Settings, "from", 40);
    let service = reader.checked_if_given(Part::Settings, "messagingServiceSid", 40, sid("MG"));
    if from.is_some() == service.is_some() {
        reader.wrong(Part::Settings, "from", "give either from or messagingServiceSid");
    }
    let api_url = reader
        .checked_if_given(Part::Settings, "apiUrl", 200, |text| endpoint(text).map(String::from));
    let stop_words = StopWords::read(reader);
    let auth_token = reader.secrets("authToken", |text| word(text, "", 16).map(drop));
    if auth_token.is_empty() {
        reader.wrong(Part::Credentials, "authToken", "is missing, or is no token");
        return None;
    }
    let account_sid = account_sid?;
    let settings =
        Settings { account_sid, from, messaging_service_sid: service, api_url, stop_words };
    let credentials = Credentials { auth_token, ..Credentials::default() };
    Some((super::Settings::Twilio(settings), credentials))
}

/// An account that is ready to send.
pub(crate) struct Twilio {
    settings: Settings,
    headers: HeaderMap,
    account: String,
    messages: Url,
}

impl Twilio {
    pub(super) fn new(settings: Settings, auth_token: Vec<String>) -> Result<Self, Failure> {
        let base = settings.api_url.as_deref().unwrap_or(API).trim_end_matches('/');
        let account = format!("{base}/2010-04-01/Accounts/{}", settings.account_sid);
        let wrong = |_| Failure::new("settings", "apiUrl is no base of URLs");
        let messages = format!("{account}/Messages.json").parse().map_err(wrong)?;
        let token = auth_token.first().map(String::as_str).unwrap_or_default();
        let basic = STANDARD.encode(format!("{}:{token}", settings.account_sid));
        let mut basic = HeaderValue::try_from(format!("Basic {basic}"))
            .map_err(|_| Failure::new("credentials", "the token is not fit for a header"))?;
        basic.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, basic);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(Self { settings, headers, account, messages })
    }

    /// The request of a message.
    pub(super) fn request(
        &self,
        receipts: Option<&Url>,
        account: &AccountId,
        message: &Message,
    ) -> Request {
        let mut form = Serializer::new(String::new());
        form.append_pair("To", &message.address).append_pair("Body", &message.text);
        if let Some(from) = &self.settings.from {
            form.append_pair("From", from);
        }
        if let Some(service) = &self.settings.messaging_service_sid {
            form.append_pair("MessagingServiceSid", service);
        }
        if let Some(base) = receipts {
            let base = base.as_str().trim_end_matches('/');
            let (recipient, name) = (message.recipient, RECIPIENT);
            form.append_pair(
                "StatusCallback",
                &format!("{base}/hooks/sms/{account}?{name}={recipient}"),
            );
        }
        let mut headers = self.headers.clone();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        let (method, url) = (Method::POST, self.messages.clone());
        Request { method, url, headers, body: form.finish().into() }
    }

    /// Asks whose account it is.
    pub(super) async fn check(&self, client: &Client) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Told {
            friendly_name: String,
            status: String,
        }
        let wrong = |_| Failure::new("settings", "apiUrl is no base of URLs");
        let url = format!("{}.json", self.account).parse().map_err(wrong)?;
        let (method, headers) = (Method::GET, self.headers.clone());
        let request = Request { method, url, headers, body: Default::default() };
        let answer = client.send(request).await.map_err(|error| failed(&error))?;
        match answers::json::<Told>(&answer) {
            Some(told) if answer.status == 200 => {
                Ok(format!("the account {} ({})", told.friendly_name, told.status))
            }
            _ => {
                Err(refusal(&answer)
                    .map_or_else(|| answers::failure(&answer), |(_, failure)| failure))
            }
        }
    }
}

/// The code and the text of an error.
fn refusal(answer: &Answer) -> Option<(i64, Failure)> {
    #[derive(Deserialize)]
    struct Told {
        code: i64,
        #[serde(default)]
        message: String,
    }
    let told: Told = answers::json(answer)?;
    Some((told.code, Failure::new(told.code.to_string(), &told.message)))
}

/// Whether a code says that there is no such number, or none that gets texts: invalid numbers, unknown handsets, landlines.
fn is_bounce(code: i64) -> bool {
    matches!(code, 21_211 | 21_614 | 30_005 | 30_006)
}

/// What an answer means.
pub(super) fn outcome(answer: &Answer) -> Outcome {
    #[derive(Deserialize)]
    struct Accepted {
        sid: String,
    }
    if (200..300).contains(&answer.status) {
        return match answers::json::<Accepted>(answer) {
            Some(accepted) => {
                let provider_id = answers::provider_id(&accepted.sid);
                Outcome::Sent { provider_id, moved_to: None }
            }
            None => answers::foreign(answer),
        };
    }
    let Some((code, failure)) = refusal(answer) else { return answers::foreign(answer) };
    match code {
        21_610 => Outcome::Never(failure, Some(SuppressionReason::Stop)),
        _ if is_bounce(code) => Outcome::Bounced(failure, None),
        20_429 => Outcome::SlowDown(answers::pause(answer).unwrap_or(PAUSE), failure),
        20_003 => Outcome::Account(failure),
        _ => match answer.status {
            429 => Outcome::SlowDown(answers::pause(answer).unwrap_or(PAUSE), failure),
            401 | 403 => Outcome::Account(failure),
            500.. => Outcome::Temporary(failure),
            _ => Outcome::Never(failure, None),
        },
    }
}

/// Verifies and reads a receipt, or a message of a person.
pub(super) fn receipts(
    settings: &Settings,
    tokens: &[String],
    incoming: &Incoming,
) -> Result<Vec<Notice>, Refused> {
    let fields = form_urlencoded::parse(incoming.body).into_owned();
    let form: Vec<(String, String)> = fields.take(MOST_FIELDS + 1).collect();
    if form.len() > MOST_FIELDS {
        return Err(Refused::Malformed(format!("the receipt has more than {MOST_FIELDS} fields")));
    }
    verify(tokens, incoming, &form)?;
    let field =
        |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if field("AccountSid") != Some(settings.account_sid.as_str()) {
        return Err(Refused::Malformed("the receipt is for another account".to_owned()));
    }
    match field("MessageStatus") {
        Some(status) => Ok(receipt(status, field, incoming).into_iter().collect()),
        None => {
            let from = || field("From").unwrap_or_default().to_owned();
            let said = || settings.stop_words.notice(field("Body").unwrap_or_default(), from);
            // Twilio tells what it has understood and carried out itself, whatever words the account has.
            let notice = match field("OptOutType") {
                Some("STOP") => {
                    Some(Notice::Stop { address: from(), reason: SuppressionReason::Stop })
                }
                Some("START") => Some(Notice::Start { address: from() }),
                _ => said(),
            };
            Ok(notice.into_iter().collect())
        }
    }
}

fn receipt<'a>(
    status: &str,
    field: impl Fn(&str) -> Option<&'a str>,
    incoming: &Incoming,
) -> Option<Notice> {
    let status = match status {
        "sent" => Status::Sent,
        "delivered" => Status::Delivered,
        "read" => Status::Read,
        "failed" | "undelivered" => Status::Failed,
        _ => return None,
    };
    let recipient = form_urlencoded::parse(incoming.query.as_bytes())
        .find(|(name, _)| name == RECIPIENT)
        .and_then(|(_, id)| id.parse().ok());
    let code = field("ErrorCode").filter(|code| !code.is_empty() && *code != "0");
    let failure = code
        .map(|code| Failure::new(answers::code(code), field("ErrorMessage").unwrap_or_default()));
    let suppress = (code == Some("21610")).then_some(SuppressionReason::Stop);
    let is_bounce = code.and_then(|code| code.parse().ok()).is_some_and(is_bounce);
    let (code, detail) = failure.map(|failure| (failure.code, failure.text)).unzip();
    Some(Notice::Receipt {
        recipient,
        provider_id: field("MessageSid").and_then(answers::provider_id),
        status,
        code,
        detail: detail.filter(|text| !text.is_empty()),
        is_bounce,
        suppress,
        addresses: field("To").map(str::to_owned).into_iter().collect(),
        at: incoming.now,
    })
}

/// The signature is over the URL and the parameters, sorted by name.
pub(super) fn verify(
    tokens: &[String],
    incoming: &Incoming,
    form: &[(String, String)],
) -> Result<(), Refused> {
    let mut given = incoming.headers.get_all(SIGNATURE).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => return Err(Refused::NoSignature),
        (Some(one), None) => one.to_str().unwrap_or_default(),
        _ => return Err(Refused::WrongSignature),
    };
    let mut sorted: Vec<&(String, String)> = form.iter().collect();
    sorted.sort();
    let mut signed = incoming.url.to_owned();
    for (name, value) in sorted {
        signed.push_str(name);
        signed.push_str(value);
    }
    let signature = STANDARD.decode(given).unwrap_or_default();
    let algorithm = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
    match proof::is_signed(algorithm, tokens, signed.as_bytes(), &signature) {
        true => Ok(()),
        false => Err(Refused::WrongSignature),
    }
}

#[cfg(test)]
mod tests;
