//! Campaigns that pause by a rule: wrong content, a wrong account, too many failures. The process whose transaction pauses a
//! campaign, or blocks an account, raises an alert: so there is one for each, however many messages fail at once.

use futures::stream::{self, StreamExt};
use stampede_model::campaign::{CampaignChange, CampaignState};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{Account, Campaign, Move, Moved};
use stampede_wire::cluster::Alert;

use crate::feed::{TURN, TURNS};
use crate::{Campaigns, Error, now, pace};

impl Campaigns {
    /// Looks at the last attempts of a campaign and pauses it if a rule says so. One look at a time: failures that come during a
    /// look are seen by the next one.
    pub(crate) fn look_at_failures(&self, id: CampaignId) {
        let shared = &self.shared;
        let mut looks = shared.looks.lock();
        if let Some(is_asked_again) = looks.get_mut(&id) {
            *is_asked_again = true;
            return;
        }
        looks.insert(id, false);
        drop(looks);
        let campaigns = self.clone();
        shared.runs.spawn(async move {
            loop {
                if let Err(error) = campaigns.pause_if_failing(id).await {
                    tracing::warn!(%error, campaign = %id, "cannot look at the failures of a campaign");
                }
                let mut looks = campaigns.shared.looks.lock();
                match looks.get_mut(&id) {
                    Some(is_asked_again) if *is_asked_again => *is_asked_again = false,
                    _ => {
                        looks.remove(&id);
                        return;
                    }
                }
            }
        });
    }

    async fn pause_if_failing(&self, id: CampaignId) -> Result<(), Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(()) };
        if campaign.state != CampaignState::Running {
            return Ok(());
        }
        // Since a person last changed or resumed it: attempts that made it pause then do not make it pause again.
        let last = store.last_outcomes(id, campaign.updated_at, pace::LOOKED_AT).await?;
        let words = last.iter().map(|(word, _)| word.as_str());
        match pace::decide(words, &campaign.auto_pause) {
            Some(reason) => self.pause_by_rule(id, reason.to_string()).await,
            None => Ok(()),
        }
    }

    /// Pauses a campaign because its content was refused, unless a person has changed the campaign since: its content may be right
    /// now.
    pub(crate) async fn pause_for_content(
        &self,
        seen: &Campaign,
        reason: String,
    ) -> Result<(), Error> {
        self.try_pause(seen, &reason).await.map(drop)
    }

    /// Pauses a campaign for a reason that its owner reads.
    async fn pause_by_rule(&self, id: CampaignId, reason: String) -> Result<(), Error> {
        loop {
            let Some(campaign) = self.shared.store.campaign(id).await? else { return Ok(()) };
            let is_running = campaign.state == CampaignState::Running;
            if !is_running || self.try_pause(&campaign, &reason).await? {
                return Ok(());
            }
        }
    }

    /// Pauses a running campaign that still has the version that was seen; `false`: it has another one.
    async fn try_pause(&self, seen: &Campaign, reason: &str) -> Result<bool, Error> {
        let change = Move {
            campaign: seen.id,
            change: CampaignChange::Pause,
            reason: Some(reason.to_owned()),
            // Of several processes, one pauses it.
            seen: Some(seen.updated_at),
            start_at: None,
            now: now(),
        };
        match self.shared.store.move_campaign(&change).await? {
            Moved::Done(campaign, taken_back) => {
                self.shared.snapshots.forget(seen.id);
                self.tell_paused(&campaign, reason).await;
                self.remove_jobs_of(seen.id, &taken_back).await;
                Ok(true)
            }
            Moved::Changed(_) => Ok(false),
            _ => Ok(true),
        }
    }

    /// Logs that a campaign was stopped by a rule, and raises an alert.
    pub(crate) async fn tell_paused(&self, campaign: &Campaign, reason: &str) {
        let Campaign { id, name, owner, .. } = campaign;
        tracing::warn!(
            campaign = %id, name, owner, reason,
            "campaign paused by itself: it waits until a person resumes it"
        );
        let message = format!(
            "campaign {name:?} of {owner} has paused by itself, until a person resumes it: {reason}"
        );
        self.raise(Alert::new("campaign-paused", &id.to_string(), message)).await;
    }

    /// Notes that an account may not send, and pauses all its campaigns; nothing if the account was changed since it was read.
    pub(crate) async fn block_account(&self, account: &Account, reason: &str) -> Result<(), Error> {
        let shared = &*self.shared;
        let blocked = {
            // The answer may be about credentials that a person has replaced since.
            let (id, seen) = (&account.id, Some(account.updated_at));
            shared.store.block_account(id, reason, seen, now()).await?
        };
        for stopped in &blocked.stopped {
            shared.snapshots.forget(stopped.campaign);
        }
        let campaigns = blocked.stopped.len();
        if blocked.is_new || campaigns > 0 {
            let (id, channel) = (&account.id, account.channel.as_str());
            tracing::warn!(
                account = %id, campaigns, reason,
                "account blocked: its campaigns are paused until it is changed or checked, and people resume them"
            );
            let owner = account.owner.as_deref().unwrap_or("everybody");
            let message = format!(
                "account {id} ({channel}) of {owner} is blocked and {campaigns} campaigns are paused, until the account is \
                 changed or checked and people resume them: {reason}"
            );
            self.raise(Alert::new("account-blocked", id.as_str(), message)).await;
        }
        for stopped in &blocked.stopped {
            self.remove_jobs_of(stopped.campaign, &stopped.taken_back).await;
        }
        Ok(())
    }

    /// Raises an alert. The pause is committed and logged: without Redis, there is only no alert.
    async fn raise(&self, alert: Alert) {
        if let Err(error) = self.shared.broker.decisions().raise(&alert).await {
            tracing::debug!(%error, "an alert is lost");
        }
    }

    /// Removes the jobs of recipients that were queued when their campaign stopped. A feeder that runs may add some of them yet.
    pub(crate) async fn remove_jobs_of(&self, id: CampaignId, taken_back: &[RecipientId]) {
        if !taken_back.is_empty() {
            self.wait_for_feeder(id).await;
            self.remove_jobs(taken_back).await;
        }
    }

    /// Removes jobs of recipients that are not queued any more. One that runs finds nothing to claim, but may be about to wait for
    /// a permit: it is waited for.
    pub(crate) async fn remove_jobs(&self, recipients: &[RecipientId]) {
        let mut left: Vec<String> = recipients.iter().map(RecipientId::to_string).collect();
        for _ in 0..TURNS {
            let remove = |id: String| {
                let messages = self.shared.messages.clone();
                async move {
                    let removed = messages.remove(&id).await;
                    (id, removed)
                }
            };
            let mut removing = stream::iter(left.into_iter().map(remove)).buffer_unordered(64);
            left = Vec::new();
            while let Some((id, removed)) = removing.next().await {
                match removed {
                    Ok(true) => {}
                    Ok(false) => left.push(id),
                    Err(error) => tracing::debug!(%error, "cannot remove the job of a message"),
                }
            }
            if left.is_empty() {
                return;
            }
            tokio::time::sleep(TURN).await;
        }
    }
}
