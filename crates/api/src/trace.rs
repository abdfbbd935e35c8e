//! The audit log's part of a request: who changes what, from where, and how it ended.
//!
//! ```text
//!   follow ──▶ guard ──▶ handler: begin ──▶ the entry is committed ──▶ the change ──▶ done ──▶ follow: the entry is settled
//!              who        what, before                                               after     status
//! ```
//!
//! [`follow`] runs around every route that may change something. A handler that changes something answers with
//! [`Audited`], which only [`Change`] makes, and a [`Change`] exists only after its entry is committed. The router's table
//! knows which routes answer so; a test compares it with the list of those that need not (`CHANGE_NOTHING`,
//! `OWN_LOG`). Refused requests (403) are noted here as well.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use stampede_audit::{Attempt, Audit, AuditOrigin, Ending, Subject};
use stampede_broker::{RequestId, kept};
use stampede_model::{AuditId, Principal};
use stampede_store::AuditEntry;

use crate::app::App;
use crate::client_address::noted;
use crate::describe::{Answer, Operation};
use crate::problem::{Code, Problem};
use crate::room::Route;
use crate::router::{panicked, time_limit};
use crate::test_hooks::hang_at;
use crate::unknown;

/// How much longer a change may take than its client is made to wait: as long as the handler of an idempotent request.
const BEYOND_ANSWER: Duration = Duration::from_secs(35);
/// Longest name of a record that a refusal is noted with, in characters.
const LONGEST_RECORD: usize = 200;

/// Routes that change nothing, though their method is not GET.
#[cfg(test)]
const CHANGE_NOTHING: [&str; 11] = [
    "verifyToken",
    "validateTemplate",
    "previewFiles",
    "previewTemplate",
    "validateContract",
    "previewContract",
    "drawSticker",
    "drawStickers",
    "unknownQueueAction",
    "unknownJobAction",
    "unknownLetterAction",
];

/// Routes whose changes are in another log: that of scans; the ledger of a campaign and the list of suppressed addresses,
/// which say what told them.
#[cfg(test)]
const OWN_LOG: [&str; 6] =
    ["redeemTicket", "undoScan", "uploadScans", "receiveReceipts", "receiveBounces", "unsubscribe"];

/// What is known of one request. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    operation: &'static str,
    /// Whether the operation's answer tells of a change that is in the audit log.
    is_audited: bool,
    address: Option<IpAddr>,
    /// The last id or name in the path.
    record: Option<String>,
    who: Option<Principal>,
    entry: Option<AuditId>,
    before: Option<Value>,
    after: Option<Value>,
}

impl Known {
    /// Who asks for the change; `None` before the guard has found out.
    fn attempt(&self) -> Option<Attempt> {
        let who = self.who.as_ref()?;
        Some(Attempt {
            user: who.user.clone(),
            role: who.role,
            key: who.key,
            origin: AuditOrigin::Api,
            address: self.address.map(|address| address.to_string()),
            request_id: RequestId::current().map(|id| id.to_string()),
            operation: self.operation.to_owned(),
        })
    }
}

impl Trace {
    /// The guard knows who asks.
    pub(crate) fn known(&self, who: &Principal) {
        self.0.lock().who = Some(who.clone());
    }

    /// Commits the entry of a change that is about to be made to a record.
    pub(crate) async fn begin(
        &self,
        app: &App,
        subject: Subject,
        before: Option<Value>,
    ) -> Result<Change, Problem> {
        let attempt = self.0.lock().attempt();
        let attempt = attempt.ok_or_else(|| Problem::internal(&"a change by nobody"))?;
        match app.audit.begin(&attempt, &subject, before).await {
            Ok(entry) => self.0.lock().entry = Some(entry),
            // An operator must be able to pause a queue while the database is away: then the log has the trace.
            Err(error) if subject.kind.is_in_redis() && error.0.is_outage() => tracing::warn!(
                user = attempt.user,
                operation = attempt.operation,
                record = subject.record.as_deref(),
                address = attempt.address.as_deref(),
                %error,
                "a change is not in the audit log, because the database is away"
            ),
            Err(error) => return Err(error.into()),
        }
        hang_at("change-begun", &attempt.operation).await;
        Ok(Change { trace: self.clone() })
    }

    /// The entry of a change whose transaction writes it, if the change is made.
    pub(crate) fn entry_of_transaction(
        &self,
        subject: &Subject,
        status: StatusCode,
    ) -> Option<AuditEntry> {
        let attempt = self.0.lock().attempt()?;
        Some(Audit::settled_entry(&attempt, subject, status.as_u16(), Value::Null))
    }

    /// Notes how the request ended.
    async fn settle(&self, app: &App, status: StatusCode) {
        let (entry, attempt, ending, record) = {
            let mut known = self.0.lock();
            let (before, after) = (known.before.take(), known.after.take());
            let ending = Ending { status: status.as_u16(), before, after };
            (known.entry.take(), known.attempt(), ending, known.record.take())
        };
        let settled = match (entry, attempt) {
            (Some(entry), attempt) => {
                hang_at(
                    "change-made",
                    &attempt.map(|attempt| attempt.operation).unwrap_or_default(),
                )
                .await;
                app.audit.settle(entry, ending).await
            }
            (None, Some(attempt)) if status == StatusCode::FORBIDDEN => {
                app.audit.refused(&attempt, record).await
            }
            _ => Ok(()),
        };
        if let Err(error) = settled {
            tracing::warn!(%error, "the outcome of a change is not in the audit log");
        }
    }
}

