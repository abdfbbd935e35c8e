//! Recipients and suppressed addresses, read and changed.

use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{RecipientFilter, SuppressionFilter};
use stampede_wire::campaigns::{RecipientLog, RecipientPage, SuppressionPage};

use crate::{Campaigns, Error, Mistake};

/// Most addresses of one request.
pub const MOST_SUPPRESSIONS: usize = 10_000;

/// Addresses that are to get nothing any more.
#[derive(Debug, Clone)]
pub struct NewSuppressions {
    /// The user whose accounts it holds for.
    pub owner: String,
    /// The account that it holds for; `None`: all accounts of the owner.
    pub account: Option<AccountId>,
    /// The addresses as people write them; they are normalised.
    pub addresses: Vec<String>,
    /// Why.
    pub reason: SuppressionReason,
    /// The user who does it.
    pub by: String,
    /// The country of telephone numbers without a country's code; `None`: the account's.
    pub country: Option<String>,
}

/// The result of adding suppressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suppressed {
    /// They are added; so many are new.
    Done(u64),
    /// There is no such account, or the owner may not use it.
    NoSuchAccount,
    /// Addresses are none. Nothing was added.
    Invalid(Vec<Mistake>),
}

impl Campaigns {
    /// A part of the list of recipients, by position after `after`.
    pub async fn recipients(
        &self,
        id: CampaignId,
        filter: &RecipientFilter,
        after: Option<u64>,
        limit: u32,
    ) -> Result<RecipientPage, Error> {
        todo!()
    }

    /// A recipient of a campaign with its attempts.
    pub async fn recipient(
        &self,
        campaign: CampaignId,
        id: RecipientId,
    ) -> Result<Option<RecipientLog>, Error> {
        todo!()
    }

    /// A part of the list of suppressed addresses; `after` is the `next` of the part before. `None`: `after` is none.
    pub async fn suppressions(
        &self,
        filter: &SuppressionFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Option<SuppressionPage>, Error> {
        todo!()
    }

    /// Adds suppressions. Messages that are in flight may still arrive.
    pub async fn suppress(&self, new: NewSuppressions) -> Result<Suppressed, Error> {
        todo!()
    }

    /// Removes a suppression; `false` if there is none.
    pub async fn unsuppress(
        &self,
        owner: &str,
        account: Option<&AccountId>,
        address: &str,
    ) -> Result<bool, Error> {
        todo!()
    }
}
