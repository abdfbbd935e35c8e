//! A Chromium that stays up and prints one page after the other, driven over its debugging port.
//!
//! The protocol is JSON over a WebSocket. This file implements the part of WebSocket (RFC 6455) that it
//! needs: one client, text messages, no extensions.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::Cost;
use super::outside::html;
use crate::processes::CpuTimes;

const PROGRAMS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest message that is read: a page as base64.
const LONGEST: u64 = 64 << 20;

pub(super) struct Chromium {
    child: Child,
    socket: BufReader<TcpStream>,
    session: String,
    sent: u64,
    _profile: tempfile::TempDir,
}

impl Chromium {
    pub(super) async fn start() -> Result<Self> {
        let mut last = None;
        for program in PROGRAMS {
            match tokio::time::timeout(PATIENCE, Self::launch(program)).await {
                Ok(Ok(mut chromium)) => {
                    chromium.print(0).await?;
                    return Ok(chromium);
                }
                Ok(Err(error)) => last = Some(last.unwrap_or(error)),
                Err(_) => bail!("{program} does not answer"),
            }
        }
        Err(last.context("no name to try")?).context("apt-get install chromium")
    }

    async fn launch(program: &str) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut child = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"])
            .args(["--disable-dev-shm-usage", "--no-first-run", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take().context("no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = loop {
            let line = lines.next_line().await?.context("it ended at once")?;
            if let Some((_, address)) = line.split_once("DevTools listening on ws://") {
                break address.trim().to_owned();
            }
        };
        // The rest of its output is read too, or the pipe would fill and block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let socket = connect(&address).await?;
        let mut chromium =
            Self { child, socket, session: String::new(), sent: 0, _profile: profile };
        let target = chromium.call("Target.createTarget", json!({ "url": "about:blank" })).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = chromium.call("Target.attachToTarget", attach).await?;
        chromium.session = session["sessionId"].as_str().context("no session")?.to_owned();
        chromium.call("Page.enable", json!({})).await?;
        Ok(chromium)
    }

    pub(super) async fn measure(&mut self, count: u32) -> Result<Cost> {
        let pid = self.child.id().context("Chromium has ended")?;
        let before = CpuTimes::of_tree(pid);
        let mut bytes = 0.0;
        for index in 0..count {
            bytes += self.print(index).await?;
        }
        let used = CpuTimes::of_tree(pid).since(&before);
        let seconds: f64 = used.processes().map(|process| process.seconds).sum();
        Ok(Cost { seconds: seconds / f64::from(count), bytes: bytes / f64::from(count) })
    }

    /// Prints a ticket; gives the size of its PDF.
    async fn print(&mut self, index: u32) -> Result<f64> {
        let tree = self.call("Page.getFrameTree", json!({})).await?;
        let frame = tree["frameTree"]["frame"]["id"].clone();
        let page = json!({ "frameId": frame, "html": html(index) });
        self.call("Page.setDocumentContent", page).await?;
        let options = json!({ "printBackground": true, "preferCSSPageSize": true });
        let printed = self.call("Page.printToPDF", options).await?;
        let data = printed["data"].as_str().context("no PDF")?;
        Ok(data.trim_end_matches('=').len() as f64 * 0.75)
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let exchange = async {
            self.send(message.to_string().as_bytes()).await?;
            loop {
                let answer: Value = serde_json::from_slice(&self.receive().await?)?;
                if answer["id"] == self.sent {
                    return Ok::<Value, anyhow::Error>(answer);
                }
            }
        };
        let mut answer =
            tokio::time::timeout(PATIENCE, exchange).await.context(method.to_owned())??;
        if !answer["error"].is_null() {
            bail!("{method}: {}", answer["error"]);
        }
        Ok(answer["result"].take())
    }

    /// Sends one text message. Clients must mask messages; a mask of zeros is allowed.
    async fn send(&mut self, text: &[u8]) -> Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            length @ ..=125 => frame.push(0x80 | length as u8),
            length @ ..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text);
        Ok(self.socket.get_mut().write_all(&frame).await?)
    }

    /// Receives the next message, put together from its frames. Pings are ignored: the work takes a minute.
    async fn receive(&mut self) -> Result<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let (head, length) = (self.socket.read_u8().await?, self.socket.read_u8().await?);
            let length = match length & 0x7f {
                126 => u64::from(self.socket.read_u16().await?),
                127 => self.socket.read_u64().await?,
                length => u64::from(length),
            };
            if length + message.len() as u64 > LONGEST {
                bail!("a message of {length} bytes");
            }
            let mut part = vec![0; length as usize];
            self.socket.read_exact(&mut part).await?;
            match head & 0x0f {
                0 | 1 => message.extend(part),
                8 => bail!("Chromium closed the connection"),
                _ => continue,
            }
            if head & 0x80 != 0 {
                return Ok(message);
            }
        }
    }
}

/// Opens the WebSocket at `host:port/path`.
async fn connect(address: &str) -> Result<BufReader<TcpStream>> {
    let (host, path) = address.split_once('/').context("an address without path")?;
    let mut socket = BufReader::new(TcpStream::connect(host).await?);
    // The key lets a client check that the server knows the protocol; our own child process does.
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: c3RhbXBlZGUtYmVuY2gtMQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    socket.get_mut().write_all(request.as_bytes()).await?;
    let mut line = String::new();
    socket.read_line(&mut line).await?;
    if !line.contains("101") {
        bail!("no WebSocket: {line}");
    }
    while line.trim() != "" {
        line.clear();
        socket.read_line(&mut line).await?;
    }
    Ok(socket)
}
