//! What parent and child say to each other: a length in four bytes, then a value.

use serde::{Deserialize, Serialize};
use stampede_model::TicketDocument;
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};

use super::Error;
use crate::{Bundle, Diagnostic, EventData, Published};

/// Longest message in either direction.
pub(super) const LONGEST: u32 = 64 << 20;

/// What a child can do.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    Warm,
    Compile { bundle: Bundle, event: EventData },
    Mistakes { bundle: Bundle, event: EventData },
    Typeset { template: Typeset, ticket: TicketDocument },
    MergeTypeset { template: Typeset, ticket: TicketDocument, after: Continuation },
    Stamp { blob: Vec<u8>, ticket: TicketDocument },
    Merge { blob: Vec<u8>, tickets: Vec<TicketDocument>, after: Continuation },
    Preview { pdf: Vec<u8>, page: u32, dpi: f32 },
}

/// What it answers.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Warm,
    Published(Published),
    Bytes(Vec<u8>),
    Piece(Piece),
    Mistakes(Vec<Diagnostic>),
}

impl Answer {
    /// A child of another version would answer so.
    pub(super) fn unexpected(&self) -> Error {
        Error::Unavailable("its answer belongs to another question".into())
    }
}

// Not generic: they are compiled here, once, and not in every crate that awaits a sandbox.

/// A request without its length.
pub(super) fn encode_request(request: &Request) -> Result<Vec<u8>, Error> {
    encode(request)
}

/// An answer without its length.
pub(super) fn encode_answer(answer: &Answer) -> Result<Vec<u8>, Error> {
    encode(answer)
}

pub(super) fn decode_request(bytes: &[u8]) -> Result<Request, Error> {
    decode(bytes)
}

pub(super) fn decode_answer(bytes: &[u8]) -> Result<Answer, Error> {
    decode(bytes)
}

fn encode(message: &impl Serialize) -> Result<Vec<u8>, Error> {
    let bytes = rmp_serde::to_vec(message).map_err(|e| Error::Unavailable(e.to_string()))?;
    if bytes.len() > LONGEST as usize {
        return Err(Error::Template(vec![Diagnostic::error(None, "it is larger than 64 MB")]));
    }
    Ok(bytes)
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    rmp_serde::from_slice(bytes).map_err(|error| Error::Unavailable(error.to_string()))
}
