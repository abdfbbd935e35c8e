//! The handlers; `router.rs` has the list of routes.

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod batch_files;
pub(crate) mod batches;
pub(crate) mod campaigns;
pub(crate) mod checkin;
pub(crate) mod codes;
pub(crate) mod description;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod links;
pub(crate) mod live;
pub(crate) mod metrics;
pub(crate) mod nodes;
pub(crate) mod orders;
pub(crate) mod pdf;
pub(crate) mod queues;
pub(crate) mod stickers;
pub(crate) mod suspects;
pub(crate) mod templates;
pub(crate) mod ticket_keys;
pub(crate) mod tickets;
pub(crate) mod uploads;
pub(crate) mod verify;
pub(crate) mod webhooks;

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
pub(crate) fn invalid_param(name: &str) -> Problem {
    Problem::new(Code::InvalidQuery, format!("{name} in the query is not valid"))
}

impl Paging {
    pub(crate) fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE).min(LARGEST_PAGE)
    }

    /// The parameters by themselves.
    #[cfg(test)]
    pub(crate) fn of(limit: Option<u32>, after: Option<&str>) -> Self {
        Self { limit, after: after.map(str::to_owned) }
    }

    /// The limit that the request names.
    pub(crate) fn chosen_limit(&self) -> Option<usize> {
        self.limit.map(|limit| limit.min(LARGEST_PAGE) as usize)
    }

    /// The cursor that the request names.
    pub(crate) fn chosen_after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The id after which the page begins.
    pub(crate) fn after<T: std::str::FromStr>(&self) -> Result<Option<T>, Problem> {
        let parse = |text: &String| text.parse().map_err(|_| invalid_param("after"));
        self.after.as_ref().map(parse).transpose()
    }

    /// The `after` of the next page; `None` on the last.
    pub(crate) fn next<T, I>(&self, page: &[T], id: impl Fn(&T) -> I) -> Option<I> {
        let full = page.len() as u32 == self.limit();
        page.last().filter(|_| full).map(id)
    }
}
