//! What a claim, the end of a run and a receipt do to a recipient: pure, the same for every backend.
//!
//! A backend locks recipients, reads them as [`Held`], lets this file decide, and writes the recipients that changed. The
//! states follow [`stampede_model::campaign::next_recipient_state`]; nothing here changes a state in another way.

use std::time::Duration;

use stampede_model::campaign::{
    AccountId, CampaignState, Channel, RecipientChange as Change, RecipientState as State,
    SkipReason, next_recipient_state,
};
use stampede_model::{RunId, Timestamp};

use super::audiences::key_of;
use super::{
    Attempt, AttemptEffect, BOUNCED_LATER, Claim, Claimed, FAILED_LATER, Receipt, ReceiptEffect,
    ReceiptStatus, Recipient, RunResult, Suppression,
};

/// The code of recipients whose run never said how it ended.
pub(crate) const LOST: &str = "lost";
/// What is said about them.
pub(crate) const LOST_DETAIL: &str =
    "the process that sent this message ended before it could note the answer";

/// A recipient that is locked, and what decides about it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The recipient.
    pub(crate) recipient: Recipient,
    /// The run that claimed it last and has not said how it ended.
    pub(crate) run: Option<RunId>,
    /// Attempts in its log.
    pub(crate) logged: u32,
    /// Its address is suppressed.
    pub(crate) is_suppressed: bool,
    /// It has to be written.
    pub(crate) is_changed: bool,
    /// Its address has changed, so that it has another key.
    pub(crate) is_moved: bool,
    /// Its campaign.
    pub(crate) campaign: HeldCampaign,
}

/// The campaign of a recipient that is locked.
#[derive(Debug, Clone)]
pub(crate) struct HeldCampaign {
    pub(crate) state: CampaignState,
    pub(crate) version: Timestamp,
    pub(crate) account: AccountId,
    /// The version of the account; `None`: the account is gone.
    pub(crate) account_version: Option<Timestamp>,
    /// The account is neither blocked nor deleted.
    pub(crate) may_account_send: bool,
    /// Whose suppressions hold: the account's owner; of an account that belongs to nobody, the campaign's.
    pub(crate) sender: String,
    /// The account's channel; `None`: the account is gone.
    pub(crate) channel: Option<Channel>,
    pub(crate) end_at: Option<Timestamp>,
    pub(crate) is_deleted: bool,
}

/// What the end of a run, or a receipt, leads to, besides the recipient's change.
#[derive(Debug, Default)]
pub(crate) struct RunRecorded {
    /// The attempt for the log, and whether it counts.
    pub(crate) attempt: Option<(Attempt, bool)>,
    /// The address is suppressed.
    pub(crate) suppression: Option<Suppression>,
}

impl HeldCampaign {
    /// Whether the campaign runs, and its account may send.
    fn may_send(&self) -> bool {
        !self.is_deleted && self.state == CampaignState::Running && self.may_account_send
    }

    /// Whether a claim was made with the present campaign and account.
    fn is_as_seen(&self, claim: &Claim) -> bool {
        self.version == claim.campaign_seen
            && claim.account_seen.is_none_or(|seen| self.account_version == Some(seen))
    }
}

impl Held {
    /// Moves the recipient to another state, if the change is allowed in its present one.
    fn change(&mut self, change: Change, now: Timestamp) -> bool {
        let Some(next) = next_recipient_state(self.recipient.state, change) else { return false };
        self.recipient.state = next;
        self.recipient.updated_at = now;
        self.recipient.next_at = None;
        self.is_changed = true;
        true
    }

    fn skip(&mut self, reason: SkipReason, now: Timestamp) {
        if self.change(Change::Skip, now) {
            self.recipient.skipped = Some(reason);
        }
    }

    /// Answers a claim. `in_flight` counts the recipients of the account that are being sent to.
    pub(crate) fn claim(&mut self, claim: &Claim, in_flight: &mut u64, now: Timestamp) -> Claimed {
        match self.recipient.state {
            State::Queued => self.claim_queued(claim, in_flight, now),
            State::Sending => self.claim_sending(claim, now),
            _ => Claimed::Nothing,
        }
    }

    fn claim_queued(&mut self, claim: &Claim, in_flight: &mut u64, now: Timestamp) -> Claimed {
        let campaign = &self.campaign;
        if !campaign.may_send() {
            return Claimed::Nothing;
        }
        if !campaign.is_as_seen(claim) {
            return Claimed::Changed;
        }
        if campaign.end_at.is_some_and(|end| end <= now) {
            self.skip(SkipReason::Expired, now);
            return Claimed::Expired;
        }
        if self.is_suppressed {
            self.skip(SkipReason::OptedOut, now);
            return Claimed::OptedOut;
        }
        if *in_flight >= u64::from(claim.most_in_flight) {
            return Claimed::Busy;
        }
        self.change(Change::Claim, now);
        *in_flight += 1;
        self.send(claim.run)
    }

