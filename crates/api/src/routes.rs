//! What each route does; see `router.rs` for the list.

pub(crate) mod batches;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod orders;
pub(crate) mod pdf;
pub(crate) mod tickets;

use serde::Deserialize;

/// How many records a listing returns unless told otherwise, and at most.
const PAGE: (u32, u32) = (100, 1_000);

/// `?limit=…&after=…` of a listing.
#[derive(Debug, Deserialize)]
pub(crate) struct Paging {
    limit: Option<u32>,
    after: Option<String>,
}

impl Paging {
    fn limit(&self) -> u32 {
        self.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1)
    }

    /// The id to go on after; what is not an id is ignored, as an unknown one would be.
    fn after<T: std::str::FromStr>(&self) -> Option<T> {
        self.after.as_deref().and_then(|text| text.parse().ok())
    }

    /// The `after` of the next page; `None` on the last.
    fn next<T, I>(&self, page: &[T], id: impl Fn(&T) -> I) -> Option<I> {
        let full = page.len() as u32 == self.limit();
        page.last().filter(|_| full).map(id)
    }
}
