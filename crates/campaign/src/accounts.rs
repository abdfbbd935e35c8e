//! The verbs of accounts: make, read, list, change, delete, check.
//!
//! Credentials go in and never come out: the store keeps them encrypted, and only the channel reads them.

use serde_json::Value;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel, Pacing};
use stampede_store::{AccountFilter, Slice};
use stampede_wire::campaigns::{Account, AccountCheck};

use crate::{Campaigns, Error, Mistake};

/// Most accounts of one user.
pub const MOST_ACCOUNTS: u32 = 100;

/// An account to be made.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// Its id; `None`: one is made.
    pub id: Option<AccountId>,
    /// The user whose account it is; `None`: everybody may use it.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: String,
    /// Its channel.
    pub channel: Channel,
    /// The settings of its channel: an object.
    pub settings: Value,
    /// The credentials: an object; `Value::Null`: none.
    pub credentials: Value,
    /// How fast it sends.
    pub pacing: Pacing,
    /// The country of telephone numbers without a country's code.
    pub country: Option<String>,
    /// The time zone of its days and quiet hours.
    pub time_zone: Option<String>,
}

/// The result of making an account.
#[derive(Debug, Clone)]
pub enum AccountMade {
    /// It is made.
    Done(Box<Account>),
    /// Another account has that id.
    Taken,
    /// Its owner has [`MOST_ACCOUNTS`] already.
    TooMany,
    /// Values cannot be used.
    Invalid(Vec<Mistake>),
}

/// Fields of an account to be changed; `None`: stays as it is.
#[derive(Debug, Clone, Default)]
pub struct AccountChange {
    /// Its name, for people.
    pub name: Option<String>,
    /// The settings of its channel, all of them.
    pub settings: Option<Value>,
    /// The credentials, all of them.
    pub credentials: Option<Value>,
    /// How fast it sends. Holds at once, for running campaigns, too.
    pub pacing: Option<Pacing>,
    /// The country of telephone numbers without a country's code.
    pub country: Option<Option<String>>,
    /// The time zone of its days and quiet hours.
    pub time_zone: Option<Option<String>>,
}

/// The result of changing an account.
#[derive(Debug, Clone)]
pub enum AccountChanged {
    /// It is changed. It is not blocked any more if its settings or credentials were given.
    Done(Box<Account>),
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// There is no such account.
    NotFound,
    /// Values cannot be used.
    Invalid(Vec<Mistake>),
}

/// The result of deleting an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountDeleted {
    /// It is deleted. Its suppressions stay.
    Done,
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// There is no such account.
    NotFound,
    /// A campaign that is scheduled, running or paused uses it.
    InUse,
    /// The account `console` stays.
    Permanent,
}

impl Campaigns {
    /// Makes an account. The credentials are checked for their form only: see [`Campaigns::check_account`].
    pub async fn create_account(&self, new: NewAccount) -> Result<AccountMade, Error> {
        todo!()
    }

    /// An account.
    pub async fn account(&self, id: &AccountId) -> Result<Option<Account>, Error> {
        todo!()
    }

    /// A part of the list of accounts, sorted by id.
    pub async fn accounts(
        &self,
        filter: &AccountFilter,
        slice: &Slice<AccountId>,
    ) -> Result<Vec<Account>, Error> {
        todo!()
    }

    /// Changes an account that still has the version `seen` (`None`: any).
    pub async fn change_account(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
        change: &AccountChange,
    ) -> Result<AccountChanged, Error> {
        todo!()
    }

    /// Deletes an account that still has the version `seen` (`None`: any).
    pub async fn delete_account(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
    ) -> Result<AccountDeleted, Error> {
        todo!()
    }

    /// Asks the provider whether it accepts the account; no message is sent. `None`: there is no such account. An account that
    /// was blocked and is accepted may send again; its campaigns stay paused until people resume them.
    pub async fn check_account(&self, id: &AccountId) -> Result<Option<AccountCheck>, Error> {
        todo!()
    }
}