/// A change whose entry is in the log.
pub(crate) struct Change {
    trace: Trace,
}

impl Change {
    /// Others have changed the record since the change began: it is to be made to this one.
    pub(crate) fn rebased(self, before: &impl Serialize) -> Self {
        self.trace.0.lock().before = json(before);
        self
    }

    /// The change is made; the record is like this now.
    pub(crate) fn after(self, record: &impl Serialize) -> Made {
        self.trace.0.lock().after = json(record);
        Made(())
    }

    /// The change is made; there is no such record any more.
    pub(crate) fn gone(self) -> Made {
        Made(())
    }
}

/// A change that is made.
pub(crate) struct Made(());

impl Made {
    /// Its answer.
    pub(crate) fn answer<A>(self, answer: A) -> Audited<A> {
        Audited(answer)
    }
}

/// A record as the log is told it.
pub(crate) fn json(record: &impl Serialize) -> Option<Value> {
    serde_json::to_value(record).ok()
}

/// The answer of a request that has changed something.
pub(crate) struct Audited<A>(A);

impl<A> Audited<A> {
    /// The answer to a change whose own transaction has written the entry.
    pub(crate) fn by_transaction(answer: A) -> Self {
        Self(answer)
    }

    /// The answer to a request that asked what would happen, and changed nothing.
    pub(crate) fn without_change(answer: A) -> Self {
        Self(answer)
    }
}

impl<A: Answer> Answer for Audited<A> {
    const AUDITED: bool = true;

    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
    }
}

impl<A: IntoResponse> IntoResponse for Audited<A> {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// Follows a request that may change something. A change that is audited is made in a task of its own: a client that hangs up
/// neither leaves it half done nor its entry without an outcome.
pub(crate) async fn follow(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let Some(known) = known(&request) else { return next.run(request).await };
    let (is_audited, trace) = (known.is_audited, Trace(Arc::new(Mutex::new(known))));
    request.extensions_mut().insert(trace.clone());
    let limit = time_limit(&request) + BEYOND_ANSWER;
    let followed = async move {
        let Ok(response) = tokio::time::timeout(limit, next.run(request)).await else {
            // Nobody knows how far it came: its entry stays without an outcome.
            let detail = format!("the request took longer than {limit:?} and was ended");
            return Problem::new(Code::TooSlow, detail).into_response();
        };
        trace.settle(&app, response.status()).await;
        response
    };
    if !is_audited {
        return followed.await;
    }
    match tokio::spawn(kept(followed)).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panicked(panic),
            Err(error) => Problem::internal(&error).into_response(),
        },
    }
}

/// What can be told of a request before it is handled; `None`: it cannot change anything.
fn known(request: &Request) -> Option<Known> {
    static OPERATIONS: LazyLock<HashMap<&'static str, Vec<Route>>> = LazyLock::new(|| {
        let mut operations: HashMap<_, Vec<_>> = HashMap::new();
        for route in crate::router::routes() {
            operations.entry(route.path).or_default().push(route);
        }
        operations
    });
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return None;
    }
    let matched = request.extensions().get::<MatchedPath>()?;
    let operations = OPERATIONS.get(matched.as_str())?;
    let route = operations.iter().find(|route| route.method == request.method())?;
    Some(Known {
        operation: route.id,
        is_audited: route.audited,
        address: noted(request.extensions()),
        record: record(matched.as_str(), request.uri().path()),
        ..Known::default()
    })
}

/// The last id or name in a path.
fn record(matched: &str, path: &str) -> Option<String> {
    let segments = matched.split('/').zip(path.split('/'));
    let named = segments.filter(|(name, _)| name.starts_with('{')).last()?.1;
    let text: String = named.chars().take(LONGEST_RECORD).collect();
    Some(stampede_model::Printable::line(unknown::decoded(&text)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_that_changes_something_is_audited() {
        for route in crate::router::routes() {
            let excepted = CHANGE_NOTHING.contains(&route.id) || OWN_LOG.contains(&route.id);
            let changes = route.method != "GET" && !excepted;
            assert_eq!(
                route.audited, changes,
                "{} {}: answer with Audited, or say in trace.rs why not",
                route.method, route.path
            );
        }
    }

    #[test]
    fn a_record_is_named_by_the_path() {
        for (matched, path, wanted) in [
            ("/api/events/{id}", "/api/events/7", Some("7")),
            ("/api/queues/{name}/jobs/{id}/retry", "/api/queues/mails/jobs/a/retry", Some("a")),
            ("/api/events", "/api/events", None),
        ] {
            assert_eq!(record(matched, path).as_deref(), wanted, "{path}");
        }
    }
}
