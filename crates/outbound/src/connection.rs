//! One connection, and whether a byte of the request left on it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Error, Stage};

/// Most bytes of an answer's head, and most headers.
const MOST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 100;

/// A connection that speaks HTTP. It is closed when it is dropped.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    has_written: Arc<AtomicBool>,
    _driven: AbortOnDropHandle<()>,
}

/// A request that was not answered.
pub(crate) enum Failed {
    /// Not a byte of it left; here it is again.
    Unwritten(Box<Request<Full<Bytes>>>),
    /// Not a byte of it left, and it is lost.
    Lost(Error),
    /// A part of it left.
    Unanswered(Error),
}

impl Connection {
    /// Begins to speak HTTP on a stream.
    pub(crate) async fn open<S>(stream: S) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let has_written = Arc::new(AtomicBool::new(false));
        let stream = Watched { stream, has_written: has_written.clone() };
        let mut http = http1::Builder::new();
        http.max_buf_size(MOST_HEAD).max_headers(MOST_HEADERS);
        let told = |error: hyper::Error| Error::not_sent(Stage::Write, error.to_string());
        let (sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(told)?;
        let driven = tokio::spawn(async move {
            // The request is told what went wrong.
            let _ = connection.await;
        });
        Ok(Self { sender, has_written, _driven: AbortOnDropHandle::new(driven) })
    }

    /// Whether the other side has not closed it, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Whether it can take another request: the last answer was read to its end, and it is not closed.
    pub(crate) async fn is_free(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Whether a byte of the last request left.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Acquire)
    }

    /// Notes that no byte of the next request has left.
    pub(crate) fn rearm(&self) {
        self.has_written.store(false, Ordering::Release);
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failed> {
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response),
            Err(mut failed) => {
                let request = failed.take_message();
                let reason = format!("no answer: {}", failed.into_error());
                Err(match (self.has_written(), request) {
                    (false, Some(request)) => Failed::Unwritten(Box::new(request)),
                    (false, None) => Failed::Lost(Error::not_sent(Stage::Write, reason)),
                    (true, _) => Failed::Unanswered(Error::unanswered(reason)),
                })
            }
        }
    }
}

/// A stream that notes whether a byte was given to it.
struct Watched<S> {
    stream: S,
    has_written: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        // TLS keeps bytes that it could not write yet: they count as written as soon as it has taken them.
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.has_written.store(true, Ordering::Release);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.has_written.store(true, Ordering::Release);
        }
        written
    }
}
