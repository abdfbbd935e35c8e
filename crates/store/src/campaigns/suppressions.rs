//! Addresses that get nothing any more.

use async_trait::async_trait;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, SuppressionReason};

use crate::Result;

/// An address that gets nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The user whose accounts it holds for; for an account that belongs to nobody, the user whose campaigns it holds for, or
    /// [`Suppression::EVERYBODY`].
    pub owner: String,
    /// The account that it holds for; `None`: all accounts of the owner.
    pub account: Option<AccountId>,
    /// The address, normalised; it is kept as addresses are compared ([`stampede_model::campaign::address_key`]).
    pub address: String,
    /// Why.
    pub reason: SuppressionReason,
    /// Since when.
    pub since: Timestamp,
    /// By whom: a user, or the name of a channel's message.
    pub by: String,
}

impl Suppression {
    /// The owner of a suppression that holds for all who use the account. No user has this name.
    pub const EVERYBODY: &str = "";
}

/// What people told the sender of an account: who wants no more messages, and who wants messages again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// The account.
    pub account: AccountId,
    /// The provider's number of the update that tells it; `None`: the provider numbers nothing.
    pub update: Option<i64>,
    /// Addresses that want no more messages.
    pub stops: Vec<Suppression>,
    /// Addresses that want messages again.
    pub starts: Vec<String>,
}

/// Which suppressions to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct SuppressionFilter {
    /// Only those of this user.
    pub owner: Option<String>,
    /// Only those of this account.
    pub account: Option<AccountId>,
    /// Only this address.
    pub address: Option<String>,
    /// Only with this reason.
    pub reason: Option<SuppressionReason>,
}

/// The suppressions. They outlive campaigns and accounts. All changes are synced.
#[async_trait]
pub trait Suppressions: Send + Sync {
    /// Adds suppressions; one that is there already stays as it is. Returns how many are new. Pending and queued recipients
    /// with the address are found when they are claimed.
    async fn add_suppressions(&self, suppressions: &[Suppression]) -> Result<u64>;

    /// A part of the list, sorted by owner, account and address, after one of them.
    async fn suppressions(
        &self,
        filter: &SuppressionFilter,
        after: Option<&Suppression>,
        limit: u32,
    ) -> Result<Vec<Suppression>>;

    /// Adds the suppressions of `stops`, and lifts those of `starts`: suppressions of the account because of `stop` or `blocked`,
    /// whosever they are. Returns how many are new. An update that was applied in the two days before `now` is not applied
    /// again: updates may come in any order, and their numbers may begin anew after a week without any.
    async fn apply_wishes(&self, wishes: &Wishes, now: Timestamp) -> Result<u64>;

    /// Which of these addresses are suppressed for an account of a user, everybody's suppressions included; as they are compared
    /// ([`stampede_model::campaign::address_key`]).
    async fn suppressed_addresses(
        &self,
        owner: &str,
        account: &AccountId,
        addresses: &[String],
    ) -> Result<Vec<String>>;

    /// Removes a suppression; `false` if there is none.
    async fn remove_suppression(
        &self,
        owner: &str,
        account: Option<&AccountId>,
        address: &str,
    ) -> Result<bool>;
}
