//! The verbs of accounts: make, read, list, change, delete. The check is in `provider.rs`.
//!
//! Credentials go in and never come out: the store keeps them encrypted, and only the channel reads them.

use serde_json::Value;
use stampede_model::campaign::{AccountId, Channel, Pacing};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{
    self as store, Account as Record, AccountFilter, AccountWritten, Slice, Versioned,
};
use stampede_wire::campaigns::Account;

use crate::{Campaigns, Error, Mistake, answers, now, values};

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
    /// Settings of its channel, laid over the present ones; `null` in one removes it, and `Value::Null` removes all.
    pub settings: Option<Value>,
    /// Credentials, laid over the present ones in the same way.
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
        let now = now();
        let mut mistakes = values::name(&new.name);
        mistakes.extend(values::pacing("pacing", &new.pacing));
        mistakes.extend(values::time_zone("timeZone", new.time_zone.as_deref()));
        mistakes.extend(values::country("country", new.country.as_deref()));
        let read = self.read_settings(new.channel, &new.settings, &new.credentials);
        let (settings, credentials) = match read {
            Ok(read) if mistakes.is_empty() => read,
            Ok(_) => return Ok(AccountMade::Invalid(mistakes)),
            Err(wrong) => {
                mistakes.extend(wrong);
                return Ok(AccountMade::Invalid(mistakes));
            }
        };
        let id = match new.id {
            Some(id) => id,
            None => CampaignId::generate().to_string().parse().map_err(Error::internal)?,
        };
        let account = Record {
            id,
            owner: new.owner,
            name: new.name,
            channel: new.channel,
            settings,
            pacing: new.pacing,
            country: new.country,
            time_zone: new.time_zone,
            blocked: None,
            first_sent_at: None,
            created_at: now,
            updated_at: now,
        };
        let store = &self.shared.store;
        Ok(match store.insert_account(&account, &credentials, MOST_ACCOUNTS).await? {
            AccountWritten::Done => AccountMade::Done(Box::new(answers::account(account))),
            AccountWritten::Taken => AccountMade::Taken,
            AccountWritten::TooMany => AccountMade::TooMany,
        })
    }

    /// An account.
    pub async fn account(&self, id: &AccountId) -> Result<Option<Account>, Error> {
        Ok(self.shared.store.account(id).await?.map(answers::account))
    }

    /// A part of the list of accounts, sorted by id.
    pub async fn accounts(
        &self,
        filter: &AccountFilter,
        slice: &Slice<AccountId>,
    ) -> Result<Vec<Account>, Error> {
        let found = self.shared.store.accounts(filter, slice).await?;
        Ok(found.into_iter().map(answers::account).collect())
    }

    /// Changes an account that still has the version `seen` (`None`: any).
    pub async fn change_account(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
        change: &AccountChange,
    ) -> Result<AccountChanged, Error> {
        let store = &self.shared.store;
        let Some(mut account) = store.account(id).await? else {
            return Ok(AccountChanged::NotFound);
        };
        let version = account.updated_at;
        if seen.is_some_and(|seen| seen != version) {
            return Ok(AccountChanged::Changed);
        }
        let mut mistakes = Vec::new();
        let mut credentials = None;
        if change.settings.is_some() || change.credentials.is_some() {
            let settings = serde_json::from_str(&account.settings).unwrap_or_default();
            let settings = laid_over(settings, change.settings.as_ref());
            let kept = self.secrets(id).await?;
            let has_secrets = kept.is_some() || change.credentials.is_some();
            let secrets = laid_over(kept.unwrap_or_default(), change.credentials.as_ref());
            match self.read_settings(account.channel, &settings, &secrets) {
                Ok((settings, secrets)) => {
                    account.settings = settings;
                    // Written even if they are the same: so the account is not blocked any more.
                    credentials = has_secrets.then_some(secrets);
                }
                Err(wrong) => mistakes.extend(wrong),
            }
        }
        if let Some(name) = &change.name {
            account.name.clone_from(name);
        }
        if let Some(pacing) = &change.pacing {
            account.pacing.clone_from(pacing);
        }
        if let Some(country) = &change.country {
            account.country.clone_from(country);
        }
        if let Some(zone) = &change.time_zone {
            account.time_zone.clone_from(zone);
        }
        mistakes.extend(values::name(&account.name));
        mistakes.extend(values::pacing("pacing", &account.pacing));
        mistakes.extend(values::time_zone("timeZone", account.time_zone.as_deref()));
        mistakes.extend(values::country("country", account.country.as_deref()));
        if !mistakes.is_empty() {
            return Ok(AccountChanged::Invalid(mistakes));
        }
        account.updated_at = now();
        let written =
            store.update_account_as_seen(&account, credentials.as_deref(), Some(version)).await?;
        Ok(match written {
            Versioned::Done(account) => AccountChanged::Done(Box::new(answers::account(account))),
            Versioned::ChangedMeanwhile => AccountChanged::Changed,
            Versioned::NotFound => AccountChanged::NotFound,
        })
    }

    /// The credentials of an account as they are stored; `None`: it never had any. Those that cannot be decrypted any more have to
    /// be entered again.
    async fn secrets(&self, id: &AccountId) -> Result<Option<Value>, Error> {
        match self.shared.store.account_credentials(id).await {
            Ok(kept) => Ok(kept.map(|kept| serde_json::from_slice(&kept).unwrap_or_default())),
            Err(store::Error::Unusable(reason)) => {
                tracing::warn!(account = %id, reason, "an account is changed as if its credentials were empty");
                Ok(Some(Value::Null))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes an account that still has the version `seen` (`None`: any).
    pub async fn delete_account(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
    ) -> Result<AccountDeleted, Error> {
        if id.is_console() {
            return Ok(AccountDeleted::Permanent);
        }
        Ok(match self.shared.store.delete_account_as_seen(id, seen).await? {
            store::AccountDeleted::Gone => AccountDeleted::Done,
            store::AccountDeleted::InUse => AccountDeleted::InUse,
            store::AccountDeleted::ChangedMeanwhile => AccountDeleted::Changed,
            store::AccountDeleted::NotFound => AccountDeleted::NotFound,
        })
    }
}

/// Fields of settings or credentials with a change over them. A field is replaced as a whole.
fn laid_over(present: Value, change: Option<&Value>) -> Value {
    match (present, change) {
        (present, None) => present,
        (Value::Object(mut fields), Some(Value::Object(change))) => {
            fields.extend(change.clone());
            fields.retain(|_, value| !value.is_null());
            Value::Object(fields)
        }
        (_, Some(change)) => change.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_laid_over_what_is_stored() {
        let present = json!({ "url": "https://a.example", "headers": { "a": "1", "b": "2" } });
        let with = |url: &str, headers: Value| json!({ "url": url, "headers": headers });
        for (change, wanted) in [
            (json!({}), present.clone()),
            (
                json!({ "url": "https://b.example" }),
                with("https://b.example", present["headers"].clone()),
            ),
            (json!({ "headers": { "c": "3" } }), with("https://a.example", json!({ "c": "3" }))),
            (json!({ "headers": null }), json!({ "url": "https://a.example" })),
            (json!(null), json!(null)),
            (json!("wrong"), json!("wrong")),
        ] {
            assert_eq!(laid_over(present.clone(), Some(&change)), wanted, "{change}");
        }
        assert_eq!(laid_over(present.clone(), None), present);
        assert_eq!(laid_over(Value::Null, Some(&present)), present, "there was nothing");
    }
}
