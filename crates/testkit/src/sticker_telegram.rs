//! Telegram's Bot API for bots that make sticker sets: users who write, long polling, messages that change, sets with
//! Telegram's limits.
//!
//! Every twenty-fifth call is refused with 429, as Telegram refuses bots that are too fast.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::provider::{Asked, Reply, answer, read};

/// The name of the bot.
pub const BOT_NAME: &str = "test_sticker_bot";
/// One call of so many is refused for the bot's speed.
const TOO_FAST: usize = 25;
/// Longest time that a call for updates is held, so that tests end quickly.
const LONGEST_POLL: Duration = Duration::from_secs(2);
/// Most bytes of an animated sticker.
const MOST_TGS: usize = 64 << 10;
/// Most stickers of a set when it is made.
const MOST_STICKERS: usize = 50;

/// Telegram on a free port of this machine.
pub struct StickerTelegram {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// A set that a bot has made.
#[derive(Debug, Clone)]
pub struct MadeSet {
    /// Whose it is.
    pub user: i64,
    /// Its name, which is a part of its address.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its TGS files.
    pub files: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    news: Notify,
    /// How long a set takes to be made.
    latency: Duration,
}

#[derive(Default)]
struct State {
    updates: Vec<Value>,
    /// Users who have spoken to the bot.
    known: BTreeSet<i64>,
    sets: Vec<MadeSet>,
    /// Chat, and all texts of a message; the id is the index.
    messages: Vec<(i64, Vec<String>)>,
    stickers: Vec<(i64, String)>,
    inline: BTreeMap<String, Value>,
    calls: usize,
    wrong: Vec<String>,
}

impl StickerTelegram {
    /// Starts it; making a set takes this long.
    pub async fn start(latency: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        let port = listener.local_addr().map_or(0, |address| address.port());
        let shared = Arc::new(Shared { latency, ..Shared::default() });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone()));
            }
        });
        Self { port, shared, task }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A user writes to the bot.
    pub fn writes(&self, user: i64, text: &str) {
        let from = json!({ "id": user, "is_bot": false, "first_name": "U" });
        let chat = json!({ "id": user, "type": "private" });
        let message =
            json!({ "message_id": 1, "date": 1, "from": from, "chat": chat, "text": text });
        self.state().known.insert(user);
        self.happens("message", message);
    }

    /// A user types behind the bot's name in a chat.
    pub fn types(&self, user: i64, query_id: &str, text: &str) {
        let from = json!({ "id": user, "is_bot": false, "first_name": "U" });
        let query = json!({ "id": query_id, "from": from, "query": text, "offset": "" });
        self.happens("inline_query", query);
    }

    fn happens(&self, kind: &str, what: Value) {
        let mut state = self.state();
        let number = state.updates.len() + 1;
        state.updates.push(json!({ "update_id": number, kind: what }));
        drop(state);
        self.shared.news.notify_waiters();
    }

    /// The sets of a user.
    pub fn sets_of(&self, user: i64) -> Vec<MadeSet> {
        self.state().sets.iter().filter(|set| set.user == user).cloned().collect()
    }

    /// All sets, in the order in which they were made.
    pub fn sets(&self) -> Vec<MadeSet> {
        self.state().sets.clone()
    }

    /// The messages that a user got: all texts of each, from the first to the present one.
    pub fn messages_of(&self, user: i64) -> Vec<Vec<String>> {
        let state = self.state();
        let own = state.messages.iter().filter(|(chat, _)| *chat == user);
        own.map(|(_, texts)| texts.clone()).collect()
    }

    /// How many stickers a user got.
    pub fn stickers_of(&self, user: i64) -> usize {
        self.state().stickers.iter().filter(|(chat, _)| *chat == user).count()
    }

    /// The answer to an inline query.
    pub fn answer_to(&self, query_id: &str) -> Option<Value> {
        self.state().inline.get(query_id).cloned()
    }

    /// What the bot has done that Telegram does not allow.
    pub fn wrong(&self) -> Vec<String> {
        self.state().wrong.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for StickerTelegram {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates from a number on, as soon as there are some.
    async fn updates(&self, asked: &Value) -> Value {
        let from = asked["offset"].as_u64().unwrap_or_default();
        let wait = Duration::from_secs(asked["timeout"].as_u64().unwrap_or_default());
        let until = Instant::now() + wait.min(LONGEST_POLL);
        loop {
            let news = self.news.notified();
            let found: Vec<Value> = {
                let state = self.state();
                let new = |update: &&Value| update["update_id"].as_u64() >= Some(from);
                state.updates.iter().filter(new).take(100).cloned().collect()
            };
            if !found.is_empty() || timeout_at(until, news).await.is_err() {
                return json!(found);
            }
        }
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut bytes = Vec::new();
    while let Some(asked) = read(&mut stream, &mut bytes).await {
        let method = asked.path.rsplit('/').next().unwrap_or_default().to_owned();
        let told = match method.as_str() {
            "getUpdates" => Ok(shared.updates(&asked.json()).await),
            "createNewStickerSet" => {
                tokio::time::sleep(shared.latency).await;
                shared.state().call(&method, &asked)
            }
            _ => shared.state().call(&method, &asked),
        };
        let reply = match told {
            Ok(result) => Reply::Json(200, json!({ "ok": true, "result": result })),
            Err((429, text)) => {
                let parameters = json!({ "retry_after": 1 });
                Reply::Json(
                    429,
                    json!({ "ok": false, "error_code": 429, "description": text, "parameters": parameters }),
                )
            }
            Err((code, text)) => {
                Reply::Json(code, json!({ "ok": false, "error_code": code, "description": text }))
            }
        };
        if !answer(&mut stream, reply, false).await.unwrap_or(false) {
            return;
        }
    }
}

type Told = Result<Value, (u16, String)>;

fn refused(text: &str) -> Told {
    Err((400, format!("Bad Request: {text}")))
}

impl State {
    fn call(&mut self, method: &str, asked: &Asked) -> Told {
        self.calls += 1;
        if self.calls.is_multiple_of(TOO_FAST) {
            return Err((429, "Too Many Requests: retry after 1".to_owned()));
        }
        let told = match method {
            "getMe" => {
                Ok(json!({ "id": 1, "is_bot": true, "first_name": "B", "username": BOT_NAME }))
            }
            "sendMessage" => self.send_message(&asked.json()),
            "editMessageText" => self.edit_message(&asked.json()),
            "sendSticker" => self.send_sticker(&asked.json()),
            "getStickerSet" => self.set(&asked.json()),
            "createNewStickerSet" => self.make_set(&Parts::of(asked)),
            "answerInlineQuery" => self.answer_query(&asked.json()),
            _ => Err((404, "Not Found".to_owned())),
        };
        if let Err((_, text)) = &told
            && !text.contains("STICKERSET_INVALID")
            && !text.contains("PEER_ID_INVALID")
        {
            self.wrong.push(format!("{method}: {text}"));
        }
        told
    }

    fn send_message(&mut self, asked: &Value) -> Told {
        let (chat, text) = (asked["chat_id"].as_i64().unwrap_or_default(), asked["text"].as_str());
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return refused("message text is empty");
        };
        if !self.known.contains(&chat) {
            return refused("chat not found");
        }
        self.messages.push((chat, vec![text.to_owned()]));
        Ok(json!({ "message_id": self.messages.len(), "chat": { "id": chat, "type": "private" } }))
    }

    fn edit_message(&mut self, asked: &Value) -> Told {
        let chat = asked["chat_id"].as_i64().unwrap_or_default();
        let text = asked["text"].as_str().unwrap_or_default();
        let index = asked["message_id"].as_u64().unwrap_or_default().wrapping_sub(1);
        let message = usize::try_from(index).ok().and_then(|index| self.messages.get_mut(index));
        match message.filter(|(known, _)| *known == chat) {
            None => refused("message to edit not found"),
            Some((_, texts)) if texts.last().is_some_and(|last| last == text) => {
                refused("message is not modified")
            }
            Some((_, texts)) => {
                texts.push(text.to_owned());
                Ok(json!({ "message_id": index + 1, "chat": { "id": chat, "type": "private" } }))
            }
        }
    }

    fn send_sticker(&mut self, asked: &Value) -> Told {
        let chat = asked["chat_id"].as_i64().unwrap_or_default();
        let file = asked["sticker"].as_str().unwrap_or_default().to_owned();
        if !self.has_file(&file) {
            return refused("wrong file identifier/HTTP URL specified");
        }
        self.stickers.push((chat, file));
        Ok(json!({ "message_id": 0, "chat": { "id": chat, "type": "private" } }))
    }

    fn has_file(&self, file_id: &str) -> bool {
        let found = file_id.rsplit_once('/').and_then(|(name, index)| {
            let set = self.sets.iter().find(|set| set.name == name)?;
            set.files.get(index.parse::<usize>().ok()?)
        });
        found.is_some()
    }

    fn set(&self, asked: &Value) -> Told {
        let name = asked["name"].as_str().unwrap_or_default();
        let Some(set) = self.sets.iter().find(|set| set.name == name) else {
            return refused("STICKERSET_INVALID");
        };
        let stickers: Vec<Value> = (0..set.files.len())
            .map(|index| json!({ "file_id": format!("{name}/{index}"), "is_animated": true }))
            .collect();
        Ok(json!({ "name": name, "title": set.title, "stickers": stickers }))
    }

    fn make_set(&mut self, parts: &Parts) -> Told {
        let user = parts.text("user_id").parse().unwrap_or_default();
        let (name, title) = (parts.text("name"), parts.text("title"));
        if !self.known.contains(&user) {
            return refused("PEER_ID_INVALID");
        }
        if !is_set_name(&name) {
            return refused("invalid sticker set name is specified");
        }
        if title.is_empty() || title.chars().count() > 64 {
            return refused("invalid sticker set title is specified");
        }
        if self.sets.iter().any(|set| set.name == name) {
            return refused("sticker set name is already occupied");
        }
        let stickers: Value = serde_json::from_str(&parts.text("stickers")).unwrap_or_default();
        let stickers = stickers.as_array().cloned().unwrap_or_default();
        if stickers.is_empty() || stickers.len() > MOST_STICKERS {
            return refused("STICKERS_EMPTY");
        }
        let mut files = Vec::new();
        for sticker in &stickers {
            let emoji = sticker["emoji_list"].as_array().map_or(0, Vec::len);
            let file = sticker["sticker"].as_str().and_then(|it| it.strip_prefix("attach://"));
            let file = file.and_then(|name| parts.bytes(name)).unwrap_or_default();
            let is_tgs = file.starts_with(b"\x1f\x8b") && file.len() <= MOST_TGS;
            if sticker["format"] != "animated" || !(1..=20).contains(&emoji) || !is_tgs {
                return refused("STICKER_TGS_NOTGS");
            }
            files.push(file.to_vec());
        }
        self.sets.push(MadeSet { user, name, title, files });
        Ok(json!(true))
    }

    fn answer_query(&mut self, asked: &Value) -> Told {
        let query = asked["inline_query_id"].as_str().unwrap_or_default().to_owned();
        let results = asked["results"].as_array().cloned().unwrap_or_default();
        let all_known = results.iter().all(|result| {
            result["type"] == "sticker"
                && self.has_file(result["sticker_file_id"].as_str().unwrap_or_default())
        });
        if !all_known || results.len() > 50 {
            return refused("DOCUMENT_INVALID");
        }
        self.inline.insert(query, asked.clone());
        Ok(json!(true))
    }
}

/// Letters, digits and single underscores, a letter first, the bot's name last.
fn is_set_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.contains("__")
        && name.ends_with(&format!("_by_{BOT_NAME}"))
}

/// The parts of a form.
struct Parts(Vec<(String, Vec<u8>)>);

impl Parts {
    fn of(asked: &Asked) -> Self {
        let boundary = asked.header("content-type").split("boundary=").nth(1).unwrap_or_default();
        let boundary = format!("--{boundary}");
        let mut parts = Vec::new();
        for part in split(&asked.bytes, boundary.as_bytes()).into_iter().skip(1) {
            let Some(end) = find(part, b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&part[..end]);
            let name = head.split("; name=\"").nth(1).and_then(|rest| rest.split('"').next());
            let content = &part[end + 4..];
            let content = content.strip_suffix(b"\r\n").unwrap_or(content);
            parts.push((name.unwrap_or_default().to_owned(), content.to_vec()));
        }
        Self(parts)
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, content)| content.as_slice())
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.bytes(name).unwrap_or_default()).into_owned()
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn split<'a>(mut bytes: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(bytes, separator) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + separator.len()..];
    }
    parts.push(bytes);
    parts
}
