//! The verbs of campaigns: read, list, change, delete. They are made in `create.rs`.

use std::collections::{BTreeSet, HashMap};

use stampede_model::campaign::{AccountId, AddressKind, AutoPause, CampaignState, Content, Pacing};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{Account, Campaign, CampaignFilter, Slice, Versioned};
use stampede_wire::campaigns::Contract;

use crate::create::MOST_ATTEMPTS;
use crate::{Campaigns, Error, Mistake, answers, content, now, values};

/// Fields of a campaign to be changed; `None`: stays as it is.
#[derive(Debug, Clone, Default)]
pub struct CampaignEdit {
    /// Its name, for people.
    pub name: Option<String>,
    /// The account that sends. Not once it has started, and not an account with addresses of another kind if it has recipients.
    pub account: Option<AccountId>,
    /// What is sent. Not while it is running; recipients that were sent to keep what they got.
    pub content: Option<Content>,
    /// How fast it sends. Holds at once.
    pub pacing: Option<Pacing>,
    /// When it pauses by itself.
    pub auto_pause: Option<AutoPause>,
    /// Most attempts for one recipient.
    pub max_attempts: Option<u32>,
    /// The time zone of quiet hours, for recipients without one. Holds at once.
    pub time_zone: Option<Option<String>>,
    /// The country of telephone numbers without a country's code, for later imports.
    pub country: Option<Option<String>>,
    /// After this moment nothing more is sent.
    pub end_at: Option<Option<Timestamp>>,
}

/// The result of changing a campaign.
#[derive(Debug, Clone)]
pub enum Edited {
    /// It is changed.
    Done(Box<Contract>),
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// There is no such campaign.
    NotFound,
    /// The field cannot be changed in this state.
    WrongState(Box<Contract>, &'static str),
    /// It has started: its account cannot be changed any more, because receipts and messages in flight belong to the account.
    HasStarted(Box<Contract>),
    /// Its account cannot be changed while recipients are imported.
    Importing,
    /// There is no such account, or the owner may not use it.
    NoSuchAccount,
    /// Values cannot be used.
    Invalid(Vec<Mistake>),
}

/// The result of deleting a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// It is deleted. Its suppressions stay.
    Done,
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// There is no such campaign.
    NotFound,
}

impl Campaigns {
    /// A campaign.
    pub async fn campaign(&self, id: CampaignId) -> Result<Option<Contract>, Error> {
        match self.shared.store.campaign(id).await? {
            Some(campaign) => Ok(Some(self.contract(campaign).await?)),
            None => Ok(None),
        }
    }

    /// A part of the list of campaigns.
    pub async fn list(
        &self,
        filter: &CampaignFilter,
        slice: &Slice<CampaignId>,
    ) -> Result<Vec<Contract>, Error> {
        let found = self.shared.store.campaigns(filter, slice).await?;
        let mut accounts: HashMap<AccountId, Option<Account>> = HashMap::new();
        let mut contracts = Vec::with_capacity(found.len());
        for campaign in found {
            if !accounts.contains_key(&campaign.account) {
                let account = self.shared.store.account(&campaign.account).await?;
                accounts.insert(campaign.account.clone(), account);
            }
            let account = accounts.get(&campaign.account).and_then(Option::as_ref);
            let speed = self.speed(&campaign, account).await?;
            contracts.push(answers::contract(campaign, account, speed));
        }
        Ok(contracts)
    }

