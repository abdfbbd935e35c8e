//! Campaigns that pause by a rule: wrong content, a wrong account, too many failures.

use stampede_model::campaign::{AccountId, CampaignChange, CampaignState, RecipientState};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{CampaignFilter, Move, Moved, RecipientFilter, Slice, Sorted};

use crate::{Campaigns, Error, now, pace};

/// Recipients whose jobs are removed in one step.
const PAGE: u32 = 1_000;

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
        // Since a person last changed or resumed it: what made it pause then does not make it pause again.
        let last = store.last_outcomes(id, campaign.updated_at, pace::LOOKED_AT).await?;
        let words = last.iter().map(|(word, _)| word.as_str());
        match pace::decide(words, &campaign.auto_pause) {
            Some(reason) => self.pause_by_rule(id, reason.to_string()).await,
            None => Ok(()),
        }
    }

    /// Pauses a campaign for a reason that its owner reads.
    pub(crate) async fn pause_by_rule(&self, id: CampaignId, reason: String) -> Result<(), Error> {
        let queued = self.queued(id).await?;
        let change = Move {
            campaign: id,
            change: CampaignChange::Pause,
            reason: Some(reason.clone()),
            seen: None,
            start_at: None,
            now: now(),
        };
        let before = self.shared.store.campaign(id).await?.map(|campaign| campaign.state);
        if before != Some(CampaignState::Running) {
            return Ok(());
        }
        if let Moved::Done(campaign) = self.shared.store.move_campaign(&change).await? {
            self.shared.snapshots.forget(id);
            tracing::warn!(
                campaign = %id, name = campaign.name, owner = campaign.owner, reason,
                "campaign paused by itself: it waits until a person resumes it"
            );
        }
        self.remove_jobs(&queued).await;
        Ok(())
    }

    /// Notes that an account may not send, and pauses all its campaigns.
    pub(crate) async fn block_account(
        &self,
        account: &AccountId,
        reason: &str,
    ) -> Result<(), Error> {
        let shared = &*self.shared;
        let filter = CampaignFilter {
            account: Some(account.clone()),
            state: Some(CampaignState::Running),
            ..CampaignFilter::default()
        };
        let running =
            shared.store.campaigns(&filter, &Slice::new(Sorted::NewestFirst, None, PAGE)).await?;
        let mut queued = Vec::new();
        for campaign in &running {
            queued.extend(self.queued(campaign.id).await?);
        }
        let paused = shared.store.block_account(account, reason, now()).await?;
        for campaign in &paused {
            shared.snapshots.forget(*campaign);
        }
        if !paused.is_empty() {
            tracing::warn!(
                %account, campaigns = paused.len(), reason,
                "account blocked: its campaigns are paused until it is changed or checked, and people resume them"
            );
        }
        self.remove_jobs(&queued).await;
        Ok(())
    }

    /// The recipients of a campaign that have jobs on the queue.
    pub(crate) async fn queued(&self, id: CampaignId) -> Result<Vec<RecipientId>, Error> {
        let filter =
            RecipientFilter { state: Some(RecipientState::Queued), ..RecipientFilter::default() };
        let (mut queued, mut after) = (Vec::new(), None);
        loop {
            let page = self.shared.store.recipients(id, &filter, after, PAGE).await?;
            after = page.last().map(|recipient| recipient.position);
            queued.extend(page.iter().map(|recipient| recipient.id));
            if page.len() < PAGE as usize {
                return Ok(queued);
            }
        }
    }

    /// Removes jobs of recipients that are not queued any more. A job that is left finds nothing to claim.
    pub(crate) async fn remove_jobs(&self, recipients: &[RecipientId]) {
        use futures::stream::{self, StreamExt};
        let ids: Vec<String> = recipients.iter().map(RecipientId::to_string).collect();
        let remove = |id: String| {
            let messages = self.shared.messages.clone();
            async move { messages.remove(&id).await }
        };
        let mut removing = stream::iter(ids.into_iter().map(remove)).buffer_unordered(64);
        while let Some(removed) = removing.next().await {
            if let Err(error) = removed {
                tracing::debug!(%error, "cannot remove the job of a message");
            }
        }
    }
}
