//! Campaigns with their accounts, as the jobs of this process read them: at most half a second old.
//!
//! A snapshot decides how fast a message may leave and what is in it, never whether it leaves: the claim compares the versions
//! of campaign and account (`campaign_seen` and `account_seen` of `stampede_store::Claim`). What was paused or changed since is
//! read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_channel as channel;
use stampede_model::CampaignId;
use stampede_model::campaign::CampaignState;
use stampede_store::{Account, Campaign, Store};

use crate::Error;
use crate::texts::{self, Ready};

/// No snapshot is older.
const OLDEST: Duration = Duration::from_millis(500);
/// Snapshots that are kept; then those that are too old are dropped.
const KEPT: usize = 256;

/// A campaign and its account.
pub(crate) struct Snapshot {
    pub(crate) campaign: Campaign,
    pub(crate) account: Account,
    /// The account as its channel needs it, with its credentials.
    pub(crate) sender: channel::Account,
    /// The content, compiled.
    pub(crate) ready: Ready,
    read: Instant,
}

/// The snapshots of this process.
pub(crate) struct Snapshots {
    store: Store,
    kept: Mutex<HashMap<CampaignId, Arc<Snapshot>>>,
}

impl Snapshots {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, kept: Mutex::default() }
    }

    /// A campaign that is running, with its account; `None`: it is not running, or one of the two is gone.
    pub(crate) async fn running(&self, id: CampaignId) -> Result<Option<Arc<Snapshot>>, Error> {
        let kept = self.kept.lock().get(&id).cloned();
        if let Some(kept) = kept.filter(|snapshot| snapshot.read.elapsed() < OLDEST) {
            return Ok(Some(kept));
        }
        // A campaign that does not run is read every time: it may have been resumed a moment ago.
        let snapshot = self.read(id).await?;
        let Some(snapshot) = snapshot.filter(|read| read.campaign.state == CampaignState::Running)
        else {
            self.forget(id);
            return Ok(None);
        };
        let snapshot = Arc::new(snapshot);
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT {
            kept.retain(|_, snapshot| snapshot.read.elapsed() < OLDEST);
        }
        kept.insert(id, snapshot.clone());
        Ok(Some(snapshot))
    }

    /// A campaign in any state, with its account, as it is now; `None`: one of the two is gone.
    pub(crate) async fn read(&self, id: CampaignId) -> Result<Option<Snapshot>, Error> {
        let read = Instant::now();
        let Some(campaign) = self.store.campaign(id).await? else { return Ok(None) };
        let Some(account) = self.store.account(&campaign.account).await? else { return Ok(None) };
        let sender = sender(&self.store, &account).await?;
        let ready = texts::ready(&campaign, account.channel);
        Ok(Some(Snapshot { campaign, account, sender, ready, read }))
    }

    /// The next reader reads the campaign again.
    pub(crate) fn forget(&self, id: CampaignId) {
        self.kept.lock().remove(&id);
    }
}

/// An account as its channel needs it.
pub(crate) async fn sender(store: &Store, account: &Account) -> Result<channel::Account, Error> {
    let credentials = store.account_credentials(&account.id).await?.unwrap_or_default();
    Ok(channel::Account {
        id: account.id.clone(),
        channel: account.channel,
        settings: account.settings.clone(),
        credentials,
        version: account.updated_at,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use stampede_model::campaign::{AccountId, AutoPause, Channel, Content, Pacing};
    use stampede_store::CampaignCounts;

    use super::*;

    /// A running campaign that writes to the console.
    pub(crate) fn snapshot(pacing: Pacing) -> Snapshot {
        let at = crate::now();
        let campaign = Campaign {
            id: CampaignId::generate(),
            owner: "ann".to_owned(),
            name: "News".to_owned(),
            account: AccountId::console(),
            state: CampaignState::Running,
            reason: None,
            content: Content::Own,
            pacing,
            auto_pause: AutoPause::default(),
            max_attempts: 3,
            time_zone: None,
            country: None,
            start_at: None,
            end_at: None,
            event: None,
            batch: None,
            counts: CampaignCounts::default(),
            importing: None,
            created_at: at,
            updated_at: at,
            started_at: Some(at),
            ended_at: None,
        };
        let account = Account {
            id: AccountId::console(),
            owner: None,
            name: "Console".to_owned(),
            channel: Channel::Console,
            settings: "{}".to_owned(),
            pacing: Pacing::default(),
            country: None,
            time_zone: None,
            blocked: None,
            first_sent_at: None,
            created_at: at,
            updated_at: at,
        };
        let sender = channel::Account {
            id: account.id.clone(),
            channel: account.channel,
            settings: account.settings.clone(),
            credentials: Vec::new(),
            version: at,
        };
        let ready = texts::ready(&campaign, account.channel);
        Snapshot { campaign, account, sender, ready, read: Instant::now() }
    }
}
