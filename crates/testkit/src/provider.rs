//! Providers of messages that answer by address: Telegram, WhatsApp, Twilio, or anything that a test wants.
//!
//! | provider | address | answer |
//! |---|---|---|
//! | Telegram | chat `429000` … (see [`TELEGRAM`]) | the refusal of that row |
//! | | `-100` | `migrate_to_chat_id: -200` |
//! | WhatsApp | `+1999` and a code | an error with that code |
//! | Twilio | `+1999` and a code | an error with that code |
//! | all | ends in `0001`, `0002`, `0003`, `0004` | silence, HTML with 502, closes, a body that is cut |
//! | | any other | accepted |

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
    /// The body.
    pub bytes: Vec<u8>,
}

impl Asked {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// A header.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// How a provider answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// With a status and JSON.
    Json(u16, Value),
    /// With a status, a header and JSON.
    With(u16, &'static str, String, Value),
    /// With a status and a page.
    Html(u16),
    /// Not at all: it holds the connection.
    Hangs,
    /// By closing the connection.
    Closes,
    /// With a status and a body that is shorter than it says.
    Lies(u16, String),
    /// With a status and JSON, and in the same breath with another answer, for which nobody has asked.
    Twice(u16, Value, Value),
}

type Rule = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A provider on a free port of this machine.
pub struct Provider {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    asked: Mutex<Vec<Asked>>,
    answered: AtomicUsize,
    /// How long an answer takes.
    latency: Duration,
    rule: Box<Rule>,
}

/// Chats, and how Telegram refuses them.
pub const TELEGRAM: [(&str, u16, &str); 14] = [
    ("429000", 429, "Too Many Requests: retry after 7"),
    ("400000", 400, "Bad Request: chat not found"),
    ("400100", 400, "Bad Request: user not found"),
    ("400200", 400, "Bad Request: PEER_ID_INVALID"),
    ("403000", 403, "Forbidden: bot can't initiate conversation with a user"),
    ("403100", 403, "Forbidden: bot was blocked by the user"),
    ("403200", 403, "Forbidden: user is deactivated"),
    ("403300", 403, "Forbidden: bot was kicked from the supergroup chat"),
    ("400300", 400, "Bad Request: can't parse entities: Unsupported start tag"),
    ("400400", 400, "Bad Request: message is too long"),
    ("400500", 400, "Bad Request: message text is empty"),
    ("413000", 413, "Request Entity Too Large"),
    ("401000", 401, "Unauthorized"),
    ("500000", 500, "Internal Server Error"),
];

impl Provider {
    /// Starts a provider with a rule.
    pub async fn start(rule: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, rule).await
    }

    /// Starts a provider with a rule, which is asked when a request has come; the answer takes this long.
    pub async fn slow(
        latency: Duration,
        rule: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        let port = listener.local_addr().map_or(0, |address| address.port());
        let (asked, answered) = (Mutex::default(), AtomicUsize::new(0));
        let shared = Arc::new(Shared { asked, answered, latency, rule: Box::new(rule) });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone()));
            }
        });
        Self { port, shared, task }
    }

    /// Telegram's Bot API.
    pub async fn telegram() -> Self {
        Self::start(telegram).await
    }

    /// WhatsApp's Cloud API.
    pub async fn whatsapp() -> Self {
        Self::start(whatsapp).await
    }

    /// Twilio.
    pub async fn twilio() -> Self {
        Self::start(twilio).await
    }

    /// Where it is, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests are answered: the last byte of the answer is written, or the connection closed.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What every provider does to some addresses.
