//! `Idempotency-Key`: a POST with the same key and the same content is carried out once, and answered again for a day.
//!
//! ```text
//!   key? ──▶ guard ──▶ claim ── yes ────────▶ handler, in a task of its own ── 2xx ──▶ kept, answered
//!                        │                                              └── other ──▶ key is free again, answered
//!                        ├── in flight ─────▶ 409 in_flight
//!                        ├── other target ──▶ 422 key_reused
//!                        └── done ──▶ body hashed ── same ──▶ the kept answer, Idempotency-Replayed: true
//!                                                └── other ──▶ 422 key_reused
//! ```
//!
//! Every POST has this without knowing it: `room.rs` wraps the handler. Handlers that take [`IdempotencyKey`] do it
//! themselves. [`RUNS_AGAIN`] change nothing or have nonces, so they are carried out again. So are routes without a guard: a
//! stranger's key is nobody's, and whoever knows it would get the answer. Without the header, nothing is looked up.
//!
//! Answers are kept within limits: of each body ([`KeptAnswer`]), and of each owner (`share.rs`). An answer that shows a
//! secret ([`SHOWS_SECRET`]) is given again only to the API key that asked for it, not to other keys of the user.
//!
//! What is compared: operation, path and query when the key is claimed; the bytes of the body when it is known. The hash
//! is made while the handler reads them, so a long body is not held in memory.
//!
//! The handler runs in a task of its own: a client that hangs up must not leave a request half done with its key taken. If
//! the process dies, the record stays in flight until its time limit ([`HELD`]). The next request is then carried out
//! again, although the first one may have done its work.

mod answer;
mod body_hash;
mod share;
mod sweeper;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::Method;
use http::request::Parts;
use sha2::{Digest, Sha256};
use stampede_broker::{RequestId, kept};
use stampede_model::{Principal, Timestamp};
use stampede_store::{RequestClaim, RequestClaimed};

use self::answer::KeptAnswer;
use self::body_hash::BodyHash;
pub use self::share::AnswerShares;
pub use self::sweeper::forget_old_requests;
use crate::app::{App, now};
use crate::auth::{Right, let_in_early};
use crate::headers::IdempotencyKey;
use crate::problem::{Code, Problem};
use crate::router::panicked;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long nobody else may carry out a request. Longer than a request may take, and than clocks of nodes differ.
const HELD: Duration = Duration::from_secs(150);
/// A request that takes longer is given up. (Its client has its answer, 503, before.)
const LONGEST: Duration = Duration::from_secs(90);

/// POSTs that change nothing: they are carried out again. So are scans: their nonces get the first answer again, and a
/// scanner's key must not fill the database with answers.
pub(crate) const RUNS_AGAIN: [&str; 10] = [
    "verifyToken",
    "validateTemplate",
    "previewFiles",
    "previewTemplate",
    "redeemTicket",
    "uploadScans",
    "validateContract",
    "previewContract",
    "drawSticker",
    "drawStickers",
];

/// Operations whose answers show a secret once: only the key that asked gets the answer again.
pub const SHOWS_SECRET: [&str; 7] = [
    "createKey",
    "rotateKey",
    "createDevice",
    "createWebhook",
    "rotateWebhook",
    "linkTicket",
    "linkBatch",
];

/// How a route treats `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// The handler is wrapped.
    AnsweredAgain,
    /// The key is ignored: the operation changes nothing, or is open.
    RunAgain,
    /// The handler does it by itself, or the method needs no key.
    OfHandler,
}

impl Repeats {
    /// How an operation with this method and right treats keys. `is_own`: its handler takes the key.
    pub(crate) fn of(method: &Method, operation: &str, right: Right, is_own: bool) -> Self {
        match () {
            () if *method != Method::POST || is_own => Self::OfHandler,
            () if right == Right::Nothing || RUNS_AGAIN.contains(&operation) => Self::RunAgain,
            () => Self::AnsweredAgain,
        }
    }
}

/// A handler that is carried out once for each key.
#[derive(Clone)]
pub(crate) struct Once<H> {
    pub(crate) handler: H,
    /// The operation's id.
    pub(crate) operation: &'static str,
    /// The right that its guard demands.
    pub(crate) right: Right,
}

impl<H, T> Handler<T, App> for Once<H>
where
    H: Handler<T, App>,
    T: 'static,
{
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, request: Request, app: App) -> Self::Future {
        if !request.headers().contains_key("idempotency-key") {
            return Box::pin(self.handler.call(request, app));
        }
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match self.claimed(&mut parts, &app).await {
                Ok(claim) => self.run(claim, Request::from_parts(parts, body), app).await,
                Err(answer) => *answer,
            }
        })
    }
}

/// A claim that this request holds.
struct Claim {
    owner: String,
    key: String,
    target: String,
    holder: String,
    claimed_at: Timestamp,
    body: BodyHash,
}

impl Claim {
    fn record(&self) -> RequestClaim<'_> {
        RequestClaim {
            owner: &self.owner,
            key: &self.key,
            target: &self.target,
            holder: &self.holder,
            held_until: self.claimed_at + HELD,
            expires_at: self.claimed_at + KEPT,
        }
    }
}

