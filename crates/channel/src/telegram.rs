//! Telegram: a bot, over the Bot API.
//!
//! The token is a part of the URL, so no error may name the URL. There are no delivery receipts: `sent` is the last state.

use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{Failure, Outcome, SuppressionReason};
use stampede_outbound::{Answer, AtOnce, BeforeWrite, Client, Request};
use url::Url;

use crate::answers;
use crate::message::Message;
use crate::notice::{Incoming, Notice, Received, Refused};
use crate::proof;
use crate::settings::{Part, Reader, word};
use crate::webhook::AGENT;
use crate::words::StopWords;

/// The header by which Telegram proves that an update is from it.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    /// Whether links have no preview.
    #[serde(default)]
    without_previews: bool,
    #[serde(default, skip_serializing_if = "StopWords::is_default")]
    stop_words: StopWords,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    token: String,
    /// What `setWebhook` was given as `secret_token`: the present one and former ones.
    #[serde(default)]
    webhook_secret: Vec<String>,
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let without_previews = reader.flag("withoutPreviews");
    let stop_words = StopWords::read(reader);
    let token = reader.checked(Part::Credentials, "token", 200, token);
    let webhook_secret = reader.secrets("webhookSecret", |secret| match secret.len() {
        ..=256 => word(secret, "_-", 16).map(drop),
        _ => Err("must have at most 256 letters".to_owned()),
    });
    Some((Settings { without_previews, stop_words }, Credentials { token: token?, webhook_secret }))
}

/// A token is the bot's number, a colon and letters.
fn token(text: &str) -> Result<String, String> {
    let (number, rest) = text.split_once(':').unwrap_or_default();
    let is_token = !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && word(rest, "_-", 20).is_ok();
    match is_token {
        true => Ok(text.to_owned()),
        false => Err("must be a bot's token as @BotFather tells it: 123456:ABC…".to_owned()),
    }
}

/// Calls one method of the Bot API.
async fn call(
    base: &Url,
    credentials: &Credentials,
    client: &Client,
    (method, body): (&str, String),
    before: &mut dyn BeforeWrite,
) -> Result<Answer, Outcome> {
    let base = base.as_str().trim_end_matches('/');
    let wrong =
        |_| Outcome::Account(Failure::new("request", "TELEGRAM_API_URL is no base of URLs"));
    let url: Url = format!("{base}/bot{}/{method}", credentials.token).parse().map_err(wrong)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    let request = Request { method: Method::POST, url, headers, body: body.into() };
    client.send_when(request, before).await.map_err(|error| answers::unanswered(&error))
}

/// The body of `sendMessage`.
fn body(settings: &Settings, message: &Message) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        chat_id: &'a str,
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parse_mode: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        link_preview_options: Option<Previews>,
    }
    #[derive(Serialize)]
    struct Previews {
        is_disabled: bool,
    }
    let body = Body {
        chat_id: &message.address,
        text: message.html.as_deref().unwrap_or(&message.text),
        parse_mode: message.html.is_some().then_some("HTML"),
        link_preview_options: settings.without_previews.then_some(Previews { is_disabled: true }),
    };
    // Texts can always be written.
    serde_json::to_string(&body).unwrap_or_default()
}

pub(crate) async fn send(
    settings: &Settings,
    credentials: &Credentials,
    (client, base): (&Client, &Url),
    message: &Message,
    before: &mut dyn BeforeWrite,
) -> Outcome {
    let body = body(settings, message);
    match call(base, credentials, client, ("sendMessage", body), before).await {
        Ok(answer) => outcome(&answer, &message.address),
        Err(outcome) => outcome,
    }
}

