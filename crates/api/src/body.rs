//! Bodies of requests: received within limits, read into forms.
//!
//! ```text
//! guard ──▶ type and length ──▶ is there memory ──▶ bytes arrive and claim it ──▶ read into a form ──▶ handler
//!  401/403    415, 413            429, 503            408, 413, 429, 503           400, 422
//! ```
//! Nothing is read of a request whose key is not valid, or for which there is no memory. A large body is read on a
//! thread of its own, so that other requests do not wait for it. The claim is part of [`Body`]: a handler holds it
//! until it answers.

mod arrival;
mod budget;
mod unread;
mod upload;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use stampede_model::{KeyHash, Principal};

pub(crate) use self::arrival::too_long;
pub use self::budget::Budget;
pub(crate) use self::budget::{Claim, Refused};
pub(crate) use self::unread::{Unread, discard_unread};
pub use self::upload::Uploads;
pub(crate) use self::upload::{TYPES as UPLOAD_TYPES, Upload};
use crate::app::App;
use crate::forms::{Form, ReadingLimits, canonical, parse};
use crate::problem::{Code, Problem};

/// Largest body of a request that has neither files nor lists nor payloads, in bytes.
const FEW_FIELDS: usize = 256 << 10;
/// Largest body of a request without a key, in bytes: strangers share the memory of one caller.
const OF_STRANGERS: usize = 4 << 10;
/// Largest body of a provider's request, in bytes: Meta sends receipts of up to 3 MB.
const OF_PROVIDERS: usize = 4 << 20;
/// A body up to this size is read without changing the thread, in bytes.
const READ_AT_ONCE: usize = 32 << 10;

/// The body of a request with a few fields.
pub(crate) struct Body<F>(pub(crate) F, pub(crate) Held);

/// The body of a request that needs no key.
pub(crate) struct StrangersBody<F>(pub(crate) F, pub(crate) Held);

/// The body of a request with a few fields, which may also have no body.
pub(crate) struct MaybeBody<F>(pub(crate) F);

/// The body of a request with files, lists or payloads: as large as the settings allow.
pub(crate) struct LargeBody<F>(pub(crate) F, pub(crate) Held);

/// The body of a request that may have an `Idempotency-Key`: as large as the settings allow. The hash of its content is the
/// same whatever the order of its fields; `None` without such a key.
pub(crate) struct ComparedBody<F>(pub(crate) F, pub(crate) Option<KeyHash>, pub(crate) Held);

/// The body of a provider's request, byte for byte: its signature is over it.
pub(crate) struct RawBody(Vec<u8>, #[expect(dead_code, reason = "held until the answer")] Held);

impl RawBody {
    /// Receives the body of a request that needs no key.
    pub(crate) async fn receive(parts: &Parts, app: &App) -> Result<Self, Problem> {
        check_coding(&parts.headers)?;
        let declared = declared_length(&parts.headers);
        if declared.is_some_and(|length| length > OF_PROVIDERS) {
            return Err(arrival::too_long(OF_PROVIDERS));
        }
        let mut claim = app.bodies.claim("", declared.unwrap_or_default())?;
        let mut taken = unread(parts)?.take();
        let bytes = arrival::receive(&mut taken.body, OF_PROVIDERS, &mut claim).await?;
        Ok(Self(bytes, Held(Some(claim))))
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The memory of a body, which a handler holds until it answers.
pub(crate) struct Held(
    #[expect(dead_code, reason = "given back when it is dropped")] Option<Claim>,
);

/// Whether the content of a body is compared with that of others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Compared,
    Unique,
}

impl<F: Form> FromRequest<App> for Body<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let most = FEW_FIELDS.min(app.limits.body_bytes);
        let read = read(&request.into_parts().0, app, most, Content::Unique).await;
        read.map(|(form, _, held)| Self(form, held))
    }
}

impl<F: Form> FromRequest<App> for StrangersBody<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let most = OF_STRANGERS.min(app.limits.body_bytes);
        let read = read(&request.into_parts().0, app, most, Content::Unique).await;
        read.map(|(form, _, held)| Self(form, held))
    }
}

