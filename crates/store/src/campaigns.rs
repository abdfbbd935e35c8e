//! Campaigns: accounts, campaigns, the ledger of their recipients, suppressed addresses.
//!
//! ```text
//!   Accounts       who sends, and how fast; credentials are encrypted
//!   Campaigns      what is sent, its state and its counts
//!   Audiences      recipients that come, piece by piece
//!   Ledger         one row a recipient: fed, claimed, settled
//!   Reports        questions about many recipients at once
//!   TestLog        test messages, which the ledger does not know of
//!   PastSends      messages that left, for limits
//!   Suppressions   addresses that get nothing any more
//! ```
//!
//! The states and every change between them are `stampede_model::campaign`'s. The counts of a campaign move by triggers, in
//! the statement that changes a recipient.
//!
//! A claim is synced before the first byte of a message leaves: after a power cut no message is sent twice. So is everything
//! that a person or a receipt settles. What an attempt led to is synced, too, because an answer that is forgotten makes a
//! recipient `unknown`.

mod accounts;
mod audiences;
mod decisions;
mod ledger;
mod past_sends;
mod reports;
mod suppressions;
mod test_log;

use async_trait::async_trait;
use stampede_model::campaign::{
    AccountId, AutoPause, CampaignChange, CampaignState, Content, Pacing,
};
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, Timestamp};

pub(crate) use self::accounts::CREDENTIALS_LOST;
pub use self::accounts::{Account, AccountDeleted, AccountFilter, AccountWritten, Accounts};
pub use self::audiences::{
    Arrival, Audiences, FIELD_NAMES_KEPT, Import, Imported, Known, NewRecipient,
};
pub(crate) use self::decisions::{Held, HeldCampaign, LOST, LOST_DETAIL};
pub use self::ledger::{
    Attempt, AttemptEffect, BOUNCED_LATER, Claim, Claimed, FAILED_LATER, Fed, Ledger, QUIET_HOURS,
    Receipt, ReceiptEffect, ReceiptStatus, Recipient, RecipientFilter, RunResult, Settlement,
};
pub use self::past_sends::{PastSend, PastSends, SendFilter, SendScope};
pub use self::reports::{
    AccountAtWork, CODES_REPORTED, CampaignMinute, CampaignTotal, CodeCount, LastAttempts,
    OTHER_CODES, Reports,
};
pub use self::suppressions::{Suppression, SuppressionFilter, Suppressions, Wishes};
pub use self::test_log::{TESTS_KEPT, TestAttempt, TestEnd, TestLog};
use crate::{Result, Slice, Versioned};

/// A campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Names the campaign.
    pub id: CampaignId,
    /// The user whose campaign it is.
    pub owner: String,
    /// Its name, for people.
    pub name: String,
    /// The account that sends.
    pub account: AccountId,
    /// Its state.
    pub state: CampaignState,
    /// Why it is in this state, if a rule put it there.
    pub reason: Option<String>,
    /// What is sent.
    pub content: Content,
    /// How fast it sends, besides the rules of its account.
    pub pacing: Pacing,
    /// When it pauses by itself.
    pub auto_pause: AutoPause,
    /// Most attempts for one recipient.
    pub max_attempts: u32,
    /// The time zone of quiet hours and of days, for recipients without one.
    pub time_zone: Option<String>,
    /// The country of telephone numbers without a country's code.
    pub country: Option<String>,
    /// When it starts by itself.
    pub start_at: Option<Timestamp>,
    /// After this moment nothing more is sent: what is left is skipped.
    pub end_at: Option<Timestamp>,
    /// The event that all guests among the recipients are of.
    pub event: Option<EventId>,
    /// The order that all guests among the recipients are of.
    pub batch: Option<BatchId>,
    /// Recipients by state.
    pub counts: CampaignCounts,
    /// An import that is not complete: the campaign cannot start.
    pub importing: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its version: when a person or a rule last changed it. Counts do not change it.
    pub updated_at: Timestamp,
    /// When it first started.
    pub started_at: Option<Timestamp>,
    /// When it was completed or cancelled.
    pub ended_at: Option<Timestamp>,
}

/// Recipients of a campaign by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the states are documented in RecipientState")]
pub struct CampaignCounts {
    pub pending: u64,
    pub queued: u64,
    pub sending: u64,
    pub sent: u64,
    pub delivered: u64,
    pub read: u64,
    pub failed: u64,
    pub unknown: u64,
    pub skipped: u64,
}

impl CampaignCounts {
    /// All recipients.
    pub fn total(&self) -> u64 {
        self.open()
            + self.sent
            + self.delivered
            + self.read
            + self.failed
            + self.unknown
            + self.skipped
    }

    /// Recipients that keep the campaign from being completed.
    pub fn open(&self) -> u64 {
        self.pending + self.queued + self.sending
    }
}

/// Which campaigns to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct CampaignFilter {
    /// Only campaigns of this user.
    pub owner: Option<String>,
    /// Only campaigns in this state.
    pub state: Option<CampaignState>,
    /// Only campaigns of this account.
    pub account: Option<AccountId>,
    /// Only campaigns for guests of this event.
    pub event: Option<EventId>,
}

