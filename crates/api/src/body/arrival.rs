//! Receiving the bytes of a body, within limits of size, memory and time.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::budget::Claim;
use crate::problem::{Code, Problem};

/// A body has to arrive within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest pause in the middle of a body.
const PAUSE: Duration = Duration::from_secs(10);

/// 413.
pub(crate) fn too_long(most: usize) -> Problem {
    let detail = format!("the body may have at most {most} bytes");
    Problem::new(Code::TooLarge, detail)
}

/// Receives a body of at most `most` bytes, which claims memory as it grows.
pub(super) async fn receive(
    body: &mut Body,
    most: usize,
    claim: &mut Claim,
) -> Result<Vec<u8>, Problem> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    loop {
        let pause = deadline.min(Instant::now() + PAUSE);
        let Ok(frame) = tokio::time::timeout_at(pause, body.frame()).await else {
            let detail = format!(
                "the body did not arrive within {PATIENCE:?}, or paused for more than {PAUSE:?}"
            );
            return Err(Problem::new(Code::BodyTimeout, detail));
        };
        let frame = match frame {
            None => return Ok(bytes),
            Some(frame) => frame.map_err(|error| {
                let detail = format!("the body cannot be read: {error}");
                Problem::new(Code::BadRequest, detail)
            })?,
        };
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_long(most));
        }
        claim.for_body(bytes.len() + data.len())?;
        bytes.extend_from_slice(data);
    }
}
