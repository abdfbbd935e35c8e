//! Recipients and suppressed addresses, read and changed.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{RecipientFilter, Suppression, SuppressionFilter};
use stampede_wire::campaigns::{RecipientLog, RecipientPage, SuppressionPage};

use crate::{Campaigns, Error, Mistake, answers, now, suppressible};

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
        let found = self.shared.store.recipients(id, filter, after, limit).await?;
        let is_full = found.len() >= limit as usize;
        let next = found.last().filter(|_| is_full).map(|recipient| recipient.position);
        let recipients = found.into_iter().map(answers::recipient).collect();
        Ok(RecipientPage { recipients, next })
    }

    /// A recipient of a campaign with its attempts.
    pub async fn recipient(
        &self,
        campaign: CampaignId,
        id: RecipientId,
    ) -> Result<Option<RecipientLog>, Error> {
        let found = self.shared.store.recipient(id).await?;
        let Some(recipient) = found.filter(|found| found.campaign == campaign) else {
            return Ok(None);
        };
        let attempts = self.shared.store.recipient_attempts(id).await?;
        let log = attempts.into_iter().map(answers::attempt).collect();
        Ok(Some(RecipientLog { recipient: answers::recipient(recipient), log }))
    }

    /// A part of the list of suppressed addresses; `after` is the `next` of the part before. `None`: `after` is none.
    pub async fn suppressions(
        &self,
        filter: &SuppressionFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Option<SuppressionPage>, Error> {
        let after = match after.map(read_cursor) {
            Some(None) => return Ok(None),
            after => after.flatten(),
        };
        let found = self.shared.store.suppressions(filter, after.as_ref(), limit).await?;
        let next = found.last().filter(|_| found.len() >= limit as usize).map(cursor);
        let suppressions = found.into_iter().map(answers::suppression).collect();
        Ok(Some(SuppressionPage { suppressions, next }))
    }

    /// Adds suppressions. Messages that are in flight may still arrive.
    pub async fn suppress(&self, new: NewSuppressions) -> Result<Suppressed, Error> {
        let mut country = new.country;
        let mut kind = None;
        if let Some(id) = &new.account {
            let Some(account) = self.usable_account(id, &new.owner).await? else {
                return Ok(Suppressed::NoSuchAccount);
            };
            kind = Some(account.channel.address_kind());
            country = country.or(account.country);
        }
        let (mut suppressions, mut mistakes) = (Vec::new(), Vec::new());
        for (place, written) in new.addresses.iter().enumerate() {
            match suppressible::read(kind, country.as_deref(), written) {
                Ok(address) => suppressions.push(Suppression {
                    owner: new.owner.clone(),
                    account: new.account.clone(),
                    address,
                    reason: new.reason,
                    since: now(),
                    by: new.by.clone(),
                }),
                Err(wrong) => mistakes.push(Mistake::new(format!("addresses[{place}]"), wrong)),
            }
        }
        if !mistakes.is_empty() {
            return Ok(Suppressed::Invalid(mistakes));
        }
        let added = self.shared.store.add_suppressions(&suppressions).await?;
        self.shared.metrics.suppressed(new.reason.as_str(), added);
        Ok(Suppressed::Done(added))
    }

    /// Removes a suppression; `false` if there is none. The address is as the list shows it.
    pub async fn unsuppress(
        &self,
        owner: &str,
        account: Option<&AccountId>,
        address: &str,
    ) -> Result<bool, Error> {
        Ok(self.shared.store.remove_suppression(owner, account, address).await?)
    }
}

/// The place of a suppression in the list.
fn cursor(last: &Suppression) -> String {
    let place = (&last.owner, &last.account, &last.address);
    BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&place).unwrap_or_default())
}

fn read_cursor(text: &str) -> Option<Suppression> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let (owner, account, address) = serde_json::from_slice(&bytes).ok()?;
    let (reason, since, by) = (SuppressionReason::Manual, now(), String::new());
    Some(Suppression { owner, account, address, reason, since, by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_to_the_place_after_the_last_record() {
        for account in [None, Some(AccountId::console())] {
            let (owner, address) = ("ann".to_owned(), "bob@example.com".to_owned());
            let (reason, since, by) = (SuppressionReason::Stop, now(), String::new());
            let last = Suppression { owner, account, address, reason, since, by };
            let read = read_cursor(&cursor(&last)).unwrap();
            assert_eq!(
                (read.owner, read.account, read.address),
                (last.owner, last.account, last.address)
            );
        }
        for wrong in ["", "%", "e30", "bnVsbA"] {
            assert!(read_cursor(wrong).is_none(), "{wrong:?}");
        }
    }
}
