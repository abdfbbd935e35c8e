//! The verbs that move a campaign: start, schedule, pause, resume, cancel; and those that move its recipients: retry, settle.

use std::time::Duration;

use stampede_model::campaign::{CampaignChange, CampaignState, next_campaign_state};
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_store::{self as store, Campaign, Move, Settlement};
use stampede_wire::campaigns::{Contract, PausedContract};

use crate::feed::{log_end, log_start};
use crate::reconcile::SKIPPED;
use crate::{Campaigns, Error, now};

/// How long a cancellation is answered later because recipients are being skipped: most are within it.
const SKIP_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two portions that are skipped: others write, too.
const BREATH: Duration = Duration::from_millis(10);

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
        let Some(campaign) = self.shared.store.campaign(id).await? else {
            return Ok(Moved::NotFound);
        };
        let problems = self.problems(&campaign).await?;
        let is_startable = next_campaign_state(campaign.state, CampaignChange::Start).is_some();
        if is_startable && campaign.state != CampaignState::Running && !problems.is_empty() {
            return Ok(Moved::NotReady(problems));
        }
        let at = at.filter(|at| *at > now());
        let (change, what) = match at {
            Some(_) => (CampaignChange::Schedule, "campaign scheduled"),
            None if campaign.state == CampaignState::Paused => {
                (CampaignChange::Start, "campaign resumed")
            }
            None => (CampaignChange::Start, "campaign started"),
        };
        let moved = self.change_state(id, change, seen, at).await?;
        if let Moved::Done(_) = moved {
            // Before the answer: seldom does anybody have to wait for the reconciler.
            self.feed_soon(id, at).await;
            log_start(&campaign, what);
        }
        Ok(moved)
    }

    /// Resumes a paused campaign, where it was. Refused in other states but `running`.
    pub async fn resume(&self, id: CampaignId) -> Result<Moved, Error> {
        let Some(campaign) = self.shared.store.campaign(id).await? else {
            return Ok(Moved::NotFound);
        };
        if !matches!(campaign.state, CampaignState::Paused | CampaignState::Running) {
            return Ok(Moved::WrongState(Box::new(self.contract(campaign).await?)));
        }
        self.start(id, None, None).await
    }

    /// Pauses a campaign.
    pub async fn pause(&self, id: CampaignId) -> Result<Paused, Error> {
        let moved = self.change_state(id, CampaignChange::Pause, None, None).await?;
        Ok(match moved {
            Moved::Done(contract) => {
                let in_flight = contract.counts.sending;
                tracing::info!(campaign = %id, name = contract.name, in_flight, "campaign paused");
                Paused::Done(Box::new(PausedContract { contract: *contract, in_flight }))
            }
            Moved::NotFound => Paused::NotFound,
            Moved::WrongState(contract) => Paused::WrongState(contract),
            Moved::Changed | Moved::Importing | Moved::NotReady(_) => {
                return Err(Error::internal("a pause asks for no version"));
            }
        })
    }

    /// Ends a campaign: what is left is skipped. Messages in flight may still arrive. Of a very large campaign, recipients are
    /// still being skipped when this returns.
    pub async fn cancel(&self, id: CampaignId) -> Result<Moved, Error> {
        let moved = self.change_state(id, CampaignChange::Cancel, None, None).await?;
        let contract = match moved {
            Moved::Done(contract) => contract,
            refused => return Ok(refused),
        };
        self.skip_left(id).await;
        let Some(campaign) = self.shared.store.campaign(id).await? else {
            return Ok(Moved::Done(contract));
        };
        log_end(&campaign, "campaign cancelled");
        Ok(Moved::Done(Box::new(self.contract(campaign).await?)))
    }

    /// Skips what is left of a cancelled campaign in the background, and waits for it a little. If this process dies, the
    /// reconciler goes on.
    async fn skip_left(&self, id: CampaignId) {
        let campaigns = self.clone();
        let skipping = self.shared.runs.spawn(async move {
            let shared = &*campaigns.shared;
            while !shared.stop.is_cancelled() {
                match shared.store.skip_cancelled(id, SKIPPED, now()).await {
                    Ok(0) => return,
                    Ok(_) => tokio::time::sleep(BREATH).await,
                    Err(error) => {
                        tracing::warn!(%error, campaign = %id, "cannot skip what is left of a cancelled campaign");
                        return;
                    }
                }
            }
        });
        let is_done = tokio::time::timeout(SKIP_PATIENCE, skipping).await.is_ok();
        tracing::debug!(campaign = %id, is_done, "what is left of a cancelled campaign is skipped");
    }

    /// Makes failed recipients pending, with all attempts. Those that the provider did not want now only after 24 hours.
    pub async fn retry_failed(&self, id: CampaignId, which: &Which) -> Result<Settled, Error> {
        self.settle(id, Settlement::RetryFailed, which).await
    }

    /// Settles recipients of which nobody knows whether the message arrived.
    pub async fn settle_unknown(
        &self,
        id: CampaignId,
        action: UnknownAction,
        which: &Which,
    ) -> Result<Settled, Error> {
        let settlement = match action {
            UnknownAction::Resend => Settlement::Resend,
            UnknownAction::Sent => Settlement::Sent,
            UnknownAction::Failed => Settlement::Failed,
        };
        self.settle(id, settlement, which).await
    }

    async fn settle(
        &self,
        id: CampaignId,
        settlement: Settlement,
        which: &Which,
    ) -> Result<Settled, Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(Settled::NotFound) };
        let sends_again = matches!(settlement, Settlement::Resend | Settlement::RetryFailed);
        if sends_again && campaign.state == CampaignState::Cancelled {
            return Ok(Settled::WrongState(Box::new(self.contract(campaign).await?)));
        }
        let ids = match which {
            Which::All => None,
            Which::These(ids) => Some(ids.as_slice()),
        };
        let recipients = store.settle_recipients(id, settlement, ids, now()).await?;
        let Some(campaign) = store.campaign(id).await? else { return Ok(Settled::NotFound) };
        if sends_again && recipients > 0 && campaign.state == CampaignState::Running {
            // A feeder may sleep until the next recipient is due.
            self.feed_soon(id, None).await;
        }
        tracing::info!(campaign = %id, name = campaign.name, recipients, ?settlement, "recipients settled");
        let contract = Box::new(self.contract(campaign).await?);
        Ok(Settled::Done { recipients, contract })
    }

    pub(crate) async fn change_state(
        &self,
        id: CampaignId,
        change: CampaignChange,
        seen: Option<Timestamp>,
        start_at: Option<Timestamp>,
    ) -> Result<Moved, Error> {
        let change = Move { campaign: id, change, reason: None, seen, start_at, now: now() };
        let moved = self.shared.store.move_campaign(&change).await?;
        self.shared.snapshots.forget(id);
        Ok(match moved {
            store::Moved::Done(campaign, taken_back) => {
                self.remove_jobs_of(id, &taken_back).await;
                Moved::Done(Box::new(self.contract(*campaign).await?))
            }
            store::Moved::WrongState(campaign) => {
                Moved::WrongState(Box::new(self.contract(*campaign).await?))
            }
            store::Moved::Changed(_) => Moved::Changed,
            store::Moved::Importing => Moved::Importing,
            // Since its problems were looked for.
            store::Moved::NoAccount(reason) => match self.shared.store.campaign(id).await? {
                Some(campaign) => Moved::NotReady(vec![no_account(&campaign, reason.as_deref())]),
                None => Moved::NotFound,
            },
            store::Moved::NotFound => Moved::NotFound,
        })
    }

    /// Why a campaign cannot send, each a sentence; empty: it can.
    pub(crate) async fn problems(&self, campaign: &Campaign) -> Result<Vec<String>, Error> {
        let mut problems = Vec::new();
        if campaign.counts.open() == 0 {
            problems.push("no recipient is to be sent to; add recipients first".to_owned());
        }
        if campaign.end_at.is_some_and(|end| end <= now()) {
            problems.push("its end is over; set another endAt".to_owned());
        }
        match self.shared.store.account(&campaign.account).await? {
            None => problems.push(no_account(campaign, None)),
            Some(account) => {
                if let Some(reason) = &account.blocked {
                    problems.push(no_account(campaign, Some(reason)));
                }
                problems.extend(self.content_problems(campaign, &account).await?);
            }
        }
        Ok(problems)
    }
}

/// The account of a campaign may not send, for this reason; `None`: it was deleted.
fn no_account(campaign: &Campaign, reason: Option<&str>) -> String {
    let id = &campaign.account;
    match reason {
        Some(reason) => format!("account {id} may not send: {reason}; change it, or check it"),
        None if campaign.started_at.is_some() => format!(
            "account {id} was deleted; make it again under this id, or send to the others with another campaign"
        ),
        None => format!("account {id} was deleted; choose another accountId"),
    }
}
