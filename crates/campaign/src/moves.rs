//! The verbs that move a campaign: start, schedule, pause, resume, cancel; and those that move its recipients: retry, settle.

use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_wire::campaigns::{Contract, PausedContract};

use crate::{Campaigns, Error};

/// The result of starting, resuming or cancelling a campaign.
#[derive(Debug, Clone)]
pub enum Moved {
    /// It is in the new state.
    Done(Box<Contract>),
    /// Its present state refuses it.
    WrongState(Box<Contract>),
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// There is no such campaign.
    NotFound,
    /// It cannot start: a list of recipients is being imported.
    Importing,
    /// It cannot start, for these reasons, each a sentence: no recipients, no content, a blocked or deleted account …
    NotReady(Vec<String>),
}

/// The result of pausing a campaign.
#[derive(Debug, Clone)]
pub enum Paused {
    /// It is paused: the state is committed, and no job of it waits on the queue. Only messages in flight may still arrive. A
    /// campaign that waited for its time is a draft again.
    Done(Box<PausedContract>),
    /// Its present state refuses it.
    WrongState(Box<Contract>),
    /// There is no such campaign.
    NotFound,
}

/// How a person settles recipients of which nobody knows whether the message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownAction {
    /// The message is sent again.
    Resend,
    /// It counts as sent.
    Sent,
    /// It counts as failed.
    Failed,
}

/// Which recipients are settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// All in the right state.
    All,
    /// Those of these that are in the right state.
    These(Vec<RecipientId>),
}

/// The result of settling recipients.
#[derive(Debug, Clone)]
pub enum Settled {
    /// So many recipients were settled. A completed campaign with recipients to send to again is paused now.
    Done {
        /// How many.
        recipients: u64,
        /// The campaign.
        contract: Box<Contract>,
    },
    /// The campaign is cancelled: nothing is sent again.
    WrongState(Box<Contract>),
    /// There is no such campaign.
    NotFound,
}

impl Campaigns {
    /// Starts a campaign, now or at a later time. A paused campaign is resumed; a running one stays as it is.
    pub async fn start(
        &self,
        id: CampaignId,
        at: Option<Timestamp>,
        seen: Option<Timestamp>,
    ) -> Result<Moved, Error> {
        todo!()
    }

    /// Resumes a paused campaign, where it was. Refused in other states but `running`.
    pub async fn resume(&self, id: CampaignId) -> Result<Moved, Error> {
        todo!()
    }

    /// Pauses a campaign.
    pub async fn pause(&self, id: CampaignId) -> Result<Paused, Error> {
        todo!()
    }

    /// Ends a campaign: what is left is skipped. Messages in flight may still arrive.
    pub async fn cancel(&self, id: CampaignId) -> Result<Moved, Error> {
        todo!()
    }

    /// Makes failed recipients pending, with all attempts. Those that the provider did not want now only after 24 hours.
    pub async fn retry_failed(&self, id: CampaignId, which: &Which) -> Result<Settled, Error> {
        todo!()
    }

    /// Settles recipients of which nobody knows whether the message arrived.
    pub async fn settle_unknown(
        &self,
        id: CampaignId,
        action: UnknownAction,
        which: &Which,
    ) -> Result<Settled, Error> {
        todo!()
    }
}