impl<H> Once<H> {
    /// Claims the key of a request; otherwise the answer.
    async fn claimed(&self, parts: &mut Parts, app: &App) -> Result<Claim, Box<Response>> {
        self.try_claim(parts, app)
            .await
            .unwrap_or_else(|problem| Err(Box::new(problem.into_response())))
    }

    async fn try_claim(
        &self,
        parts: &mut Parts,
        app: &App,
    ) -> Result<Result<Claim, Box<Response>>, Problem> {
        let IdempotencyKey(key) = IdempotencyKey::from_request_parts(parts, &()).await?;
        let caller = let_in_early(parts, app, self.right).await?;
        let body = BodyHash::of(parts)?;
        let target =
            hash([self.operation, parts.uri.path(), parts.uri.query().unwrap_or_default()]);
        let claim = Claim {
            owner: owner(&caller, self.operation),
            key: key.unwrap_or_default(),
            target,
            holder: RequestId::generate().to_string(),
            claimed_at: now(),
            body,
        };
        match app.store.claim_request(&claim.record(), claim.claimed_at).await? {
            RequestClaimed::Yes => Ok(Ok(claim)),
            RequestClaimed::InFlight => Err(Problem::in_flight()),
            RequestClaimed::OtherTarget => Err(Problem::key_reused()),
            RequestClaimed::Done { body_hash, answer } => {
                if claim.body.finished(app.limits.body_bytes).await? != body_hash {
                    return Err(Problem::key_reused());
                }
                let answer = answer.and_then(|bytes| KeptAnswer::read(&bytes));
                let answer = answer.ok_or_else(Problem::answer_not_kept)?;
                Ok(Err(Box::new(answer.replayed())))
            }
        }
    }

    /// Carries the request out to its end, whether or not the client waits.
    async fn run<T>(self, claim: Claim, request: Request, app: App) -> Response
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let handler = self.handler;
        let task = tokio::spawn(kept(async move {
            let carried_out = AssertUnwindSafe(handler.call(request, app.clone())).catch_unwind();
            let response = match tokio::time::timeout(LONGEST, carried_out).await {
                Ok(Ok(response)) => response,
                Ok(Err(panic)) => panicked(panic),
                Err(_) => {
                    let detail = format!("the request took longer than {LONGEST:?} and was ended");
                    Problem::new(Code::TooSlow, detail).into_response()
                }
            };
            settled(claim, response, &app).await
        }));
        task.await.unwrap_or_else(|error| Problem::internal(&error).into_response())
    }
}

/// Keeps the answer of a request that was carried out, or frees its key.
async fn settled(claim: Claim, response: Response, app: &App) -> Response {
    let record = claim.record();
    if !response.status().is_success() {
        if let Err(error) = app.store.release(&record).await {
            tracing::warn!(%error, "an Idempotency-Key stays in use until its time limit");
        }
        return response;
    }
    // A body that breaks off is kept as far as it came: the same request again has another hash, and is refused.
    let body_hash = match claim.body.finished(app.limits.body_bytes).await {
        Ok(hash) => hash,
        Err(_) => claim.body.so_far(),
    };
    let (response, answer) = KeptAnswer::of(response).await;
    let answer = answer.filter(|answer| app.answers.take(&claim.owner, answer.len(), now()));
    match app.store.keep_answer(&record, &body_hash, answer.as_deref()).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!("the answer of a request came after its time limit"),
        Err(error) => {
            tracing::warn!(%error, "an answer was not kept; a repeated request may be carried out again");
        }
    }
    response
}

/// Whose keys are told apart: a user's, by what the user's key may do. Otherwise a key with a limit could ask for the answer
/// of one without.
fn owner(caller: &Principal, operation: &str) -> String {
    let owner = owner_of_rights(caller);
    match caller.key.filter(|_| SHOWS_SECRET.contains(&operation)) {
        Some(key) => format!("{owner}:key:{key}"),
        None => owner,
    }
}

fn owner_of_rights(caller: &Principal) -> String {
    let (role, user, scope) = (caller.role.as_str(), &caller.user, &caller.scope);
    let event = scope.event.map(|event| event.to_string()).unwrap_or_default();
    let queues = scope.queues.as_ref().map(|names| names.join("\n"));
    match scope.is_limited() {
        false => format!("{role}:{user}"),
        true => {
            format!("{role}:{user}:{}", hash([event.as_str(), queues.as_deref().unwrap_or("\n")]))
        }
    }
}

/// A hash of several texts.
fn hash<const N: usize>(texts: [&str; N]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    body_hash::hex(hasher)
}

impl Problem {
    /// 409: the first request with the key is being carried out.
    fn in_flight() -> Self {
        let detail =
            "a request with this Idempotency-Key is being carried out; ask again for its answer";
        Self::new(Code::InFlight, detail).retry_after(1)
    }

    /// 422: the key was used before.
    fn key_reused() -> Self {
        let detail =
            "this Idempotency-Key was used for another request; a new request needs a new key";
        Self::new(Code::KeyReused, detail)
    }

    /// 409: there is no answer to give again.
    fn answer_not_kept() -> Self {
        let detail = "the request with this Idempotency-Key was carried out, but its answer is not kept: it was too long, or too many others of yours are";
        Self::new(Code::AnswerNotKept, detail)
    }
}
