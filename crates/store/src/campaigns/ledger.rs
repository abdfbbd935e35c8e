//! The ledger: one row a recipient, and the attempts to send to it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use stampede_model::campaign::{AccountId, RecipientState, SkipReason, SuppressionReason};
use stampede_model::{CampaignId, RecipientId, RunId, TicketId, Timestamp};

use crate::Result;

/// A recipient of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Names the recipient.
    pub id: RecipientId,
    /// The campaign.
    pub campaign: CampaignId,
    /// The place among the recipients of the campaign, from 1.
    pub position: u64,
    /// The address, normalised.
    pub address: String,
    /// The fields that fill a template.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
    /// The ticket that the message is about.
    pub ticket: Option<TicketId>,
    /// The line of the file that it came from.
    pub line: Option<u64>,
    /// The state.
    pub state: RecipientState,
    /// Why it is skipped.
    pub skipped: Option<SkipReason>,
    /// The code of the last failure.
    pub code: Option<String>,
    /// What was said about the last failure, or why it is skipped.
    pub detail: Option<String>,
    /// Attempts that count.
    pub attempts: u32,
    /// Before this moment it is not tried again.
    pub next_at: Option<Timestamp>,
    /// The provider's id of the message.
    pub provider_id: Option<String>,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// When the provider accepted it.
    pub sent_at: Option<Timestamp>,
    /// When it arrived.
    pub delivered_at: Option<Timestamp>,
    /// When it was read.
    pub read_at: Option<Timestamp>,
}

/// Which recipients to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct RecipientFilter {
    /// Only those in this state.
    pub state: Option<RecipientState>,
    /// Only those with this code, or skipped for this reason.
    pub code: Option<String>,
    /// Only those whose address contains this text.
    pub address: Option<String>,
}

/// A portion of recipients that are to get a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fed {
    /// Recipients that are queued now, in the order in which they are to be sent.
    pub queued: Vec<RecipientId>,
    /// When the next pending recipient is due, if none is due now and none has a job.
    pub next_at: Option<Timestamp>,
    /// The campaign is completed: this call did it, or an earlier one.
    pub is_completed: bool,
    /// The campaign is running.
    pub is_running: bool,
    /// Why this call stopped the campaign: its account may not send.
    pub stopped: Option<String>,
    /// Recipients of the stopped campaign that were queued and are not any more: their jobs are to be removed.
    pub taken_back: Vec<RecipientId>,
}

/// A run that wants to send to a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The recipient.
    pub recipient: RecipientId,
    /// The run.
    pub run: RunId,
    /// Most recipients of the account that may be in the state `sending` at the same time, this one included.
    pub most_in_flight: u32,
    /// The channel promises to send a message once, however often it is given the same id: a recipient that an earlier run
    /// has claimed is claimed again instead of becoming `unknown`.
    pub is_idempotent: bool,
    /// The version of the campaign that limits and hours were taken from; with another version, nothing is claimed.
    pub campaign_seen: Timestamp,
    /// The version of the account that limits and hours were taken from; with another version, nothing is claimed. `None`: any.
    pub account_seen: Option<Timestamp>,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// `queued → sending`, and synced: send it. `attempts` counts this one.
    Send(Box<Recipient>),
    /// An earlier run had claimed it and never said how it ended: it is `unknown` now.
    Unknown,
    /// Its address is suppressed: it is skipped now.
    OptedOut,
    /// The end of its campaign's time has come: it is skipped now.
    Expired,
    /// As many as may be are in flight: to be asked for again.
    Busy,
    /// The campaign or its account has changed since it was seen: to be asked for again with the new one.
    Changed,
    /// The campaign is not running, or the recipient is not queued: there is nothing to do.
    Nothing,
}

/// The word for a message that was accepted, and came back later: its address does not exist.
pub const BOUNCED_LATER: &str = "bounced_later";
/// The word for a message that was accepted, and of which a receipt says that it did not arrive.
pub const FAILED_LATER: &str = "failed_later";

/// The code of a pending recipient that waits for the end of quiet hours.
pub const QUIET_HOURS: &str = "quiet_hours";

/// An attempt in the log, or a receipt that says that the message of the last attempt did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The number of the attempt.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took; of a receipt, how long after the provider had accepted the message it came.
    pub took: Duration,
    /// The word of the outcome; of a receipt, [`BOUNCED_LATER`] or [`FAILED_LATER`].
    pub outcome: String,
    /// The code of the failure.
    pub code: Option<String>,
    /// The provider's answer, up to 512 bytes, without secrets.
    pub answer: Option<String>,
}

/// What an attempt leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEffect {
    /// `sent`.
    Sent {
        /// The provider's id.
        provider_id: Option<String>,
        /// The address from now on.
        moved_to: Option<String>,
    },
    /// `pending` again at this time; the attempt counts.
    Retry(Timestamp),
    /// `pending` again at this time; the attempt does not count.
    Postpone(Timestamp),
    /// The recipient has this address from now on, and nothing was sent to it: `pending`, due at once; the attempt does not count.
    /// `skipped` (`duplicate`) if another recipient of the campaign has that address.
    Moved(String),
    /// `failed`, and the address is suppressed if there is a reason.
    Failed(Option<SuppressionReason>),
    /// `failed` without a message: the provider was not called. The attempt does not count.
    Withheld,
    /// `unknown`.
    Unknown,
    /// `pending`: the provider was not called, and nothing is logged. The attempt does not count.
    Released,
}

