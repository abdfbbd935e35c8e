//! The hash of a request's body, made while somebody reads it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::request::Parts;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::body::{Unread, too_long, unread};
use crate::problem::{Code, Problem};

/// The rest of a body has to arrive within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest pause in the rest of a body.
const PAUSE: Duration = Duration::from_secs(10);

/// The hash of a body that passes. Clones of the body's place share it.
pub(super) struct BodyHash {
    hasher: Arc<Mutex<Sha256>>,
    unread: Unread,
}

impl BodyHash {
    /// Hashes the body of a request from now on.
    pub(super) fn of(parts: &Parts) -> Result<Self, Problem> {
        let unread = unread(parts)?.clone();
        let hasher: Arc<Mutex<Sha256>> = Arc::default();
        let seen = hasher.clone();
        unread.replace(|body| {
            Body::new(body.map_frame(move |frame| {
                if let Some(data) = frame.data_ref() {
                    seen.lock().update(data);
                }
                frame
            }))
        });
        Ok(Self { hasher, unread })
    }

    /// Reads the rest of the body, at most so many bytes; then the hash of all of it.
    pub(super) async fn finished(&self, most: usize) -> Result<String, Problem> {
        let mut taken = self.unread.take();
        let (deadline, mut size) = (Instant::now() + PATIENCE, 0);
        loop {
            let pause = deadline.min(Instant::now() + PAUSE);
            match tokio::time::timeout_at(pause, taken.body.frame()).await {
                Ok(None) => return Ok(self.so_far()),
                Ok(Some(Ok(frame))) => {
                    size += frame.data_ref().map_or(0, Bytes::len);
                    if size > most {
                        return Err(too_long(most));
                    }
                }
                Ok(Some(Err(error))) => {
                    let detail = format!("the body cannot be read: {error}");
                    return Err(Problem::new(Code::BadRequest, detail));
                }
                Err(_) => {
                    let detail = format!(
                        "the body did not arrive within {PATIENCE:?}, or paused for more than {PAUSE:?}"
                    );
                    return Err(Problem::new(Code::BodyTimeout, detail));
                }
            }
        }
    }

    /// The hash of what has been read.
    pub(super) fn so_far(&self) -> String {
        hex(self.hasher.lock().clone())
    }
}

/// A hash as text.
pub(super) fn hex(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