    /// Another run has the recipient, or the same one asks again because it never got its answer.
    fn claim_sending(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        if self.run == Some(claim.run) {
            return Claimed::Send(Box::new(self.recipient.clone()));
        }
        let campaign = &self.campaign;
        let may_send = campaign.may_send()
            && campaign.end_at.is_none_or(|end| end > now)
            && !self.is_suppressed;
        if claim.is_idempotent && may_send {
            if !campaign.is_as_seen(claim) {
                return Claimed::Changed;
            }
            self.recipient.updated_at = now;
            return self.send(claim.run);
        }
        self.lose(now);
        Claimed::Unknown
    }

    fn send(&mut self, run: RunId) -> Claimed {
        self.recipient.attempts += 1;
        self.run = Some(run);
        self.is_changed = true;
        Claimed::Send(Box::new(self.recipient.clone()))
    }

    /// The run that had claimed the recipient is gone. It stays the recipient's run: its word still counts.
    fn lose(&mut self, now: Timestamp) {
        if self.change(Change::Lose, now) {
            self.recipient.code = Some(LOST.to_owned());
            self.recipient.detail = Some(LOST_DETAIL.to_owned());
        }
    }

    /// Records how a run ended; `None`: the recipient is not the run's any more.
    pub(crate) fn record(&mut self, result: &RunResult, now: Timestamp) -> Option<RunRecorded> {
        if self.run != Some(result.run) {
            return None;
        }
        self.run = None;
        self.is_changed = true;
        let attempt = &result.attempt;
        let mut recorded = RunRecorded::default();
        match &result.effect {
            AttemptEffect::Sent { provider_id, moved_to } => {
                let sent_at = attempt.at + attempt.took;
                if self.change(Change::Accept, now) {
                    self.recipient.code = None;
                    self.recipient.detail = None;
                }
                // A receipt that was faster does not know these.
                let recipient = &mut self.recipient;
                recipient.sent_at = Some(sent_at);
                recipient.provider_id = provider_id.clone().or(recipient.provider_id.take());
                if let Some(address) = moved_to {
                    recipient.address.clone_from(address);
                }
            }
            AttemptEffect::Retry(at) => self.wait(Change::Retry, Some(*at), attempt, now),
            AttemptEffect::Postpone(at) => {
                self.recipient.attempts = self.recipient.attempts.saturating_sub(1);
                self.wait(Change::Retry, Some(*at), attempt, now);
            }
            AttemptEffect::Moved(address) => {
                self.recipient.attempts = self.recipient.attempts.saturating_sub(1);
                self.wait(Change::Retry, Some(now), attempt, now);
                self.recipient.address.clone_from(address);
                self.is_moved = true;
            }
            AttemptEffect::Released => {
                self.recipient.attempts = self.recipient.attempts.saturating_sub(1);
                let change = match self.recipient.state {
                    // Another run took it for lost; this one knows that nothing was sent.
                    State::Unknown => Change::Retry,
                    _ => Change::Release,
                };
                self.wait(change, None, attempt, now);
                return Some(recorded);
            }
            AttemptEffect::Failed(reason) => {
                if self.change(Change::Fail, now) {
                    self.note(attempt);
                }
                recorded.suppression = reason.map(|reason| self.suppression(reason, now));
            }
            AttemptEffect::Withheld => {
                self.recipient.attempts = self.recipient.attempts.saturating_sub(1);
                if self.change(Change::Fail, now) {
                    self.note(attempt);
                }
            }
            AttemptEffect::Unknown => {
                // It may have been taken for lost already.
                if self.change(Change::Lose, now) || self.recipient.state == State::Unknown {
                    self.note(attempt);
                }
            }
        }
        self.logged += 1;
        let counts = !matches!(
            result.effect,
            AttemptEffect::Postpone(_) | AttemptEffect::Moved(_) | AttemptEffect::Withheld
        );
        recorded.attempt = Some((Attempt { number: self.logged, ..attempt.clone() }, counts));
        Some(recorded)
    }

    /// What no two recipients of the campaign share.
    pub(crate) fn key(&self) -> String {
        key_of(&self.recipient.address, self.recipient.ticket)
    }

    /// Another recipient of the campaign has the address that this one has moved to: nothing is sent to this one.
    pub(crate) fn skip_as_twin(&mut self, now: Timestamp) {
        self.skip(SkipReason::Duplicate, now);
        let address = &self.recipient.address;
        self.recipient.detail =
            Some(format!("the address is {address} now, which another recipient has"));
    }

