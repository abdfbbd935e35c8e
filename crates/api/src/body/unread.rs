//! Bodies that nobody has read, because their request was refused. They are read and thrown away before the answer:
//! a client that still sends would otherwise meet a closed connection and never see the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::EXPECT;
use http_body_util::BodyExt;
use parking_lot::Mutex;

/// Longest time for the rest of a body that is thrown away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes that are thrown away.
const MOST: usize = 64 << 20;

/// The body of a request until somebody reads it. Clones share it.
#[derive(Clone)]
pub(crate) struct Unread(Arc<Mutex<Option<Body>>>);

impl Unread {
    /// Puts another body in the place of the one that is there.
    pub(crate) fn replace(&self, change: impl FnOnce(Body) -> Body) {
        let mut body = self.0.lock();
        *body = body.take().map(change);
    }

    /// Takes the body to read it.
    pub(crate) fn take(&self) -> Taken {
        Taken { body: self.0.lock().take().unwrap_or_default(), unread: self.clone() }
    }
}

/// A body that is being read. The rest of it is unread again when the value is dropped.
pub(crate) struct Taken {
    pub(crate) body: Body,
    unread: Unread,
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.unread.0.lock() = Some(std::mem::take(&mut self.body));
    }
}

/// Runs a request; then throws the rest of its body away.
pub(crate) async fn discard_unread(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    // Such a client waits for the server's word before it sends.
    let waits = parts.headers.contains_key(EXPECT);
    let unread = Unread(Arc::new(Mutex::new(Some(body))));
    parts.extensions.insert(unread.clone());
    let response = next.run(Request::from_parts(parts, Body::empty())).await;
    let rest = unread.0.lock().take();
    if let Some(rest) = rest.filter(|rest| !waits && !rest.is_end_stream()) {
        // A body that does not end in time costs its client the connection.
        let _ = tokio::time::timeout(PATIENCE, discard(rest)).await;
    }
    response
}

async fn discard(mut body: Body) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, |data| data.len());
        if bytes > MOST {
            return;
        }
    }
}
