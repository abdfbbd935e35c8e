//! The handlers; `router.rs` has the list of routes.

pub(crate) mod api_keys;
pub(crate) mod batch_files;
pub(crate) mod batches;
pub(crate) mod checkin;
pub(crate) mod description;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod nodes;
pub(crate) mod orders;
pub(crate) mod pdf;
pub(crate) mod queues;
pub(crate) mod suspects;
pub(crate) mod templates;
pub(crate) mod ticket_keys;
pub(crate) mod tickets;
pub(crate) mod verify;

use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Query};

/// Records on a page of a list, unless the request says otherwise.
const PAGE: u32 = 100;
/// Most records on a page of a list.
const LARGEST_PAGE: u32 = 1_000;

/// Attempts of a change while others change the same record.
const CHANGE_TRIES: u32 = 10;

/// `?limit=…&after=…` of a listing.
#[derive(Debug)]
pub(crate) struct Paging {
    limit: Option<u32>,
    after: Option<String>,
}

impl FromQuery for Paging {
    fn from_query(query: &mut Query) -> Self {
        let limit = "Records on the page (100); more than 1,000 means 1,000.";
        let after = "`next` of the page before.";
        Self {
            limit: query.about(limit).whole("limit", 1..=u32::MAX),
            after: query.about(after).text("after"),
        }
    }
}

/// 400 for a parameter of the query.
fn invalid_param(name: &str) -> Problem {
    Problem::new(Code::InvalidQuery, format!("{name} in the query is not valid"))
}

impl Paging {
    fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE).min(LARGEST_PAGE)
    }

    /// The id after which the page begins.
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
