//! Telegram's Bot API, as far as this bot needs it.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http::Http;

/// How long Telegram holds a call for updates while there are none.
const POLL: Duration = Duration::from_secs(50);
/// Longest wait for the answer of other calls.
const WITHIN: Duration = Duration::from_secs(60);
/// How often a call is repeated that Telegram refuses for the bot's speed.
const ATTEMPTS: usize = 5;
/// Longest wait that Telegram may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The emoji that Telegram offers the stickers for.
const EMOJI: &str = "💬";
/// Stands between the parts of a form; TGS files are compressed, and do not contain it.
const BOUNDARY: &str = "stampede-sticker-bot-0b7f3c1e9a5d4826";

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Telegram refuses it.
    #[error("Telegram refuses {method}: {code} {description}")]
    Refused {
        /// The method.
        method: &'static str,
        /// Telegram's code.
        code: u16,
        /// Telegram's reason.
        description: String,
    },
    /// There is no answer. The message does not show the path, which holds the token.
    #[error("Telegram did not answer {method}: {source:#}")]
    NoAnswer {
        /// The method.
        method: &'static str,
        /// What happened.
        source: anyhow::Error,
    },
}

impl Error {
    /// Whether the user has never spoken to the bot.
    pub(crate) fn is_about_a_stranger(&self) -> bool {
        let stranger =
            |text: &str| text.contains("PEER_ID_INVALID") || text.contains("user not found");
        matches!(self, Self::Refused { description, .. } if stranger(description))
    }

    fn says(&self, text: &str) -> bool {
        matches!(self, Self::Refused { description, .. } if description.contains(text))
    }
}

/// A user.
#[derive(Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) username: String,
}

/// A chat.
#[derive(Debug, Deserialize)]
pub(crate) struct Chat {
    pub(crate) id: i64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A message.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) from: Option<User>,
    pub(crate) chat: Chat,
    pub(crate) text: Option<String>,
}

/// A text behind the bot's name in any chat.
#[derive(Debug, Deserialize)]
pub(crate) struct InlineQuery {
    pub(crate) id: String,
    pub(crate) from: User,
    pub(crate) query: String,
}

/// Something that happened.
#[derive(Debug, Deserialize)]
pub(crate) struct Update {
    pub(crate) update_id: i64,
    pub(crate) message: Option<Message>,
    pub(crate) inline_query: Option<InlineQuery>,
}

/// A set of stickers.
#[derive(Debug, Deserialize)]
pub(crate) struct StickerSet {
    pub(crate) name: String,
    pub(crate) stickers: Vec<Sticker>,
}

/// A sticker that Telegram keeps.
#[derive(Debug, Deserialize)]
pub(crate) struct Sticker {
    pub(crate) file_id: String,
}

#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

#[derive(Deserialize)]
struct Reply {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error_code: u16,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

/// The Bot API for one bot.
pub(crate) struct Telegram {
    http: Http,
    token: String,
}

impl Telegram {
    pub(crate) fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        Ok(Self { http: Http::new(url, HeaderMap::new())?, token: token.to_owned() })
    }

    /// The bot itself.
    pub(crate) async fn me(&self) -> Result<User, Error> {
        self.call("getMe", &json!({})).await
    }

    /// Updates from this number on; waits for one.
    pub(crate) async fn updates(&self, from: i64) -> Result<Vec<Update>, Error> {
        self.get_updates(from, POLL).await
    }

    /// Confirms all updates before this number.
    pub(crate) async fn confirm(&self, before: i64) -> Result<(), Error> {
        self.get_updates(before, Duration::ZERO).await.map(drop)
    }

    async fn get_updates(&self, from: i64, wait: Duration) -> Result<Vec<Update>, Error> {
        let ask = json!({
            "offset": from, "timeout": wait.as_secs(), "allowed_updates": ["message", "inline_query"],
        });
        self.call("getUpdates", &ask).await
    }

    /// Sends a text, and answers with the message's id.
    pub(crate) async fn send_message(&self, chat: i64, text: &str) -> Result<i64, Error> {
        let sent: Sent =
            self.call("sendMessage", &json!({ "chat_id": chat, "text": text })).await?;
        Ok(sent.message_id)
    }

    /// Changes a text.
    pub(crate) async fn edit_message(
        &self,
        chat: i64,
        message: i64,
        text: &str,
    ) -> Result<(), Error> {
        let ask = json!({ "chat_id": chat, "message_id": message, "text": text });
        match self.call::<Value>("editMessageText", &ask).await {
            Err(error) if error.says("message is not modified") => Ok(()),
            other => other.map(drop),
        }
    }

    /// Sends a sticker that Telegram keeps.
    pub(crate) async fn send_sticker(&self, chat: i64, file_id: &str) -> Result<(), Error> {
        let ask = json!({ "chat_id": chat, "sticker": file_id });
        self.call::<Value>("sendSticker", &ask).await.map(drop)
    }

