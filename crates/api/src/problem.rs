//! The one error type of the API: `application/problem+json` (RFC 9457), plus the `error` field that older clients read
//! (docs/compatibility.md).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use stampede_broker::RequestId;
use stampede_model::{Diagnostic, ErrorId, Role, Scope, TicketId};
use stampede_wire::problem as wire;
pub(crate) use stampede_wire::problem::{Code, FieldError};

use crate::unknown;

/// An answer that refuses.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    /// `detail` in the words that older clients compare, if they are others.
    error: Option<String>,
    fields: Vec<FieldError>,
    /// Further members of the answer.
    more: Map<String, Value>,
    retry_after_s: Option<u32>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: cut(detail.into()),
            error: None,
            fields: Vec::new(),
            more: Map::new(),
            retry_after_s: None,
        }
    }

    /// 404 with the id. The `error` is `Event not found`, words that older clients compare (docs/compatibility.md).
    pub(crate) fn not_found(what: &str, id: &dyn std::fmt::Display) -> Self {
        let error = format!("{what} not found");
        let detail = format!("{error}: {}", unknown::shown(&id.to_string()));
        Self { error: Some(error), ..Self::new(Code::NotFound, detail) }
    }

    /// 403: `why` the roles are needed, such as the action or the record.
    pub(crate) fn forbidden(why: &str, needs: &[Role]) -> Self {
        let needs: Vec<&str> = needs.iter().map(|role| role.as_str()).collect();
        let detail = format!("Access denied: {why} needs the role {}", needs.join(" or "));
        // Words that older clients compare (docs/compatibility.md).
        let error = Some("Access denied".to_owned());
        Self { error, ..Self::new(Code::Forbidden, detail) }.with("needs", json!(needs))
    }

    /// 403: the record belongs to somebody else.
    pub(crate) fn not_yours() -> Self {
        Self::forbidden("a record of somebody else", &[Role::Admin])
    }

    /// 404 instead of 403 for a record of somebody else, whose existence is not told (docs/decisions/0034-foreign-records.md).
    pub(crate) fn hiding(self, what: &str, id: &dyn std::fmt::Display) -> Self {
        if self.code == Code::Forbidden { Self::not_found(what, id) } else { self }
    }

    /// 403: the key is limited, and this is outside of its limits.
    pub(crate) fn out_of_scope(scope: &Scope) -> Self {
        let event = scope.event.map(|event| format!("event {event}"));
        let queues = scope.queues.as_ref().map(|names| format!("queues {}", names.join(", ")));
        let limits: Vec<String> = event.into_iter().chain(queues).collect();
        let detail = format!("Access denied: this key is limited to {}", limits.join(" and "));
        let error = Some("Access denied".to_owned());
        Self { error, ..Self::new(Code::OutOfScope, detail) }
    }

    /// 422 with all mistakes at once.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Self {
        Self::listing(Code::InvalidFields, "", fields)
    }

    /// All mistakes at once; `place` says where, if not in the body.
    pub(crate) fn listing(code: Code, place: &str, fields: Vec<FieldError>) -> Self {
        let detail: Vec<String> = fields.iter().take(10).map(told).collect();
        let mut detail = format!("{place}{}", detail.join("; "));
        if fields.len() > 10 {
            detail.push_str(&format!("; and {} more", fields.len() - 10));
        }
        Self { fields, ..Self::new(code, detail) }
    }

    /// 409 until the PDF is there.
    pub(crate) fn not_ready(ticket: TicketId, retry_after_s: u32) -> Self {
        let detail = format!("the PDF of ticket {ticket} is not ready yet");
        Self { retry_after_s: Some(retry_after_s), ..Self::new(Code::NotReady, detail) }
    }

    /// 409 until all tickets of a batch are made.
    pub(crate) fn batch_not_ready(missing: u64, total: u64, retry_after_s: u32) -> Self {
        let detail = format!(
            "{missing} of {total} tickets are not made yet; ask again, or add ?partial=1 for the others"
        );
        let problem = Self::new(Code::NotReady, detail).with("missing", json!(missing));
        Self { retry_after_s: Some(retry_after_s), ..problem.with("total", json!(total)) }
    }

    /// 422: the template does not work.
    pub(crate) fn template(diagnostics: &[Diagnostic]) -> Self {
        let first = diagnostics.first().map(Diagnostic::to_string).unwrap_or_default();
        let mut detail = format!("the template does not work: {first}");
        if diagnostics.len() > 1 {
            detail.push_str(&format!("; and {} more", diagnostics.len() - 1));
        }
        Self::new(Code::InvalidTemplate, detail).with("diagnostics", json!(diagnostics))
    }

    /// Adds a member to the answer.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }

    /// The code and the reason.
    pub(crate) fn told(self) -> (Code, String) {
        (self.code, self.detail)
    }

    /// The reason alone.
    pub(crate) fn into_detail(self) -> String {
        self.detail
    }

    /// Whether the key is missing or not valid, or one of too many that are not.
    pub(crate) fn is_about_the_key(&self) -> bool {
        [401, 429].contains(&self.code.status())
    }

    /// Adds the seconds after which to try again.
    pub(crate) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// 409 when others keep changing the same record.
    pub(crate) fn busy(what: &str) -> Self {
        let detail = format!("{what} is being changed by others at the same time; try again");
        Self { retry_after_s: Some(1), ..Self::new(Code::Busy, detail) }
    }

    /// 503: a dependency is away.
    pub(crate) fn unavailable(what: &str) -> Self {
        Self {
            retry_after_s: Some(2),
            ..Self::new(Code::Unavailable, format!("{what} is not available right now"))
        }
    }

    /// 500: the cause goes to the log with an id; the client gets the id and nothing else.
    pub(crate) fn internal(cause: &dyn std::fmt::Display) -> Self {
        let id = ErrorId::generate();
        tracing::error!(error_id = %id, %cause, "request failed");
        let detail = format!("internal error; the server's log has it under {id}");
        Self::new(Code::Internal, detail)
    }
}

/// One mistake in words.
fn told(error: &FieldError) -> String {
    let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let field = if error.field.is_empty() { String::new() } else { format!("{} ", error.field) };
    format!("{line}{field}{}", error.message)
}

/// A detail is for people: what is longer repeats somebody's input.
fn cut(mut detail: String) -> String {
    const LONGEST: usize = 8 << 10;
    if detail.len() > LONGEST {
        detail.truncate(detail.floor_char_boundary(LONGEST));
        detail.push('…');
    }
    detail
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code.status(), self.detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let title = status.canonical_reason().unwrap_or("Error");
        let mut problem = wire::Problem::new(self.code, title, self.detail);
        (problem.errors, problem.more) = (self.fields, self.more);
        problem.request_id = RequestId::current().map(|id| id.to_string());
        if let Some(error) = self.error {
            problem.error = error;
        }
        // Texts, numbers and JSON values always serialise.
        let body = serde_json::to_string(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
