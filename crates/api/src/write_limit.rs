//! A connection whose writes have a time limit: a client that never reads an answer must not keep its connection for ever.
//!
//! A write that waits for the client for [`PATIENCE`] fails, and the connection ends. The system does the same with
//! bytes that it has taken and the client's system does not acknowledge (`TCP_USER_TIMEOUT`). Waiting for a request
//! is not limited here: a live stream may be silent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A client that takes nothing for this long is cut off.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A stream whose writes have a time limit.
pub(crate) struct WriteLimited<S> {
    stream: S,
    patience: Duration,
    /// Since when a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteLimited<S> {
    /// Limits the time that a write may wait.
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    /// The result of a write, or an error if writes wait for too long.
    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        let told = format!("the client has taken nothing for {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, told)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteLimited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A stream of TCP has nothing to flush, and that says nothing about its client.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, ended)
    }
}

/// Lets the system give up bytes that a client does not acknowledge.
pub(crate) fn limit_unacknowledged(stream: &TcpStream) {
    // Systems without the option have their own limits, which are longer.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(PATIENCE));
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    let _ = stream;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails_and_one_that_is_taken_slowly_does_not() {
        let (mut client, server) = tokio::io::duplex(10);
        let mut server = WriteLimited::new(server, PATIENCE);
        let reading = tokio::spawn(async move {
            let mut taken = [0; 10];
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
                client.read_exact(&mut taken).await.unwrap();
            }
            client
        });
        server.write_all(&[7; 50]).await.unwrap();
        let _client = reading.await.unwrap();
        let begun = Instant::now();
        let error = server.write_all(&[7; 50]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent() {
        let (mut client, server) = tokio::io::duplex(10);
        let mut server = WriteLimited::new(server, PATIENCE);
        server.write_all(b"a").await.unwrap();
        tokio::time::sleep(PATIENCE * 10).await;
        server.write_all(b"b").await.unwrap();
        let mut taken = [0; 2];
        client.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"ab");
    }
}