    /// The recipient is to be sent to again. A campaign that has ended meanwhile sends nothing more.
    fn wait(
        &mut self,
        change: Change,
        next_at: Option<Timestamp>,
        attempt: &Attempt,
        now: Timestamp,
    ) {
        if self.campaign.state == CampaignState::Completed {
            // The recipient was `unknown` when the campaign was completed. Only a person retries it.
            if self.change(Change::Fail, now) {
                self.note(attempt);
            }
            return;
        }
        if !self.change(change, now) {
            return;
        }
        if next_at.is_some() {
            self.note(attempt);
        } else if self.recipient.code.as_deref() == Some(LOST) {
            (self.recipient.code, self.recipient.detail) = (None, None);
        }
        self.recipient.next_at = next_at;
        if self.campaign.state == CampaignState::Cancelled {
            self.skip(SkipReason::Cancelled, now);
        }
    }

    fn note(&mut self, attempt: &Attempt) {
        self.recipient.code.clone_from(&attempt.code);
        self.recipient.detail.clone_from(&attempt.answer);
    }

    /// Suppresses the recipient's address for the account.
    fn suppression(
        &self,
        reason: stampede_model::campaign::SuppressionReason,
        since: Timestamp,
    ) -> Suppression {
        let campaign = &self.campaign;
        Suppression {
            owner: campaign.sender.clone(),
            account: Some(campaign.account.clone()),
            address: self.recipient.address.clone(),
            reason,
            since,
            by: campaign.channel.map_or("channel", Channel::as_str).to_owned(),
        }
    }

    /// The suppression that a receipt of the recipient's account asks for.
    pub(crate) fn suppressed_by(&self, receipt: &Receipt) -> Option<Suppression> {
        receipt.suppress.map(|reason| self.suppression(reason, receipt.at))
    }

    /// Applies a receipt of the recipient's account.
    pub(crate) fn receive(
        &mut self,
        receipt: &Receipt,
        now: Timestamp,
    ) -> (ReceiptEffect, RunRecorded) {
        let suppression = self.suppressed_by(receipt);
        let before = self.recipient.state;
        let change = match receipt.status {
            ReceiptStatus::Sent => Change::Accept,
            ReceiptStatus::Delivered => Change::Deliver,
            ReceiptStatus::Read => Change::Read,
            ReceiptStatus::Failed => Change::Bounce,
        };
        // A recipient that no run has ever claimed got no message.
        let is_waiting = matches!(before, State::Pending | State::Queued);
        let was_attempted = self.logged > 0 || self.recipient.attempts > 0;
        let is_applied = (!is_waiting || was_attempted) && self.change(change, now);
        let recipient = &mut self.recipient;
        if is_applied && receipt.status == ReceiptStatus::Failed {
            recipient.code.clone_from(&receipt.code);
            recipient.detail.clone_from(&receipt.detail);
        } else if is_applied {
            (recipient.code, recipient.detail) = (None, None);
            recipient.sent_at.get_or_insert(receipt.at);
        }
        let is_late = receipt.status == ReceiptStatus::Delivered
            && recipient.state == State::Read
            && recipient.delivered_at.is_none();
        match receipt.status {
            ReceiptStatus::Delivered if is_applied || is_late => {
                recipient.delivered_at = Some(receipt.at);
                self.is_changed = true;
            }
            ReceiptStatus::Read if is_applied => recipient.read_at = Some(receipt.at),
            _ => {}
        }
        if is_applied && recipient.provider_id.is_none() {
            recipient.provider_id.clone_from(&receipt.provider_id);
        }
        let failed = is_applied && receipt.status == ReceiptStatus::Failed;
        let attempt = failed.then(|| self.failed_later(receipt, before, now));
        let campaign = self.recipient.campaign;
        let effect =
            if is_applied { ReceiptEffect::Applied(campaign) } else { ReceiptEffect::Stale };
        (effect, RunRecorded { attempt, suppression })
    }

    /// The entry of the log for a receipt by which the recipient failed, and whether it counts: an attempt of which nobody knew how
    /// it had ended is counted as a failure already.
    fn failed_later(
        &mut self,
        receipt: &Receipt,
        before: State,
        now: Timestamp,
    ) -> (Attempt, bool) {
        self.logged += 1;
        self.is_changed = true;
        let sent_at = self.recipient.sent_at.unwrap_or(now);
        let attempt = Attempt {
            number: self.logged,
            at: now,
            took: Duration::try_from(now.duration_since(sent_at)).unwrap_or_default(),
            outcome: if receipt.is_bounce { BOUNCED_LATER } else { FAILED_LATER }.to_owned(),
            code: receipt.code.clone(),
            answer: receipt.detail.clone(),
        };
        (attempt, before != State::Unknown)
    }
}
