//! `/hooks/…`: what providers tell of messages. The signature of a request is its key.
//!
//! ```text
//!   the account of the path ──▶ raw body, 4 MB ──▶ signature ──▶ every receipt committed ──▶ 200
//!             404                    413               401                                    (500, 503: the provider repeats)
//! ```

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use schemars::json_schema;
use stampede_campaign::{Hook, Received};
use stampede_channel::Incoming;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel};
use stampede_wire::campaigns::ReceiptsTaken;

use crate::app::App;
use crate::auth::Anyone;
use crate::body::RawBody;
use crate::describe::{Input, Kind, Operation, Place, Sent};
use crate::input::{Id, Ids};
use crate::problem::{Code, Problem};
use crate::ranges::set;

/// Parameters with which WhatsApp proves a hook.
const CHALLENGE: [(&str, &str); 3] = [
    ("hub.mode", "`subscribe`."),
    ("hub.verify_token", "The account's `verifyToken`."),
    ("hub.challenge", "The text that is answered."),
];

/// The query as it came.
pub(crate) struct ChallengeQuery(String);

impl<S: Sync> FromRequestParts<S> for ChallengeQuery {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

impl Input for ChallengeQuery {
    fn describe(operation: &mut Operation<'_>) {
        for (name, about) in CHALLENGE {
            let text = json_schema!({ "type": "string" });
            operation.parameter(Place::Query, name, about, text);
        }
    }
}

/// A request of a provider, of whose body nothing was read yet.
pub(crate) struct ProviderRequest(Parts);

impl FromRequest<App> for ProviderRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &App) -> Result<Self, Problem> {
        Ok(Self(request.into_parts().0))
    }
}

impl Input for ProviderRequest {
    fn describe(operation: &mut Operation<'_>) {
        let any = || json_schema!({});
        let kinds = ["application/json", "application/x-www-form-urlencoded"];
        operation.bodies(kinds.into_iter().map(|kind| (kind, any())));
        operation.may_refuse_body();
    }
}

impl ProviderRequest {
    /// The URL that the provider called: Twilio signs it.
    fn url(&self, app: &App) -> String {
        let path = self.0.uri.path_and_query().map_or("/", |path| path.as_str());
        match app.hooks.base() {
            "" => {
                let host = self.0.headers.get(HOST).and_then(|host| host.to_str().ok());
                format!("https://{}{path}", host.unwrap_or_default())
            }
            base => format!("{base}{path}"),
        }
    }
}

/// The answer to WhatsApp's question.
pub(crate) struct Challenge;

impl Kind for Challenge {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        operation.answers(200, "The text of `hub.challenge`.", Some(("text/plain", schema)));
        operation.may_refuse(&[Code::Forbidden, Code::Unavailable]);
    }
}

/// Answers the question with which WhatsApp proves that a hook is its account's.
pub(crate) async fn challenge(
    State(app): State<App>,
    _: Anyone,
    Ids(channel, account): Ids<String, AccountId>,
    ChallengeQuery(query): ChallengeQuery,
) -> Result<Sent<Challenge>, Problem> {
    let hook = find(&app, Channel::from_word(&channel), &account).await?;
    let Some(answer) = app.campaigns.answer_challenge(&hook, &query).await? else {
        let detail = "the verify token is not that of the account";
        return Err(Problem::new(Code::Forbidden, detail));
    };
    let mut response = Response::new(answer.into());
    set(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, CACHE_CONTROL, "no-store");
    Ok(Sent::new(response))
}

/// Takes receipts, and what people write to the sender.
pub(crate) async fn receipts(
    State(app): State<App>,
    _: Anyone,
    Ids(channel, account): Ids<String, AccountId>,
    request: ProviderRequest,
) -> Result<Json<ReceiptsTaken>, Problem> {
    let hook = find(&app, Channel::from_word(&channel), &account).await?;
    receive(&app, &account, &hook, &request).await
}

/// Takes bounces and complaints of mail.
pub(crate) async fn bounces(
    State(app): State<App>,
    _: Anyone,
    Id(account): Id<AccountId>,
    request: ProviderRequest,
) -> Result<Json<ReceiptsTaken>, Problem> {
    let hook = find(&app, Some(Channel::Smtp), &account).await?;
    receive(&app, &account, &hook, &request).await
}

/// The hook of an account; 404 unless the account exists and has this channel.
async fn find(app: &App, channel: Option<Channel>, account: &AccountId) -> Result<Hook, Problem> {
    let Some(channel) = channel else { return Err(no_such_hook()) };
    app.campaigns.hook(account, channel).await?.ok_or_else(no_such_hook)
}

fn no_such_hook() -> Problem {
    Problem::new(Code::NotFound, "there is no such hook")
}

async fn receive(
    app: &App,
    account: &AccountId,
    hook: &Hook,
    request: &ProviderRequest,
) -> Result<Json<ReceiptsTaken>, Problem> {
    let (url, body) = (request.url(app), RawBody::receive(&request.0, app).await?);
    let incoming = Incoming {
        headers: &request.0.headers,
        url: &url,
        query: request.0.uri.query().unwrap_or_default(),
        body: body.bytes(),
        now: Timestamp::now(),
    };
    match app.campaigns.receive(hook, &incoming).await? {
        Received::Done { applied, suppressed, statuses } => {
            tracing::debug!(%account, applied, suppressed, ?statuses, "receipts taken");
            Ok(Json(ReceiptsTaken { applied, suppressed }))
        }
        Received::Forged(why) => {
            tracing::warn!(%account, why, "a request to a hook is refused");
            Err(Problem::new(Code::WrongSignature, why))
        }
        Received::Unreadable(why) => {
            tracing::warn!(%account, why, "a request to a hook cannot be read");
            Err(Problem::new(Code::BadRequest, why))
        }
        Received::NotFound => Err(no_such_hook()),
    }
}
