//! The socket of a mail connection: plain, or secured from the first byte, or secured after `STARTTLS`.
//!
//! `STARTTLS` is spoken here, byte by byte, so that nothing that came before TLS can be taken for an answer that came after it.
//! What a server says is made ASCII here, and has a limit.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use lettre::transport::smtp::client::AsyncTokioStream;
use stampede_outbound::Dialer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;

use super::session::{Step, Trouble, What};
use super::{Security, Server};

/// Most bytes of one reply before TLS.
const MOST_REPLY: usize = 4 << 10;
/// Most bytes that a server says without being asked again. The library reads all of them anew after each line.
const MOST_SAID: usize = 8 << 10;

/// A stream that a mail connection is spoken on.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    /// What is read first: a greeting, for the connection's user expects one, and it came before TLS.
    greeting: &'static [u8],
    /// Bytes that were read since something was written.
    said: usize,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Wire {
    /// Connects, and secures the connection as the server's URL says.
    pub(super) async fn open(
        server: &Server,
        hello: &str,
        dialer: &Dialer,
        limits: &super::Limits,
    ) -> Result<Self, Trouble> {
        let Server { host, port, security } = server;
        let not_connected =
            |error| Trouble { step: Step::Connect, what: What::NotConnected(error) };
        let stream = dialer.connect(host, *port, limits.connect).await.map_err(not_connected)?;
        let until = Instant::now() + limits.connect;
        Ok(match security {
            Security::None => Self::of(Stream::Plain(stream), b""),
            Security::Tls => {
                let stream = dialer.secure(stream, host, until).await.map_err(not_connected)?;
                Self::of(Stream::Secure(Box::new(stream)), b"")
            }
            Security::StartTls => {
                let stream = start_tls(stream, hello, limits.command).await?;
                let until = Instant::now() + limits.connect;
                let stream = dialer.secure(stream, host, until).await.map_err(not_connected)?;
                Self::of(Stream::Secure(Box::new(stream)), b"220 secured\r\n")
            }
        })
    }

    fn of(stream: Stream, greeting: &'static [u8]) -> Self {
        Self { stream, greeting, said: 0 }
    }

    /// Makes what a server said fit for the library, which takes texts in UTF-8 only, and keeps a line until it ends. Bytes that
    /// are not ASCII become question marks: codes are ASCII, whatever a server writes its texts in.
    fn tame(&mut self, said: &mut [u8]) -> std::io::Result<()> {
        self.said += said.len();
        if self.said > MOST_SAID {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "the reply is too long"));
        }
        for byte in said.iter_mut().filter(|byte| !byte.is_ascii()) {
            *byte = b'?';
        }
        Ok(())
    }
}

/// Speaks until the server is ready for TLS.
async fn start_tls(
    mut stream: TcpStream,
    hello: &str,
    limit: Duration,
) -> Result<TcpStream, Trouble> {
    reply(&mut stream, limit).await?;
    let extensions = command(&mut stream, &format!("EHLO {hello}\r\n"), limit).await?;
    let offers_tls = extensions.lines().any(|line| line.trim().eq_ignore_ascii_case("STARTTLS"));
    if !offers_tls {
        let reason = "the server offers no STARTTLS; only in a network that you trust, add ?tls=none to the URL";
        return Err(Trouble { step: Step::Greeting, what: What::Impossible(reason.to_owned()) });
    }
    command(&mut stream, "STARTTLS\r\n", limit).await?;
    Ok(stream)
}

async fn command(stream: &mut TcpStream, line: &str, limit: Duration) -> Result<String, Trouble> {
    match timeout(limit, stream.write_all(line.as_bytes())).await {
        Ok(Ok(())) => reply(stream, limit).await,
        Ok(Err(error)) => Err(broken(error.kind().to_string())),
        Err(_) => Err(broken(format!("no answer within {limit:?}"))),
    }
}

fn broken(reason: String) -> Trouble {
    Trouble { step: Step::Greeting, what: What::Broken(reason) }
}

/// Reads one reply and nothing behind it; returns its lines without their codes.
async fn reply(stream: &mut TcpStream, limit: Duration) -> Result<String, Trouble> {
    match timeout(limit, read_reply(stream)).await {
        Ok(read) => {
            let (code, text) = read.map_err(broken)?;
            match code {
                200..400 => Ok(text),
                _ => Err(Trouble { step: Step::Greeting, what: What::Reply { code, text } }),
            }
        }
        Err(_) => Err(broken(format!("no answer within {limit:?}"))),
    }
}

async fn read_reply(stream: &mut TcpStream) -> Result<(u16, String), String> {
    let (mut text, mut read) = (String::new(), 0);
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.push(stream.read_u8().await.map_err(|error| error.kind().to_string())?);
            read += 1;
            if read > MOST_REPLY {
                return Err("the reply is too long".to_owned());
            }
        }
        let line = String::from_utf8_lossy(&line);
        let code = line.get(..3).and_then(|code| code.parse::<u16>().ok());
        let (Some(code), Some(rest)) = (code, line.get(3..)) else {
            return Err("the server speaks no SMTP".to_owned());
        };
        text.push_str(rest.get(1..).unwrap_or_default().trim_end());
        if !rest.starts_with('-') {
            return Ok((code, text));
        }
        text.push('\n');
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.greeting.is_empty() {
            let (now, later) = self.greeting.split_at(self.greeting.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.greeting = later;
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(self.tame(&mut buffer.filled_mut()[before..])),
            read => read,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.said = 0;
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Secure(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl AsyncTokioStream for Wire {
    fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        match &self.stream {
            Stream::Plain(stream) => stream.peer_addr(),
            Stream::Secure(stream) => stream.get_ref().0.peer_addr(),
        }
    }
}
