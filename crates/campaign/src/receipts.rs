//! Receipts: requests of providers that tell what became of messages, verified and applied.

use stampede_channel::Incoming;
use stampede_model::campaign::AccountId;

use crate::{Campaigns, Error};

/// The result of a request of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It is genuine, and everything in it is committed.
    Done {
        /// Recipients that changed.
        applied: u64,
        /// Addresses that get nothing any more.
        suppressed: u64,
        /// The words of the receipts: `sent`, `delivered`, `read`, `failed`.
        statuses: Vec<&'static str>,
    },
    /// It is not the provider's, for this reason.
    Forged(String),
    /// It is genuine but cannot be read.
    Unreadable(String),
    /// There is no such account.
    NotFound,
}

impl Campaigns {
    /// Applies the receipts of one request. A request that comes again, or in another order, changes nothing twice.
    pub async fn receive(&self, account: &AccountId, request: &Incoming) -> Result<Received, Error> {
        todo!()
    }

    /// Answers the question with which WhatsApp proves the address of a hook; `None`: the question is not the provider's.
    pub async fn answer_challenge(
        &self,
        account: &AccountId,
        query: &str,
    ) -> Result<Option<String>, Error> {
        todo!()
    }
}
