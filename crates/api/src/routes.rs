//! What each route does; see `router.rs` for the list.

pub(crate) mod batch_files;
pub(crate) mod batches;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod nodes;
pub(crate) mod orders;
pub(crate) mod pdf;
mod preflight;
pub(crate) mod queues;
pub(crate) mod templates;
pub(crate) mod tickets;
pub(crate) mod verify;

use http::StatusCode;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::query::{FromQuery, Query};

/// How many records a listing returns unless told otherwise, and at most.
const PAGE: (u32, u32) = (100, 1_000);

/// How often a change is tried when others change the same record at the same time.
const CHANGE_TRIES: u32 = 10;

/// `?limit=…&after=…` of a listing.
#[derive(Debug)]
pub(crate) struct Paging {
    limit: Option<u32>,
    after: Option<String>,
}

impl FromQuery for Paging {
    fn from_query(query: &mut Query) -> Self {
        // More than fits on a page is as much as fits.
        Self { limit: query.whole("limit", 1..=u32::MAX), after: query.text("after") }
    }
}

/// 400 for a parameter of the query.
fn invalid_param(name: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("{name} in the query is not valid"))
}

/// An object with further entries.
fn extended(mut body: Value, more: Map<String, Value>) -> Value {
    if let Some(body) = body.as_object_mut() {
        body.extend(more);
    }
    body
}

impl Paging {
    fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE.0).min(PAGE.1)
    }

    /// The id to go on after.
    fn after<T: std::str::FromStr>(&self) -> Result<Option<T>, Problem> {
        let parse = |text: &String| text.parse().map_err(|_| invalid_param("after"));
        self.after.as_ref().map(parse).transpose()
    }

    /// The `after` of the next page; `None` on the last.
    fn next<T, I>(&self, page: &[T], id: impl Fn(&T) -> I) -> Option<I> {
        let full = page.len() as u32 == self.limit();
        page.last().filter(|_| full).map(id)
    }
}
