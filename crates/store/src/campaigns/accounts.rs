//! Accounts: who sends.

use async_trait::async_trait;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel, Pacing};

use crate::vault::Vault;
use crate::{Result, Slice, Store, Versioned};

/// An account of a channel, without its credentials.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Names the account.
    pub id: AccountId,
    /// The user whose account it is; `None`: everybody may use it.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: String,
    /// Its channel.
    pub channel: Channel,
    /// The settings of its channel, as JSON without secrets.
    pub settings: String,
    /// How fast it sends.
    pub pacing: Pacing,
    /// The country of telephone numbers without a country's code, such as `DE`.
    pub country: Option<String>,
    /// The time zone of its days and quiet hours.
    pub time_zone: Option<String>,
    /// Why it may not send: its provider said that the account is wrong.
    pub blocked: Option<String>,
    /// When its first message was sent: warm-up counts its days from then.
    pub first_sent_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its version: when a person last changed it.
    pub updated_at: Timestamp,
}

/// Which accounts to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct AccountFilter {
    /// Only accounts that this user may use: the user's own, and everybody's.
    pub usable_by: Option<String>,
    /// Only accounts of this channel.
    pub channel: Option<Channel>,
}

/// The result of making an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountWritten {
    /// It is written.
    Done,
    /// Another account has that id.
    Taken,
    /// Its owner has as many as there may be.
    TooMany,
}

/// The result of deleting an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountDeleted {
    /// The account is deleted.
    Gone,
    /// The account stays: a campaign that is scheduled, running or paused uses it, or it is the console.
    InUse,
    /// The account stays, because it has another version than the one that was seen.
    ChangedMeanwhile,
    /// There is no such account.
    NotFound,
}

/// Why an account is blocked whose credentials cannot be decrypted any more.
pub(crate) const CREDENTIALS_LOST: &str = "the secret that its credentials were encrypted with was replaced; \
     enter the credentials again";

/// The accounts. All changes are synced. The account `console` exists in every database, belongs to nobody and stays.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Writes a new account with its credentials (empty: none), unless its owner has `most` already. The console does not count.
    async fn insert_account(
        &self,
        account: &Account,
        credentials: &[u8],
        most: u32,
        vault: &Vault,
    ) -> Result<AccountWritten>;

    /// An account.
    async fn account(&self, id: &AccountId) -> Result<Option<Account>>;

    /// An account, also if it was deleted: channel and country of a deleted account are those that it had.
    async fn account_even_deleted(&self, id: &AccountId) -> Result<Option<Account>>;

    /// A part of the list of accounts, sorted by id; `from` and `to` are about when they were made.
    async fn accounts(
        &self,
        filter: &AccountFilter,
        slice: &Slice<AccountId>,
    ) -> Result<Vec<Account>>;

    /// Writes everything of an account but owner, channel, `blocked` and `first_sent_at`, if its version is still `seen` (`None`: any).
    /// Credentials that are `None` stay. An account with new settings or credentials is not blocked any more; one whose
    /// credentials are lost needs new ones. Returns the account as it is now.
    async fn update_account_as_seen(
        &self,
        account: &Account,
        credentials: Option<&[u8]>,
        seen: Option<Timestamp>,
        vault: &Vault,
    ) -> Result<Versioned<Account>>;

    /// Deletes an account that no campaign uses which is scheduled, running or paused. Its id stays taken for all but its owner:
    /// receipts and suppressions name it; and for accounts of other channels, as long as there is a campaign that names it.
    async fn delete_account_as_seen(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
    ) -> Result<AccountDeleted>;

    /// The encrypted credentials of an account; `None`: there is no such account, or it has none.
    async fn sealed_credentials(&self, id: &AccountId) -> Result<Option<String>>;

    /// Blocks all accounts with credentials, which can no longer be decrypted, and pauses their campaigns; returns how many
    /// accounts. Only new credentials lift this.
    async fn lose_credentials(&self, now: Timestamp) -> Result<u64>;
}

impl Store {
    /// Writes a new account: see [`Accounts::insert_account`].
    pub async fn insert_account(
        &self,
        account: &Account,
        credentials: &[u8],
        most: u32,
    ) -> Result<AccountWritten> {
        Accounts::insert_account(&**self, account, credentials, most, self.vault()?).await
    }

    /// Changes an account: see [`Accounts::update_account_as_seen`].
    pub async fn update_account_as_seen(
        &self,
        account: &Account,
        credentials: Option<&[u8]>,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Account>> {
        Accounts::update_account_as_seen(&**self, account, credentials, seen, self.vault()?).await
    }

    /// The credentials of an account; `None`: there is no such account, or it has none.
    pub async fn account_credentials(&self, id: &AccountId) -> Result<Option<Vec<u8>>> {
        let Some(sealed) = self.sealed_credentials(id).await? else { return Ok(None) };
        Ok(Some(self.vault()?.open_account_credentials(id, &sealed)?))
    }
}
