//! The ledger of a campaign: accounts that record what was acknowledged, and compare it with what is there at the end.
//!
//! Adding a kind of work? Implement [`Account`] (what is acknowledged, and what its effect is) and add a line to [`accounts`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::jobs::Jobs;
use super::messages::Messages;
use super::orders::Orders;
use super::redeems::Redeems;

/// All accounts that are kept.
pub(super) fn accounts(seed: u64) -> Vec<Arc<dyn Account>> {
    vec![
        Arc::new(Orders::new(seed)),
        Arc::new(Jobs::new(seed)),
        Arc::new(Redeems::new(seed)),
        Arc::new(Messages::new(seed)),
    ]
}

/// One kind of work: done while faults are played, compared with the product's state afterwards.
pub(super) trait Account: Send + Sync {
    /// Works until `stop`, then until every request that it has sent is answered.
    fn work(self: Arc<Self>, site: Site, stop: CancellationToken) -> BoxFuture<'static, ()>;

    /// `Err` as long as something that was acknowledged is still under way.
    fn settled<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Result<(), String>>;

    /// Compares what was acknowledged with what is there. All servers are well and nothing is under way.
    fn audit<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Audit>;
}

/// Where the product is, and how its users reach it.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// Addresses of the API on each node, behind proxies that break.
    pub(super) nodes: Vec<String>,
    /// The address of the API on the first node, without a proxy.
    pub(super) direct: String,
    /// Redis or the engine, behind a proxy that breaks.
    pub(super) broker: String,
    /// Redis or the engine, without a proxy.
    pub(super) direct_broker: String,
    /// Where PDFs are.
    pub(super) public: PathBuf,
    /// Where processes write down what they did: on a disk without faults.
    pub(super) books: PathBuf,
    /// Answers and failures of requests, counted.
    pub(super) answers: Arc<Tally>,
}

/// What a comparison has found.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// How many of what were acknowledged.
    pub(super) acknowledged: Vec<(&'static str, usize)>,
    /// Acknowledged, and not there.
    pub(super) lost: Vec<String>,
    /// There more than once, or never asked for.
    pub(super) doubled: Vec<String>,
    /// There, but not as it was acknowledged, or left over.
    pub(super) wrong: Vec<String>,
    /// Numbers worth knowing that are no mistakes.
    pub(super) notes: Vec<(&'static str, usize)>,
}

impl Audit {
    /// Whether nothing is lost, doubled or wrong.
    pub(super) fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.wrong.is_empty()
    }

    /// Adds the findings of another account.
    pub(super) fn add(&mut self, other: Self) {
        self.acknowledged.extend(other.acknowledged);
        self.lost.extend(other.lost);
        self.doubled.extend(other.doubled);
        self.wrong.extend(other.wrong);
        self.notes.extend(other.notes);
    }
}

/// Counts by name.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<String, usize>>);

impl Tally {
    pub(super) fn count(&self, name: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name.into()).or_default() += 1;
    }

    /// `name 3 · other 4`.
    pub(super) fn line(&self) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        parts.join(" · ")
    }
}
