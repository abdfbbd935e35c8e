//! The states of campaigns in SQL: a campaign moves together with its recipients.

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{
    AccountId, CampaignChange, CampaignState, SkipReason, next_campaign_state,
};
use stampede_model::{CampaignId, Timestamp};

use super::find_campaign;
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::rows::parsed;
use crate::sql::transaction::in_transaction;
use crate::{Campaign, Move, Moved, Result, rules};

impl Sql {
    pub(super) async fn make_move(&self, change: &Move) -> Result<Moved> {
        // Cancelling may skip very many recipients.
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            let Some(campaign) = self.hold_campaign(&mut *db, change.campaign).await? else {
                return Ok(Moved::NotFound);
            };
            if change.seen.is_some_and(|seen| seen != campaign.updated_at) {
                return Ok(Moved::Changed(Box::new(campaign)));
            }
            let Some(next) = next_campaign_state(campaign.state, change.change) else {
                return Ok(Moved::WrongState(Box::new(campaign)));
            };
            let begins = matches!(change.change, CampaignChange::Start | CampaignChange::Schedule);
            if begins && campaign.importing.is_some() {
                return Ok(Moved::Importing);
            }
            if change.change == CampaignChange::Complete && campaign.counts.open() > 0 {
                return Ok(Moved::WrongState(Box::new(campaign)));
            }
            if next == campaign.state && change.change != CampaignChange::Schedule {
                return Ok(Moved::Done(Box::new(campaign)));
            }
            let start_at = match change.change {
                CampaignChange::Schedule => change.start_at.or(campaign.start_at),
                _ => campaign.start_at,
            };
            let campaign = Campaign { start_at, ..campaign };
            self.enter(&mut *db, &campaign, next, change.reason.as_deref(), change.now).await?;
            let found = find_campaign(db, campaign.id).await?;
            Ok(found.map_or(Moved::NotFound, |campaign| Moved::Done(Box::new(campaign))))
        })
    }

    /// Locks a campaign until the transaction ends, then reads it.
    pub(super) async fn hold_campaign(
        &self,
        db: &mut AnyConnection,
        id: CampaignId,
    ) -> sqlx::Result<Option<Campaign>> {
        let lock = self.dialect.to_count_on();
        if !lock.is_empty() {
            let sql = format!("SELECT id FROM campaigns WHERE id = $1 {lock}");
            sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).execute(&mut *db).await?;
        }
        find_campaign(db, id).await
    }

    /// Brings a campaign that is locked into a state, and its recipients with it.
    pub(super) async fn enter(
        &self,
        db: &mut AnyConnection,
        campaign: &Campaign,
        state: CampaignState,
        reason: Option<&str>,
        now: Timestamp,
    ) -> sqlx::Result<()> {
        let has_ended = matches!(state, CampaignState::Completed | CampaignState::Cancelled);
        let started = campaign.started_at.or((state == CampaignState::Running).then_some(now));
        sqlx::query(
            "UPDATE campaigns SET state = $2, reason = $3, start_at = $4, started_at = $5, ended_at = $6, \
             updated_at = $7 WHERE id = $1",
        )
        .bind(campaign.id.to_string())
        .bind(state.as_str())
        .bind(reason)
        .bind(campaign.start_at.map(Timestamp::as_millisecond))
        .bind(started.map(Timestamp::as_millisecond))
        .bind(has_ended.then(|| now.as_millisecond()))
        .bind(rules::later(now, campaign.updated_at).as_millisecond())
        .execute(&mut *db)
        .await?;
        match state {
            CampaignState::Paused | CampaignState::Draft => {
                self.unqueue(db, campaign.id, now).await.map(drop)
            }
            CampaignState::Cancelled => {
                self.skip_open(db, campaign.id, SkipReason::Cancelled, now).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes the queued recipients of a campaign that is locked pending.
    async fn unqueue(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        now: Timestamp,
    ) -> sqlx::Result<u64> {
        self.lock_recipients_of(&mut *db, campaign, "state = 'queued'").await?;
        let done = sqlx::query(
            "UPDATE campaign_recipients SET state = 'pending', updated_at = $2 \
             WHERE campaign_id = $1 AND state = 'queued'",
        );
        let done = done.bind(campaign.to_string()).bind(now.as_millisecond()).execute(db).await?;
        Ok(done.rows_affected())
    }

    /// Skips what is left of a campaign that is locked.
    pub(super) async fn skip_open(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        reason: SkipReason,
        now: Timestamp,
    ) -> sqlx::Result<u64> {
        self.lock_recipients_of(&mut *db, campaign, "state IN ('pending', 'queued')").await?;
        let done = sqlx::query(
            "UPDATE campaign_recipients SET state = 'skipped', skip_reason = $3, next_at = NULL, updated_at = $2 \
             WHERE campaign_id = $1 AND state IN ('pending', 'queued')",
        );
        let done = done.bind(campaign.to_string()).bind(now.as_millisecond());
        Ok(done.bind(reason.as_str()).execute(db).await?.rows_affected())
    }

    /// Locks recipients of a campaign in the order of their ids.
    pub(super) async fn lock_recipients_of(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        condition: &str,
    ) -> sqlx::Result<()> {
        let lock = self.dialect.to_change();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM campaign_recipients WHERE campaign_id = $1 AND {condition} ORDER BY id {lock}"
            );
            sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string()).execute(db).await?;
        }
        Ok(())
    }

    /// Notes why an account may not send, and pauses its running campaigns.
    pub(super) async fn block(
        &self,
        db: &mut AnyConnection,
        account: &AccountId,
        reason: &str,
        now: Timestamp,
    ) -> sqlx::Result<Vec<CampaignId>> {
        sqlx::query("UPDATE campaign_accounts SET blocked = $2 WHERE id = $1")
            .bind(account.as_str())
            .bind(reason)
            .execute(&mut *db)
            .await?;
        let find = format!(
            "SELECT id FROM campaigns WHERE account_id = $1 AND state = 'running' AND deleted = 0 \
             ORDER BY id {}",
            self.dialect.to_count_on()
        );
        let running = sqlx::query(AssertSqlSafe(find)).bind(account.as_str());
        let running = running.fetch_all(&mut *db).await?;
        let running: Vec<CampaignId> =
            running.iter().map(|row| parsed(row, "id")).collect::<sqlx::Result<_>>()?;
        for id in &running {
            if let Some(campaign) = find_campaign(&mut *db, *id).await? {
                self.enter(&mut *db, &campaign, CampaignState::Paused, Some(reason), now).await?;
            }
        }
        Ok(running)
    }
}