#[derive(Deserialize)]
struct Told {
    ok: bool,
    #[serde(default)]
    result: Option<Sent>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Sent {
    message_id: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

/// What an answer to a message for a chat means.
fn outcome(answer: &Answer, chat: &str) -> Outcome {
    let Some(told) = answers::json::<Told>(answer) else {
        return answers::foreign(answer);
    };
    if told.ok {
        let id = told.result.and_then(|sent| sent.message_id);
        let provider_id = id.map(|id| id.to_string());
        return Outcome::Sent { provider_id, moved_to: None };
    }
    match told.parameters.migrate_to_chat_id.map(|chat| chat.to_string()) {
        Some(same) if same == chat => {
            Outcome::Temporary(Failure::new("400", "the chat has moved to the chat that it is"))
        }
        // A group became a supergroup. Somebody there may have said stop, so the caller decides about the next call.
        Some(other) => {
            let text = format!("the chat has become {other}: {}", told.description);
            Outcome::Moved(other, Failure::new("moved", &text))
        }
        None => refused(answer.status, &told.description, told.parameters.retry_after),
    }
}

/// Parts of descriptions, in lower case, and what follows from them.
const DESCRIPTIONS: [(u16, &str, Means); 12] = [
    (400, "chat not found", Means::Bounced),
    (400, "user not found", Means::Bounced),
    (400, "peer_id_invalid", Means::Bounced),
    (403, "bot can't initiate conversation", Means::Never),
    (403, "blocked by the user", Means::Blocked),
    (403, "user is deactivated", Means::Deactivated),
    (403, "kicked from", Means::Blocked),
    (400, "can't parse entities", Means::Content),
    (400, "message is too long", Means::Content),
    (400, "text is too long", Means::Content),
    (400, "text is empty", Means::Content),
    (400, "text must be non-empty", Means::Content),
];

#[derive(Debug, Clone, Copy)]
enum Means {
    Never,
    /// There is no such chat.
    Bounced,
    Blocked,
    /// There was such a person, and is none any more.
    Deactivated,
    Content,
}

/// What a refusal means.
fn refused(status: u16, description: &str, retry_after: Option<u64>) -> Outcome {
    let failure = Failure::new(status.to_string(), description);
    let lower = description.to_lowercase();
    let known = DESCRIPTIONS
        .iter()
        .find(|(code, part, _)| *code == status && lower.contains(part))
        .map(|(_, _, means)| *means);
    match (status, known) {
        (_, Some(Means::Never)) => Outcome::Never(failure, None),
        (_, Some(Means::Bounced)) => Outcome::Bounced(failure, None),
        (_, Some(Means::Deactivated)) => {
            Outcome::Bounced(failure, Some(SuppressionReason::Blocked))
        }
        (_, Some(Means::Blocked)) => Outcome::Never(failure, Some(SuppressionReason::Blocked)),
        (_, Some(Means::Content)) | (413, None) => Outcome::Content(failure),
        (429, None) => {
            let pause = retry_after.map_or(answers::PAUSE, Duration::from_secs);
            Outcome::SlowDown(pause.min(answers::LONGEST_PAUSE), failure)
        }
        (401 | 404, None) => Outcome::Account(failure),
        (500.., None) => Outcome::Temporary(failure),
        _ => Outcome::Never(failure, None),
    }
}

/// Asks who the bot is.
pub(crate) async fn check(
    credentials: &Credentials,
    (client, base): (&Client, &Url),
) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Told {
        result: Me,
    }
    #[derive(Deserialize)]
    struct Me {
        username: String,
    }
    let failed = |outcome: Outcome| {
        outcome.failure().cloned().unwrap_or_else(|| Failure::new("no_answer", "no answer"))
    };
    let answer = call(base, credentials, client, ("getMe", String::new()), &mut AtOnce)
        .await
        .map_err(failed)?;
    match answers::json::<Told>(&answer) {
        Some(told) if answer.status == 200 => Ok(format!("the bot @{}", told.result.username)),
        _ => Err(answers::failure(&answer)),
    }
}

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    message: Option<Text>,
    my_chat_member: Option<Membership>,
}

#[derive(Deserialize)]
struct Text {
    chat: Chat,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
}

#[derive(Deserialize)]
struct Membership {
    chat: Chat,
    new_chat_member: Member,
}

#[derive(Deserialize)]
struct Member {
    status: String,
}

fn update(credentials: &Credentials, incoming: &Incoming) -> Result<Update, Refused> {
    if credentials.webhook_secret.is_empty() {
        return Err(Refused::NotOffered);
    }
    let mut given = incoming.headers.get_all(SECRET_HEADER).iter();
    let given = match (given.next(), given.next()) {
        (None, _) => return Err(Refused::NoSignature),
        (Some(one), None) => one.to_str().unwrap_or_default(),
        _ => return Err(Refused::WrongSignature),
    };
    if !proof::is_one_of(&credentials.webhook_secret, given) {
        return Err(Refused::WrongSignature);
    }
    serde_json::from_slice(incoming.body).map_err(|error| Refused::Malformed(error.to_string()))
}

/// Reads an update: `/stop`, a stop word, or a bot that was blocked or removed. Its number is told, too: Telegram repeats updates
/// whose answer it did not get.
pub(crate) fn receipts(
    settings: &Settings,
    credentials: &Credentials,
    incoming: &Incoming,
) -> Result<Received, Refused> {
    let update = update(credentials, incoming)?;
    let number = Some(update.update_id);
    let mut notices = Vec::new();
    if let Some(message) = update.message {
        // `/stop@name_of_the_bot payload` is the command `/stop`.
        let text = match message.text.strip_prefix('/') {
            Some(command) => command.split(['@', ' ', '\n']).next().unwrap_or_default(),
            None => &message.text,
        };
        let is_command = message.text.starts_with('/');
        let address = || message.chat.id.to_string();
        if is_command && text.eq_ignore_ascii_case("stop") {
            notices.push(Notice::Stop { address: address(), reason: SuppressionReason::Stop });
        } else {
            notices.extend(settings.stop_words.notice(text, address));
        }
    }
    if let Some(membership) = update.my_chat_member {
        let address = membership.chat.id.to_string();
        match membership.new_chat_member.status.as_str() {
            "kicked" | "left" => {
                notices.push(Notice::Stop { address, reason: SuppressionReason::Blocked });
            }
            "member" | "administrator" => notices.push(Notice::Start { address }),
            _ => {}
        }
    }
    Ok(Received { notices, update: number })
}

#[cfg(test)]
mod tests;
