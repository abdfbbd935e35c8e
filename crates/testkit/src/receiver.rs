//! A receiver of webhooks: records every request, and answers as it is told, also badly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::eventually;

/// How a receiver answers.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// With a status and a body.
    Answers(u16, String),
    /// With a status and a header.
    AnswersWith(u16, &'static str, String),
    /// Not at all: it holds the connection.
    Hangs,
    /// With an endless body.
    Floods,
    /// With a byte of its head every tenth of a second.
    Trickles,
    /// By closing the connection.
    Closes,
}

/// Every connection carries one request. A client that is not told may send another one, and never learn what became of it.
const LAST: &str = "Connection: close\r\n";

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// The path.
    pub path: String,
    /// The headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

impl Received {
    /// The header `webhook-id`.
    pub fn id(&self) -> &str {
        self.headers.get("webhook-id").map_or("", String::as_str)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The kind of the message.
    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether one of its signatures is made with this secret (`whsec_…`).
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let secret = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap_or_default();
        let header = |name: &str| self.headers.get(name).map_or("", String::as_str);
        let signed = format!("{}.{}.{}", self.id(), header("webhook-timestamp"), self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let right = format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())));
        header("webhook-signature").split(' ').any(|signature| signature == right)
    }
}

/// A receiver on a free port of this machine.
#[derive(Debug)]
pub struct Receiver {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    behaviour: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        let port = listener.local_addr().map_or(0, |address| address.port());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let behaviour = Arc::new(Mutex::new(Behaviour::Answers(200, "thanks".to_owned())));
        let (log, rule) = (received.clone(), behaviour.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, log.clone(), rule.clone()));
            }
        });
        Self { port, received, behaviour, task }
    }

    /// Its URL by address, with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers so from now on.
    pub fn behaves(&self, behaviour: Behaviour) {
        *lock(&self.behaviour) = behaviour;
    }

    /// All requests so far.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    /// Waits until so many requests have come, and returns them.
    pub async fn has(&self, count: usize) -> Vec<Received> {
        self.until(|received| received.len() >= count).await
    }

    /// Waits until what has come is as it should be, and returns it.
    pub async fn until(&self, is_it: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        eventually(Duration::from_secs(60), || async {
            let received = self.received();
            match is_it(&received) {
                true => Ok(received),
                false => Err(format!("{} requests: {received:?}", received.len())),
            }
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    mut stream: TcpStream,
    log: Arc<Mutex<Vec<Received>>>,
    behaviour: Arc<Mutex<Behaviour>>,
) {
    let Some(request) = read(&mut stream).await else { return };
    lock(&log).push(request);
    let behaviour = lock(&behaviour).clone();
    // A client that goes away in the middle is what some tests want.
    let _ = answer(&mut stream, behaviour).await;
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(Some(0), |it| it.parse().ok())?;
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8_lossy(&bytes[head + 4..head + 4 + length]).into_owned();
    Some(Received { path, headers, body })
}

async fn answer(stream: &mut TcpStream, behaviour: Behaviour) -> std::io::Result<()> {
    match behaviour {
        Behaviour::Answers(status, body) => {
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status} X\r\n{LAST}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).await
        }
        Behaviour::AnswersWith(status, name, value) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\n{LAST}{name}: {value}\r\nContent-Length: 0\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).await
        }
        Behaviour::Hangs => std::future::pending().await,
        Behaviour::Floods => {
            stream.write_all(b"HTTP/1.1 500 X\r\nContent-Length: 99999999999\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 4_096]).await?;
            }
        }
        Behaviour::Trickles => loop {
            stream.write_all(b"H").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        },
        Behaviour::Closes => stream.shutdown().await,
    }
}
