//! What the room asks the channels besides sending: forms of accounts, checks, limits of providers.

use serde_json::Value;
use stampede_channel::{self as channel, Checked};
use stampede_model::campaign::{AccountId, Channel, Rate};
use stampede_store::Account;
use stampede_wire::campaigns::AccountCheck;

use crate::{Campaigns, Error, Mistake, now, snapshot};

impl Campaigns {
    /// Asks the provider whether it accepts the account; no message is sent. `None`: there is no such account. An account that was
    /// blocked and is accepted may send again, one of which the provider says nothing may not; its campaigns stay paused until people resume them.
    pub async fn check_account(&self, id: &AccountId) -> Result<Option<AccountCheck>, Error> {
        let Some(account) = self.shared.store.account(id).await? else { return Ok(None) };
        let sender = snapshot::sender(&self.shared.store, &account).await?;
        Ok(Some(match self.shared.channels.check(&sender).await {
            Ok(Checked { is_verified, text }) => {
                if is_verified && account.blocked.is_some() {
                    // Credentials that are written again lift the block, unless somebody changed the account meanwhile.
                    let (seen, secrets) = (account.updated_at, sender.credentials);
                    let account = Account { updated_at: now(), ..account };
                    let store = &self.shared.store;
                    store.update_account_as_seen(&account, Some(&secrets), Some(seen)).await?;
                }
                AccountCheck { ok: true, verified: is_verified, message: text }
            }
            Err(failure) => {
                let message = format!("{}: {}", failure.code, failure.text);
                AccountCheck { ok: false, verified: false, message }
            }
        }))
    }

    /// Settings and credentials as they are stored, or what is wrong with them.
    pub(crate) fn read_settings(
        &self,
        channel: Channel,
        settings: &Value,
        credentials: &Value,
    ) -> Result<(String, Vec<u8>), Vec<Mistake>> {
        channel::read_settings(channel, settings, credentials).map_err(|mistakes| {
            mistakes.into_iter().map(|wrong| Mistake::new(wrong.field, wrong.reason)).collect()
        })
    }
}

/// The limit of a provider for all messages of an account: for estimates, which need no credentials.
pub(crate) fn allowed(account: &Account) -> Option<Rate> {
    channel::limits(&without_credentials(account)).channel
}

fn without_credentials(account: &Account) -> channel::Account {
    channel::Account {
        id: account.id.clone(),
        channel: account.channel,
        settings: account.settings.clone(),
        credentials: Vec::new(),
        version: account.updated_at,
    }
}
