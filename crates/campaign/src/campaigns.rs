//! The verbs of campaigns: make, read, list, change, delete.

use std::collections::BTreeMap;

use stampede_model::campaign::{AccountId, AutoPause, Content, Pacing};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{CampaignFilter, Slice};
use stampede_wire::campaigns::{Contract, ContractLive, CreatedContract};

use crate::{Campaigns, Error, Mistake};

/// Most attempts that a campaign may ask for.
pub const MOST_ATTEMPTS: u32 = 20;

/// A campaign to be made.
#[derive(Debug, Clone)]
pub struct NewCampaign {
    /// The user whose campaign it is.
    pub owner: String,
    /// Its name, for people.
    pub name: String,
    /// The account that sends: one that the owner may use.
    pub account: AccountId,
    /// What is sent.
    pub content: Content,
    /// How fast it sends, besides the rules of its account.
    pub pacing: Pacing,
    /// When it pauses by itself.
    pub auto_pause: AutoPause,
    /// Most attempts for one recipient; 3 is usual.
    pub max_attempts: u32,
    /// The time zone of quiet hours, for recipients without one.
    pub time_zone: Option<String>,
    /// The country of telephone numbers without a country's code; `None`: the account's.
    pub country: Option<String>,
    /// After this moment nothing more is sent.
    pub end_at: Option<Timestamp>,
}

/// A recipient as a request gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipientRow {
    /// The address: `phoneNumber`, `email`, `chatId` or `address` of the request.
    pub address: String,
    /// The fields that fill a template.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
}

/// The result of making a campaign.
#[derive(Debug, Clone)]
pub enum Created {
    /// It is made; it is a draft until it is started.
    Done(Box<CreatedContract>),
    /// There is no such account, or the owner may not use it.
    NoSuchAccount,
    /// Values cannot be used.
    Invalid(Vec<Mistake>),
}

/// Fields of a campaign to be changed; `None`: stays as it is.
#[derive(Debug, Clone, Default)]
pub struct CampaignEdit {
    /// Its name, for people.
    pub name: Option<String>,
    /// The account that sends. Not while it is running.
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
    /// Makes a campaign with these recipients. What is wrong with a recipient is in the answer and makes the recipient skipped,
    /// not the campaign fail.
    pub async fn create(
        &self,
        new: NewCampaign,
        recipients: Vec<RecipientRow>,
    ) -> Result<Created, Error> {
        todo!()
    }

    /// A campaign.
    pub async fn campaign(&self, id: CampaignId) -> Result<Option<Contract>, Error> {
        todo!()
    }

    /// A part of the list of campaigns.
    pub async fn list(
        &self,
        filter: &CampaignFilter,
        slice: &Slice<CampaignId>,
    ) -> Result<Vec<Contract>, Error> {
        todo!()
    }

    /// Changes a campaign that still has the version `seen` (`None`: any).
    pub async fn edit(
        &self,
        id: CampaignId,
        seen: Option<Timestamp>,
        edit: &CampaignEdit,
    ) -> Result<Edited, Error> {
        todo!()
    }

    /// Deletes a campaign that still has the version `seen` (`None`: any). A running one is paused first. Suppressions stay.
    pub async fn delete(
        &self,
        id: CampaignId,
        seen: Option<Timestamp>,
    ) -> Result<Deleted, Error> {
        todo!()
    }

    /// The part of a campaign that changes while it runs, for live views; cheap enough to be asked for once a second.
    pub async fn live(&self, id: CampaignId) -> Result<Option<ContractLive>, Error> {
        todo!()
    }
}