    /// A set by its name, if there is one.
    pub(crate) async fn sticker_set(&self, name: &str) -> Result<Option<StickerSet>, Error> {
        match self.call("getStickerSet", &json!({ "name": name })).await {
            Err(error) if error.says("STICKERSET_INVALID") => Ok(None),
            other => other.map(Some),
        }
    }

    /// Makes a set of animated stickers. A set that exists is left as it is.
    pub(crate) async fn create_set(
        &self,
        user: i64,
        name: &str,
        title: &str,
        files: Vec<Bytes>,
    ) -> Result<(), Error> {
        let stickers: Vec<Value> = (0..files.len())
            .map(|index| {
                let file = format!("attach://sticker{index}");
                json!({ "sticker": file, "format": "animated", "emoji_list": [EMOJI] })
            })
            .collect();
        let mut form = Form::default();
        form.field("user_id", &user.to_string());
        form.field("name", name);
        form.field("title", title);
        form.field("stickers", &Value::from(stickers).to_string());
        for (index, file) in files.iter().enumerate() {
            form.file(&format!("sticker{index}"), file);
        }
        let (kind, body) = form.end();
        match self.post::<Value>("createNewStickerSet", &kind, body).await {
            Err(error) if error.says("name is already occupied") => Ok(()),
            other => other.map(drop),
        }
    }

    /// Answers an inline query with the stickers of a set.
    pub(crate) async fn answer_with_stickers(
        &self,
        query: &str,
        set: &StickerSet,
    ) -> Result<(), Error> {
        let result = |(index, sticker): (usize, &Sticker)| json!({ "type": "sticker", "id": index.to_string(), "sticker_file_id": sticker.file_id });
        let results: Vec<Value> = set.stickers.iter().enumerate().map(result).collect();
        let ask = json!({
            "inline_query_id": query, "results": results, "is_personal": true, "cache_time": 3_600,
        });
        self.answer_query(&ask).await
    }

    /// Answers an inline query with a button that leads to the bot.
    pub(crate) async fn answer_with_button(&self, query: &str, text: &str) -> Result<(), Error> {
        let button = json!({ "text": text, "start_parameter": "stickers" });
        let ask = json!({
            "inline_query_id": query, "results": [], "is_personal": true, "cache_time": 0,
            "button": button,
        });
        self.answer_query(&ask).await
    }

    async fn answer_query(&self, ask: &Value) -> Result<(), Error> {
        match self.call::<Value>("answerInlineQuery", ask).await {
            // The user has typed on: nobody waits for this answer.
            Err(error) if error.says("query is too old") => Ok(()),
            other => other.map(drop),
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        ask: &Value,
    ) -> Result<T, Error> {
        self.post(method, "application/json", Bytes::from(ask.to_string())).await
    }

    /// Calls a method; waits and repeats the call when Telegram says that the bot is too fast.
    async fn post<T: DeserializeOwned>(
        &self,
        method: &'static str,
        kind: &str,
        body: Bytes,
    ) -> Result<T, Error> {
        let no_answer = |source: anyhow::Error| Error::NoAnswer { method, source };
        let path = format!("/bot{}/{method}", self.token);
        let mut attempt = 1;
        loop {
            let body = Some((kind, body.clone()));
            let answer = self.http.send(Method::POST, &path, body, WITHIN).await;
            let answer = answer.map_err(no_answer)?;
            let reply: Reply = serde_json::from_slice(&answer.body)
                .map_err(|_| no_answer(anyhow::anyhow!("{} without JSON", answer.status)))?;
            if reply.ok {
                return serde_json::from_value(reply.result)
                    .map_err(|error| no_answer(error.into()));
            }
            match reply.parameters.retry_after.map(Duration::from_secs) {
                Some(wait) if attempt < ATTEMPTS && wait <= LONGEST_WAIT => {
                    attempt += 1;
                    tokio::time::sleep(wait).await;
                }
                _ => {
                    let Reply { error_code: code, description, .. } = reply;
                    return Err(Error::Refused { method, code, description });
                }
            }
        }
    }
}

/// A form with files (`multipart/form-data`).
#[derive(Default)]
struct Form {
    bytes: Vec<u8>,
}

impl Form {
    fn part(&mut self, disposition: &str, content: &[u8]) {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn field(&mut self, name: &str, value: &str) {
        self.part(&format!("name=\"{name}\""), value.as_bytes());
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.part(&format!("name=\"{name}\"; filename=\"{name}.tgs\""), content);
    }

    /// The media type and the body.
    fn end(mut self) -> (String, Bytes) {
        self.bytes.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        (format!("multipart/form-data; boundary={BOUNDARY}"), self.bytes.into())
    }
}