    /// Changes a campaign that still has the version `seen` (`None`: any).
    pub async fn edit(
        &self,
        id: CampaignId,
        seen: Option<Timestamp>,
        edit: &CampaignEdit,
    ) -> Result<Edited, Error> {
        let store = &self.shared.store;
        let Some(mut campaign) = store.campaign(id).await? else { return Ok(Edited::NotFound) };
        // What the rules below were decided on must be what is written over.
        let version = campaign.updated_at;
        if seen.is_some_and(|seen| seen != version) {
            return Ok(Edited::Changed);
        }
        let is_ended =
            matches!(campaign.state, CampaignState::Completed | CampaignState::Cancelled);
        let is_running = campaign.state == CampaignState::Running;
        let fixed = [("accountId", edit.account.is_some()), ("content", edit.content.is_some())];
        for (field, is_given) in fixed {
            if is_given && (is_running || is_ended) {
                return Ok(Edited::WrongState(Box::new(self.contract(campaign).await?), field));
            }
        }
        let former = campaign.account.clone();
        let is_other = edit.account.as_ref().is_some_and(|id| *id != former);
        if is_other && campaign.started_at.is_some() {
            return Ok(Edited::HasStarted(Box::new(self.contract(campaign).await?)));
        }
        if is_other && campaign.importing.is_some() {
            return Ok(Edited::Importing);
        }
        let former_country = campaign.country.clone();
        edit.clone().apply(&mut campaign);
        let Some(account) = self.usable_account(&campaign.account, &campaign.owner).await? else {
            return Ok(Edited::NoSuchAccount);
        };
        // A template that was there before is told of when the campaign starts, not when its name is changed.
        let known = match edit.content.is_some() {
            true => self.known_fields(&campaign).await?,
            false => None,
        };
        let mut mistakes = mistakes(&campaign, Some(&account), known.as_ref());
        if is_other && campaign.counts.total() > 0 {
            let former = store.account_even_deleted(&former).await?;
            mistakes.extend(other_addresses(
                former.as_ref().map(|account| (account, former_country.as_deref())),
                (&account, campaign.country.as_deref()),
            ));
        }
        if !mistakes.is_empty() {
            return Ok(Edited::Invalid(mistakes));
        }
        campaign.updated_at = now();
        let written = store.update_campaign_as_seen(&campaign, Some(version)).await?;
        self.shared.snapshots.forget(id);
        Ok(match written {
            // An import has begun meanwhile.
            Versioned::Done(written) if written.account != campaign.account => Edited::Changed,
            Versioned::Done(campaign) => {
                if campaign.state == CampaignState::Running {
                    self.feed_soon(id, None).await;
                }
                Edited::Done(Box::new(self.contract(campaign).await?))
            }
            Versioned::ChangedMeanwhile => Edited::Changed,
            Versioned::NotFound => Edited::NotFound,
        })
    }

    /// Deletes a campaign that still has the version `seen` (`None`: any). A running one is paused first. Suppressions stay.
    pub async fn delete(&self, id: CampaignId, seen: Option<Timestamp>) -> Result<Deleted, Error> {
        let store = &self.shared.store;
        let Some(mut campaign) = store.campaign(id).await? else { return Ok(Deleted::NotFound) };
        if seen.is_some_and(|seen| seen != campaign.updated_at) {
            return Ok(Deleted::Changed);
        }
        if campaign.state == CampaignState::Running {
            self.pause(id).await?;
            let Some(paused) = store.campaign(id).await? else { return Ok(Deleted::NotFound) };
            campaign = paused;
        }
        let deleted = store.delete_campaign_as_seen(id, Some(campaign.updated_at)).await?;
        self.shared.snapshots.forget(id);
        Ok(match deleted {
            Versioned::Done(()) => {
                tracing::info!(campaign = %id, name = campaign.name, owner = campaign.owner, "campaign deleted");
                Deleted::Done
            }
            Versioned::ChangedMeanwhile => Deleted::Changed,
            Versioned::NotFound => Deleted::NotFound,
        })
    }

    /// A campaign as the API tells it.
    pub(crate) async fn contract(&self, campaign: Campaign) -> Result<Contract, Error> {
        let account = self.shared.store.account(&campaign.account).await?;
        let speed = self.speed(&campaign, account.as_ref()).await?;
        Ok(answers::contract(campaign, account.as_ref(), speed))
    }

    /// An account that a user may use.
    pub(crate) async fn usable_account(
        &self,
        id: &AccountId,
        user: &str,
    ) -> Result<Option<Account>, Error> {
        let account = self.shared.store.account(id).await?;
        let is_usable =
            |account: &Account| account.owner.as_deref().is_none_or(|owner| owner == user);
        Ok(account.filter(is_usable))
    }
}

