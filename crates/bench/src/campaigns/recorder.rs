//! An endpoint for messages: answers each with 200 and records it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

/// Most bytes of a body.
const MOST_BODY: usize = 1 << 20;

/// What has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// How often the message of each recipient came.
    pub(crate) times: HashMap<String, u32>,
    /// When each message came.
    pub(crate) at: Vec<Instant>,
}

/// A listening endpoint; dropping it ends it.
pub(crate) struct Recorder {
    arrived: Arc<Mutex<Arrived>>,
    port: u16,
    _listening: AbortOnDropHandle<()>,
}

impl Recorder {
    /// Listens on a free port; every answer takes this long.
    pub(crate) async fn start(latency: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let shared = arrived.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let arrived = shared.clone();
                // A connection that breaks off shows in the figures: its message is not recorded.
                tokio::spawn(async move { serve(stream, latency, &arrived).await });
            }
        });
        Ok(Self { arrived, port, _listening: AbortOnDropHandle::new(listening) })
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/messages", self.port)
    }

    /// What has arrived until now.
    pub(crate) async fn take(&self) -> Arrived {
        std::mem::take(&mut *self.arrived.lock().await)
    }
}

async fn serve(stream: TcpStream, latency: Duration, arrived: &Mutex<Arrived>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(recipient) = request(&mut stream).await? {
        {
            let mut arrived = arrived.lock().await;
            *arrived.times.entry(recipient).or_default() += 1;
            arrived.at.push(Instant::now());
        }
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await?;
    }
    Ok(())
}

/// Reads a request; returns its `webhook-id`, which is the recipient's. `None`: the connection has ended.
async fn request(stream: &mut BufReader<TcpStream>) -> Result<Option<String>> {
    let (mut length, mut recipient, mut line) = (0, None, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        match header.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().context("a length")?.min(MOST_BODY);
            }
            Some((name, value)) if name.eq_ignore_ascii_case("webhook-id") => {
                recipient = Some(value.trim().to_owned());
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(recipient.context("a message without webhook-id")?))
}