fn misbehaves(address: &str) -> Option<Reply> {
    Some(match address.get(address.len().saturating_sub(4)..)? {
        "0001" => Reply::Hangs,
        "0002" => Reply::Html(502),
        "0003" => Reply::Closes,
        "0004" => Reply::Lies(200, r#"{"ok":true,"messages":[{"id":"x"}],"sid":"x""#.to_owned()),
        _ => return None,
    })
}

fn telegram(asked: &Asked) -> Reply {
    let refused = |status: u16, description: &str, parameters: Value| {
        let mut told = json!({ "ok": false, "error_code": status, "description": description });
        if !parameters.is_null() {
            told["parameters"] = parameters;
        }
        Reply::Json(status, told)
    };
    if asked.path.contains("/bot404") {
        return refused(404, "Not Found", Value::Null);
    }
    if asked.path.ends_with("/getMe") {
        let me = json!({ "id": 1, "is_bot": true, "first_name": "B", "username": "test_bot" });
        return Reply::Json(200, json!({ "ok": true, "result": me }));
    }
    let chat = asked.json()["chat_id"].as_str().unwrap_or_default().to_owned();
    if let Some((_, status, description)) = TELEGRAM.iter().find(|(known, ..)| *known == chat) {
        let parameters = if *status == 429 { json!({ "retry_after": 7 }) } else { Value::Null };
        return refused(*status, description, parameters);
    }
    if chat == "-100" {
        let text = "Bad Request: group chat was upgraded to a supergroup chat";
        return refused(400, text, json!({ "migrate_to_chat_id": -200 }));
    }
    misbehaves(&chat).unwrap_or_else(|| {
        Reply::Json(200, json!({ "ok": true, "result": { "message_id": 77, "chat": { "id": 1 } } }))
    })
}

/// The code behind `1999`.
fn code(address: &str) -> Option<i64> {
    address.trim_start_matches('+').strip_prefix("1999")?.parse().ok()
}

fn whatsapp(asked: &Asked) -> Reply {
    if asked.method == "GET" {
        let number = json!({ "display_phone_number": "+49 1", "verified_name": "Ann", "id": "1" });
        return Reply::Json(200, number);
    }
    let body = asked.json();
    let to = body["to"].as_str().unwrap_or_default();
    match code(to) {
        Some(code) => {
            let status = if [1, 2].contains(&code) { 500 } else { 400 };
            let data = json!({ "messaging_product": "whatsapp", "details": "in detail" });
            let error = json!({ "message": "(#x) no", "type": "OAuthException", "code": code, "error_data": data, "fbtrace_id": "Az" });
            Reply::Json(status, json!({ "error": error }))
        }
        None => misbehaves(to).unwrap_or_else(|| {
            let contact = json!({ "input": to, "wa_id": to });
            let accepted = json!({ "id": format!("wamid.{to}") });
            let body = json!({ "messaging_product": "whatsapp", "contacts": [contact], "messages": [accepted] });
            Reply::Json(200, body)
        }),
    }
}

fn twilio(asked: &Asked) -> Reply {
    if asked.method == "GET" {
        return Reply::Json(200, json!({ "friendly_name": "Ann", "status": "active" }));
    }
    let to = asked.body.split('&').find_map(|pair| pair.strip_prefix("To=%2B")).unwrap_or_default();
    match code(to) {
        Some(code) => {
            let status = match code {
                20003 => 401,
                20429 => 429,
                _ => 400,
            };
            Reply::Json(status, json!({ "code": code, "message": "no", "status": status }))
        }
        None => misbehaves(to).unwrap_or_else(|| {
            Reply::Json(201, json!({ "sid": format!("SM{to}"), "status": "queued" }))
        }),
    }
}

/// The value of `X-Hub-Signature-256` for a body.
pub fn hub_signature(app_secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, app_secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// A body of receipts as Meta sends it: (recipient's id, message's id, status, code of an error).
pub fn whatsapp_receipts(number: &str, told: &[(&str, &str, &str, Option<i64>)]) -> String {
    let status = |(recipient, message, status, code): &(&str, &str, &str, Option<i64>)| {
        let mut told = json!({
            "id": message, "status": status, "timestamp": "1700000000", "recipient_id": "491",
            "biz_opaque_callback_data": recipient,
        });
        if let Some(code) = code {
            told["errors"] = json!([{ "code": code, "title": "no", "message": "no" }]);
        }
        told
    };
    let statuses: Vec<Value> = told.iter().map(status).collect();
    let value = json!({
        "messaging_product": "whatsapp",
        "metadata": { "display_phone_number": "491", "phone_number_id": number },
        "contacts": [{ "wa_id": "491", "profile": { "name": "Ann" } }],
        "statuses": statuses,
    });
    let entry = json!([{ "id": "1", "changes": [{ "field": "messages", "value": value }] }]);
    json!({ "object": "whatsapp_business_account", "entry": entry }).to_string()
}

/// The value of `X-Twilio-Signature` for a URL and its parameters.
pub fn twilio_signature(auth_token: &str, url: &str, parameters: &[(&str, &str)]) -> String {
    let mut sorted = parameters.to_vec();
    sorted.sort_unstable();
    let signed: String =
        sorted.iter().fold(url.to_owned(), |signed, (name, value)| signed + name + value);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth_token.as_bytes());
    STANDARD.encode(hmac::sign(&key, signed.as_bytes()))
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut bytes = Vec::new();
    while let Some(asked) = read(&mut stream, &mut bytes).await {
        let reply = (shared.rule)(&asked);
        let head_only = asked.method == "HEAD";
        shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        if !shared.latency.is_zero() {
            tokio::time::sleep(shared.latency).await;
        }
        // A client that goes away in the middle is what some tests want.
        let stays_open = answer(&mut stream, reply, head_only).await.unwrap_or(false);
        shared.answered.fetch_add(1, Ordering::SeqCst);
        if !stays_open {
            return;
        }
    }
}

/// Reads one request; what comes behind it stays in `bytes`.
pub(crate) async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Asked> {
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
    while bytes.len() < head + 4 + length {
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
    let raw = bytes[head + 4..head + 4 + length].to_vec();
    bytes.drain(..head + 4 + length);
    let body = String::from_utf8_lossy(&raw).into_owned();
    Some(Asked { method, path, headers, body, bytes: raw })
}

/// Answers; `false`: the connection is to be closed.
pub(crate) async fn answer(
    stream: &mut TcpStream,
    reply: Reply,
    head_only: bool,
) -> std::io::Result<bool> {
    let (status, header, kind, body, more) = match reply {
        Reply::Json(status, body) => {
            (status, String::new(), "application/json", body.to_string(), 0)
        }
        Reply::With(status, name, value, body) => {
            (status, format!("{name}: {value}\r\n"), "application/json", body.to_string(), 0)
        }
        Reply::Html(status) => {
            (status, String::new(), "text/html", "<html>Bad Gateway</html>".to_owned(), 0)
        }
        Reply::Lies(status, body) => (status, String::new(), "application/json", body, 100),
        Reply::Twice(status, first, second) => {
            let one = |body: Value| {
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json");
                format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            };
            stream.write_all((one(first) + &one(second)).as_bytes()).await?;
            return Ok(true);
        }
        Reply::Hangs => return std::future::pending().await,
        Reply::Closes => return Ok(false),
    };
    let length = body.len() + more;
    let head = format!(
        "HTTP/1.1 {status} X\r\n{header}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    let body = if head_only { "" } else { &body };
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(more == 0)
}