/// Why an account cannot take the place of a former one in a campaign with recipients: their addresses were normalised for the former
/// account. Each account has the country of the campaign beside it.
fn other_addresses(
    former: Option<(&Account, Option<&str>)>,
    new: (&Account, Option<&str>),
) -> Option<Mistake> {
    fn read<'a>(
        (account, country): (&'a Account, Option<&'a str>),
    ) -> (AddressKind, Option<&'a str>) {
        let kind = account.channel.address_kind();
        let is_phone = matches!(kind, AddressKind::Phone | AddressKind::Any);
        (kind, country.or(account.country.as_deref()).filter(|_| is_phone))
    }
    let what = |(kind, country): (AddressKind, Option<&str>)| {
        let what = match kind {
            AddressKind::Phone => "telephone numbers",
            AddressKind::Mail => "mail addresses",
            AddressKind::Chat => "chats of Telegram",
            AddressKind::Any => "addresses of any kind",
        };
        match country {
            Some(country) => format!("{what} of {country}"),
            None => what.to_owned(),
        }
    };
    let (former, new) = (former.map(read), read(new));
    if former == Some(new) {
        return None;
    }
    let of_former = former.map_or_else(|| "another account".to_owned(), what);
    let told = format!(
        "the recipients were imported as {of_former}, and this account sends to {}: make another campaign, and import them into that",
        what(new)
    );
    Some(Mistake::new("accountId", told))
}

/// What is wrong with the values of a campaign; without an account, only what is wrong with every channel. `known`: the fields of its
/// recipients, if there are some.
pub(crate) fn mistakes(
    campaign: &Campaign,
    account: Option<&Account>,
    known: Option<&BTreeSet<String>>,
) -> Vec<Mistake> {
    let mut mistakes = values::pacing("pacing", &campaign.pacing);
    mistakes.extend(values::name(&campaign.name));
    mistakes.extend(values::time_zone("timeZone", campaign.time_zone.as_deref()));
    mistakes.extend(values::country("country", campaign.country.as_deref()));
    if !(1..=MOST_ATTEMPTS).contains(&campaign.max_attempts) {
        let told = format!("must be from 1 to {MOST_ATTEMPTS}");
        mistakes.push(Mistake::new("maxAttempts", told));
    }
    for (field, percent) in [
        ("autoPause.failedPercent", campaign.auto_pause.failed_percent),
        ("autoPause.bouncedPercent", campaign.auto_pause.bounced_percent),
    ] {
        if percent > 100 {
            mistakes.push(Mistake::new(field, "must be from 0 to 100; 100 means never"));
        }
    }
    let waits = matches!(campaign.state, CampaignState::Draft | CampaignState::Scheduled);
    if let (true, Some(start), Some(end)) = (waits, campaign.start_at, campaign.end_at)
        && end <= start
    {
        mistakes.push(Mistake::new("endAt", "must be later than startAt"));
    }
    let channel = account.map(|account| account.channel);
    mistakes.extend(content::mistakes(campaign, channel, known));
    mistakes
}

impl CampaignEdit {
    /// Changes a campaign.
    pub(crate) fn apply(self, campaign: &mut Campaign) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut campaign.name, self.name);
        set(&mut campaign.account, self.account);
        set(&mut campaign.content, self.content);
        set(&mut campaign.pacing, self.pacing);
        set(&mut campaign.auto_pause, self.auto_pause);
        set(&mut campaign.max_attempts, self.max_attempts);
        set(&mut campaign.time_zone, self.time_zone);
        set(&mut campaign.country, self.country);
        set(&mut campaign.end_at, self.end_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::blank;

    #[test]
    fn a_blank_draft_has_no_mistakes() {
        assert_eq!(mistakes(&blank("ann".to_owned()), None, None), []);
    }

    #[test]
    fn a_campaign_that_waits_ends_after_its_start() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let wrong =
            Campaign { start_at: Some(at(10)), end_at: Some(at(10)), ..blank("ann".to_owned()) };
        let told = mistakes(&wrong, None, None);
        assert_eq!(told, [Mistake::new("endAt", "must be later than startAt")]);
        let later = Campaign { end_at: Some(at(11)), ..wrong.clone() };
        assert_eq!(mistakes(&later, None, None), []);
        let paused = Campaign { state: CampaignState::Paused, ..wrong };
        assert_eq!(mistakes(&paused, None, None), []);
    }
}