/// How a run ended. It counts if the recipient is still claimed by the run, or became `unknown` since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// The recipient.
    pub recipient: RecipientId,
    /// The run.
    pub run: RunId,
    /// The attempt; its number is filled in.
    pub attempt: Attempt,
    /// What it leads to.
    pub effect: AttemptEffect,
}

/// What a receipt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptStatus {
    /// The provider accepted it.
    Sent,
    /// It arrived.
    Delivered,
    /// It was read.
    Read,
    /// It did not arrive.
    Failed,
}

/// A message of a provider about a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The account that the receipt came to: receipts for other accounts' recipients do nothing.
    pub account: AccountId,
    /// The recipient, if the receipt names it.
    pub recipient: Option<RecipientId>,
    /// The provider's id of the message, if the receipt names it.
    pub provider_id: Option<String>,
    /// What it says.
    pub status: ReceiptStatus,
    /// The code of a failure.
    pub code: Option<String>,
    /// What was said about a failure.
    pub detail: Option<String>,
    /// It failed because the address does not exist.
    pub is_bounce: bool,
    /// Why the address gets nothing any more.
    pub suppress: Option<SuppressionReason>,
    /// When it happened.
    pub at: Timestamp,
}

/// What a receipt led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptEffect {
    /// A recipient of this campaign has changed.
    Applied(CampaignId),
    /// The recipient is further already.
    Stale,
    /// There is no such recipient of this account.
    NotFound,
}

/// How a person settles recipients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// `unknown → pending`: send again.
    Resend,
    /// `unknown → sent`.
    Sent,
    /// `unknown → failed`.
    Failed,
    /// `failed → pending`, with all attempts: retry. Those with the code `not_now` only 24 hours after they failed.
    RetryFailed,
}

/// The ledger.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Makes up to `most - already queued` pending recipients of a running campaign queued: those that are due again first,
    /// by time, then by position, then those that wait for hours that were changed meanwhile. A scheduled campaign whose time has come
    /// runs from now on. A running campaign whose account is blocked or deleted is paused, a scheduled one becomes a draft. One whose end has come skips what
    /// is left (`expired`), a portion at a time. One without open recipients is completed. Tells the feed of its progress. Not synced:
    /// a job that is added twice changes nothing.
    async fn feed_campaign(&self, id: CampaignId, most: u32, now: Timestamp) -> Result<Fed>;

    /// Makes a queued recipient pending until the end of quiet hours, with the code [`QUIET_HOURS`]; `false`: it is not queued. If
    /// campaign or account are changed meanwhile, it is queued again before that. Not synced.
    async fn put_off_recipient(
        &self,
        id: RecipientId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool>;

    /// Claims recipients, all in one transaction; the answers are in the order of the claims. Synced.
    async fn claim_recipients(&self, claims: &[Claim], now: Timestamp) -> Result<Vec<Claimed>>;

    /// Records how runs ended, all in one transaction; the answers, in the order of the results, tell whether each was
    /// recorded: `false` means that the recipient is not the run's any more. A result that was recorded before is answered
    /// with `true` again. A recipient that would wait is skipped if its campaign was cancelled meanwhile, and failed if it was
    /// completed. Synced.
    async fn record_runs(&self, results: &[RunResult], now: Timestamp) -> Result<Vec<bool>>;

    /// The outcomes of the last attempts of a campaign that began since a moment, newest first, as (word, code). Attempts that do
    /// not count (postponed, released) are left out. Receipts that say that the message of such an attempt did not arrive are among
    /// them, by the time at which they came.
    async fn last_outcomes(
        &self,
        campaign: CampaignId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(String, Option<String>)>>;

    /// The outcomes of the last attempts to send to an address through an account, newest first, as (word, code). Attempts that do
    /// not count are left out, and receipts.
    async fn last_outcomes_to(
        &self,
        account: &AccountId,
        address: &str,
        limit: u32,
    ) -> Result<Vec<(String, Option<String>)>>;

    /// Applies receipts, up to a thousand in one transaction; the answers are in their order. A receipt finds its recipient by the
    /// recipient's id, or else by the provider's id: the newest recipient of the account with that id. A receipt that comes too late
    /// for the state, or when the campaign is deleted, still suppresses the address. One by which a recipient fails is logged. Synced.
    async fn apply_receipts(
        &self,
        receipts: &[Receipt],
        now: Timestamp,
    ) -> Result<Vec<ReceiptEffect>>;

    /// Settles recipients of a campaign, by id or all that are in the right state, up to five thousand in one transaction; returns
    /// how many. A completed campaign with recipients to send to again is paused; in a cancelled one, nothing is sent again. Synced.
    async fn settle_recipients(
        &self,
        campaign: CampaignId,
        settlement: Settlement,
        ids: Option<&[RecipientId]>,
        now: Timestamp,
    ) -> Result<u64>;

    /// A recipient.
    async fn recipient(&self, id: RecipientId) -> Result<Option<Recipient>>;

    /// A part of a campaign's recipients, by position after `after`.
    async fn recipients(
        &self,
        campaign: CampaignId,
        filter: &RecipientFilter,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Recipient>>;

    /// The attempts of a recipient, the first first.
    async fn recipient_attempts(&self, id: RecipientId) -> Result<Vec<Attempt>>;

    /// Recipients in the state `queued` or `sending` since before a moment, by id after `after`: whether each has a job is
    /// looked up elsewhere.
    async fn recipients_in_hand(
        &self,
        before: Timestamp,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<(RecipientId, RecipientState)>>;

    /// Makes queued recipients pending, and recipients in `sending` unknown: their jobs are gone. Synced.
    async fn put_back_recipients(&self, ids: &[RecipientId], now: Timestamp) -> Result<u64>;
}