impl<F: Form> FromRequest<App> for LargeBody<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let most = app.limits.body_bytes;
        let read = read(&request.into_parts().0, app, most, Content::Unique).await;
        read.map(|(form, _, held)| Self(form, held))
    }
}

impl<F: Form> FromRequest<App> for ComparedBody<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, _) = request.into_parts();
        let content = match parts.headers.contains_key("idempotency-key") {
            true => Content::Compared,
            false => Content::Unique,
        };
        let (form, hash, held) = read(&parts, app, app.limits.body_bytes, content).await?;
        Ok(Self(form, hash, held))
    }
}

impl<F: Form> FromRequest<App> for MaybeBody<F> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, _) = request.into_parts();
        // A body without a content type must not be taken for none: a limit in it would be ignored.
        let is_empty = unread(&parts)?.take().body.is_end_stream();
        if is_empty && !parts.headers.contains_key(CONTENT_TYPE) {
            return Ok(Self(F::blank()));
        }
        let most = FEW_FIELDS.min(app.limits.body_bytes);
        read(&parts, app, most, Content::Unique).await.map(|(form, ..)| Self(form))
    }
}

async fn read<F: Form>(
    parts: &Parts,
    app: &App,
    most: usize,
    content: Content,
) -> Result<(F, Option<KeyHash>, Held), Problem> {
    check_type(&parts.headers)?;
    let declared = declared_length(&parts.headers);
    if declared.is_some_and(|length| length > most) {
        return Err(arrival::too_long(most));
    }
    // Guards come before bodies; a caller without a name would share with all others who have none.
    let caller = parts.extensions.get::<Principal>().map_or("", |caller| caller.user.as_str());
    let mut claim = app.bodies.claim(caller, declared.unwrap_or_default())?;
    let mut taken = unread(parts)?.take();
    let bytes = arrival::receive(&mut taken.body, most, &mut claim).await?;
    drop(taken);
    let limits = ReadingLimits {
        holders: app.ticketing.limits().quantity as usize,
        payload: app.broker.max_payload(),
    };
    let is_short = bytes.len() <= READ_AT_ONCE;
    let read = move || {
        // First, because its text needs as much memory as the values do.
        let mut claim = claim;
        let hash = match content {
            Content::Compared => Some(hash_of(&bytes, &mut claim)?),
            Content::Unique => None,
        };
        let (form, claim) = parse(&bytes, limits, Some(claim))?;
        match hash {
            Some(None) => Err(Problem::too_many_fields()),
            Some(hash) => Ok((form, hash, Held(claim))),
            None => Ok((form, None, Held(claim))),
        }
    };
    if is_short {
        return read();
    }
    tokio::task::spawn_blocking(read).await.map_err(|error| Problem::internal(&error))?
}

/// The hash of a body's content; `None` if it has none, because it is no JSON or has too many fields.
fn hash_of(bytes: &[u8], claim: &mut Claim) -> Result<Option<KeyHash>, Problem> {
    let text = canonical(bytes, |more| claim.at_least(bytes.len() + more))?;
    Ok(text.map(|text| KeyHash::of(&text)))
}

impl Problem {
    /// 422: the content of the body cannot be compared with that of another one.
    fn too_many_fields() -> Self {
        let detail = "with an Idempotency-Key, an object may have at most 1000 fields";
        Self::new(Code::Invalid, detail)
    }
}

/// The body of a request, until somebody reads it.
pub(crate) fn unread(parts: &Parts) -> Result<&Unread, Problem> {
    let found = parts.extensions.get::<Unread>();
    found.ok_or_else(|| Problem::internal(&"a route without the layer that keeps its body"))
}

/// 415 unless the body is JSON as it is.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: &str| Err(Problem::new(Code::UnsupportedMediaType, detail));
    if !is_json(headers) {
        return refused("the body must be JSON with \"Content-Type: application/json\"");
    }
    check_coding(headers)
}

/// 415 if the body is compressed.
fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            let detail = "the body must not be compressed: send it without Content-Encoding";
            Err(Problem::new(Code::UnsupportedMediaType, detail))
        }
        _ => Ok(()),
    }
}

/// The length that the client announces; the connection takes no more bytes than that for the body.
fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}