/// The result of moving a campaign to another state.
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// It is in the state now. The recipients were queued and are not any more: their jobs are to be removed.
    Done(Box<Campaign>, Vec<RecipientId>),
    /// The change is refused in its present state.
    WrongState(Box<Campaign>),
    /// It has another version than `seen`.
    Changed(Box<Campaign>),
    /// It cannot start: a list of recipients is being imported.
    Importing,
    /// It cannot start: its account may not send, for this reason; `None`: its account was deleted.
    NoAccount(Option<String>),
    /// There is no such campaign.
    NotFound,
}

/// A campaign that was paused because its account may not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The campaign.
    pub campaign: CampaignId,
    /// Recipients that were queued and are not any more: their jobs are to be removed.
    pub taken_back: Vec<RecipientId>,
}

/// An account that may not send any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocked {
    /// It might send before.
    pub is_new: bool,
    /// Its campaigns that were running.
    pub stopped: Vec<Stopped>,
}

/// A campaign that moves, and what is to hold before.
#[derive(Debug, Clone)]
pub struct Move {
    /// The campaign.
    pub campaign: CampaignId,
    /// The change.
    pub change: CampaignChange,
    /// Why, for changes by a rule.
    pub reason: Option<String>,
    /// The version it must have; `None`: any.
    pub seen: Option<Timestamp>,
    /// When it is to start; for `CampaignChange::Schedule`.
    pub start_at: Option<Timestamp>,
    /// When it moves.
    pub now: Timestamp,
}

/// Campaigns without their recipients. All changes are synced.
#[async_trait]
pub trait Campaigns: Send + Sync {
    /// Writes a new campaign, without recipients.
    async fn insert_campaign(&self, campaign: &Campaign) -> Result<()>;

    /// A campaign with its counts.
    async fn campaign(&self, id: CampaignId) -> Result<Option<Campaign>>;

    /// A part of the list of campaigns.
    async fn campaigns(
        &self,
        filter: &CampaignFilter,
        slice: &Slice<CampaignId>,
    ) -> Result<Vec<Campaign>>;

    /// Writes name, account, content, pacing, automatic pause, attempts, zone, country, start and end, if the version is still
    /// `seen` (`None`: any). Returns the campaign as it is now. The caller refuses before what is left as it is here: the content of a
    /// campaign that is running, and the account of a campaign that has ever started or that recipients are imported into. Receipts
    /// and runs of a campaign belong to one account.
    async fn update_campaign_as_seen(
        &self,
        campaign: &Campaign,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Campaign>>;

    /// Moves a campaign to another state ([`stampede_model::campaign::next_campaign_state`]). In the same transaction, queued
    /// recipients become pending by a pause and skipped (`cancelled`) by a cancellation; pending ones of a cancelled campaign are
    /// skipped by [`Campaigns::skip_cancelled`]. A change that leads to the state that the campaign is in changes nothing, its
    /// version included. It is completed only without open recipients.
    async fn move_campaign(&self, change: &Move) -> Result<Moved>;

    /// Pauses all running campaigns of an account and notes why the account may not send; its version stays, because no person
    /// changed it. Does nothing if the account has another version than `seen` (`None`: any): a person has changed it since. Scheduled
    /// campaigns stay: at its time, a campaign of an account that may not send becomes a draft ([`Ledger::feed_campaign`]).
    async fn block_account(
        &self,
        account: &AccountId,
        reason: &str,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Blocked>;

    /// Skips up to `limit` recipients that are left of a cancelled campaign (`cancelled`); returns how many, 0 when none is left.
    /// Not synced.
    async fn skip_cancelled(&self, id: CampaignId, limit: u32, now: Timestamp) -> Result<u64>;

    /// Cancelled campaigns of which recipients are left to be skipped.
    async fn cancelled_campaigns(&self, limit: u32) -> Result<Vec<CampaignId>>;

    /// Tells the feed of campaigns whose counts have changed since they were last told, each at most once a second; returns of
    /// how many. Changes of state are told in their own transactions, and the progress of running campaigns by
    /// [`Ledger::feed_campaign`]. Not synced.
    async fn tell_campaigns(&self, limit: u32, now: Timestamp) -> Result<u64>;

    /// Deletes a campaign that is not running; one that is answers `ChangedMeanwhile`. It is not found any more, and its ledger is
    /// removed in portions by [`Campaigns::forget_campaigns`].
    async fn delete_campaign_as_seen(
        &self,
        id: CampaignId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>>;

    /// Removes up to `limit` rows of deleted campaigns; returns how many. Not synced.
    async fn forget_campaigns(&self, limit: u32) -> Result<u64>;

    /// Campaigns that need a feeder: running ones, and scheduled ones whose time has come and whose recipients are all there; by
    /// id after `after`.
    async fn campaigns_to_feed(
        &self,
        now: Timestamp,
        after: Option<CampaignId>,
        limit: u32,
    ) -> Result<Vec<CampaignId>>;

    /// Campaigns whose counts are not those of their recipients, with the right ones; for `doctor`.
    async fn wrong_campaign_counts(&self) -> Result<Vec<(CampaignId, CampaignCounts)>>;
}
