//! `/api/audit`: the audit log, as JSON or CSV.

use std::convert::Infallible;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE};
use http::request::Parts;
use schemars::json_schema;
use stampede_audit::{AuditFilter, as_csv};
use stampede_model::AuditId;
use stampede_store::Sorted;
use stampede_wire::audit::{Entry, EntryPage};

use crate::app::App;
use crate::auth::Overseer;
use crate::describe::{Either, Input, Kind, Operation, Sent};
use crate::input::Id;
use crate::page::Part;
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};

/// Which entries to list, and how.
pub(crate) struct Listing {
    filter: AuditFilter,
    part: Part,
    csv: bool,
}

impl FromQuery for Listing {
    fn from_query(query: &mut Query) -> Self {
        let filter = AuditFilter {
            user: query.about("The user who changed something.").text("user"),
            operation: query.about("The operation, such as `updateEvent`.").text("operation"),
            record: query.about("The id or name of the record.").text("record"),
            event: query
                .about("The event that the record belongs to.")
                .parsed("event", "must be the id of an event"),
        };
        let part = Part::from_query(query);
        let format = query
            .about("The form of the answer; `json` if absent. `Accept: text/csv` does the same.")
            .word("format", &["json", "csv"], "must be json or csv");
        Self { filter, part, csv: format == Some("csv") }
    }
}

/// Whether the client asks for CSV by `Accept`.
pub(crate) struct WantsCsv(bool);

impl<S: Sync> FromRequestParts<S> for WantsCsv {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let accept = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let first = accept.and_then(|accept| accept.split([',', ';']).next());
        Ok(Self(first.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/csv"))))
    }
}

impl Input for WantsCsv {
    fn describe(_: &mut Operation<'_>) {}
}

/// Entries as CSV.
pub(crate) struct Csv;

impl Kind for Csv {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        operation.answers(200, "The entries.", Some(("text/csv", schema)));
        operation
            .answers_with_header("X-Next", "Of CSV: `after` of the next page; absent on the last.");
    }
}

/// Entries, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Params(listing): Params<Listing>,
    WantsCsv(wants_csv): WantsCsv,
) -> Result<Either<Json<EntryPage>, Sent<Csv>>, Problem> {
    let Listing { filter, part, csv } = listing;
    let entries = app.audit.entries(&filter, &part.slice(Sorted::NewestFirst)?).await?;
    let next = part.page.next(&entries, |entry| entry.id);
    Ok(match csv || wants_csv {
        true => Either::Other(Sent::new(as_file(&entries, next))),
        false => Either::One(Json(EntryPage { entries, next })),
    })
}

/// A page as a file; `X-Next` is the `after` of the next one.
fn as_file(entries: &[Entry], next: Option<AuditId>) -> Response {
    let kind = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"audit.csv\""),
    ];
    let next = next.map(|next| [("x-next", next.to_string())]);
    match next {
        Some(next) => (kind, next, as_csv(entries)).into_response(),
        None => (kind, as_csv(entries)).into_response(),
    }
}

/// One entry.
pub(crate) async fn read(
    State(app): State<App>,
    _: Overseer,
    Id(id): Id<AuditId>,
) -> Result<Json<Entry>, Problem> {
    let entry = app.audit.entry(id).await?;
    entry.map(Json).ok_or_else(|| Problem::not_found("Entry", &id))
}
