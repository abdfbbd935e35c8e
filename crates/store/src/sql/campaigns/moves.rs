//! The states of campaigns in SQL: a campaign moves together with its queued recipients, of which there are a thousand at most.
//! The others of a cancelled campaign are skipped in portions: SQLite has one writer, and a million rows would hold up all others.

use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{
    AccountId, CampaignChange, CampaignState, SkipReason, next_campaign_state,
};
use stampede_model::feed::Change;
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::find_campaign;
use super::told::TOLD_EVERY;
use crate::Durability::{Relaxed, Synced};
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{parsed, time, value};
use crate::sql::transaction::in_transaction;
use crate::{Blocked, Campaign, Move, Moved, Result, Stopped, rules};

/// A campaign that is in another state.
pub(super) struct Entered {
    pub(super) campaign: Campaign,
    /// Recipients that were queued and are not any more.
    pub(super) taken_back: Vec<RecipientId>,
}

/// Whether an account may send.
pub(super) enum Sender {
    /// It may; with its version.
    Ready(Timestamp),
    /// It may not, for this reason.
    Blocked(String),
    /// It was deleted.
    Gone,
}

/// Finds out whether an account may send.
pub(super) async fn find_sender(db: &mut AnyConnection, id: &AccountId) -> sqlx::Result<Sender> {
    let find = sqlx::query(
        "SELECT id, blocked, updated_at FROM campaign_accounts WHERE id = $1 AND deleted = 0",
    );
    let Some(row) = find.bind(id.as_str()).fetch_optional(db).await? else {
        return Ok(Sender::Gone);
    };
    Ok(match value::<Option<String>>(&row, "blocked")? {
        Some(reason) => Sender::Blocked(reason),
        None => Sender::Ready(time(&row, "updated_at")?),
    })
}

impl Sql {
    pub(super) async fn make_move(&self, change: &Move) -> Result<Moved> {
        let begins = matches!(change.change, CampaignChange::Start | CampaignChange::Schedule);
        in_transaction!(self, Synced, async |db| {
            if begins {
                self.lock_account_of(&mut *db, change.campaign).await?;
            }
            let Some(campaign) = self.hold_campaign(&mut *db, change.campaign).await? else {
                return Ok(Moved::NotFound);
            };
            if change.seen.is_some_and(|seen| seen != campaign.updated_at) {
                return Ok(Moved::Changed(Box::new(campaign)));
            }
            let Some(next) = next_campaign_state(campaign.state, change.change) else {
                return Ok(Moved::WrongState(Box::new(campaign)));
            };
            if begins && campaign.importing.is_some() {
                return Ok(Moved::Importing);
            }
            if change.change == CampaignChange::Complete && campaign.counts.open() > 0 {
                return Ok(Moved::WrongState(Box::new(campaign)));
            }
            if next == campaign.state && change.change != CampaignChange::Schedule {
                return Ok(Moved::Done(Box::new(campaign), Vec::new()));
            }
            if begins {
                match find_sender(&mut *db, &campaign.account).await? {
                    Sender::Ready(_) => {}
                    Sender::Blocked(reason) => return Ok(Moved::NoAccount(Some(reason))),
                    Sender::Gone => return Ok(Moved::NoAccount(None)),
                }
            }
            let start_at = match change.change {
                CampaignChange::Schedule => change.start_at.or(campaign.start_at),
                _ => campaign.start_at,
            };
            let campaign = Campaign { start_at, ..campaign };
            let reason = change.reason.as_deref();
            let entered = self.enter(db, &campaign, next, reason, change.now).await?;
            Ok(Moved::Done(Box::new(entered.campaign), entered.taken_back))
        })
    }

    /// Locks the account of a campaign that begins, so that nobody deletes or blocks the account meanwhile.
    async fn lock_account_of(&self, db: &mut AnyConnection, id: CampaignId) -> sqlx::Result<()> {
        let lock = self.dialect.to_rely_on();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM campaign_accounts WHERE id = (SELECT account_id FROM campaigns WHERE id = $1) {lock}"
            );
            sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).execute(db).await?;
        }
        Ok(())
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

    /// Brings a campaign that is locked into a state, and its queued recipients with it. Tells it.
    pub(super) async fn enter(
        &self,
        db: &mut AnyConnection,
        campaign: &Campaign,
        state: CampaignState,
        reason: Option<&str>,
        now: Timestamp,
    ) -> sqlx::Result<Entered> {
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
        let taken_back = match state {
            CampaignState::Paused | CampaignState::Draft => {
                self.take_back(&mut *db, campaign.id, "state = 'pending'", now).await?
            }
            CampaignState::Cancelled => {
                let skip = "state = 'skipped', skip_reason = 'cancelled'";
                self.take_back(&mut *db, campaign.id, skip, now).await?
            }
            _ => Vec::new(),
        };
        let entered = find_campaign(&mut *db, campaign.id).await?;
        let campaign = entered.ok_or(sqlx::Error::RowNotFound)?;
        self.tell_campaign(db, &campaign, Change::CampaignChanged).await?;
        Ok(Entered { campaign, taken_back })
    }

    /// Brings the queued recipients of a campaign that is locked into another state; returns them.
    async fn take_back(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        assignments: &str,
        now: Timestamp,
    ) -> sqlx::Result<Vec<RecipientId>> {
        self.lock_recipients_of(&mut *db, campaign, "state = 'queued'").await?;
        let update = format!(
            "UPDATE campaign_recipients SET {assignments}, updated_at = $2 \
             WHERE campaign_id = $1 AND state = 'queued' RETURNING id"
        );
        let update = sqlx::query(AssertSqlSafe(update)).bind(campaign.to_string());
        let taken = update.bind(now.as_millisecond()).fetch_all(db).await?;
        taken.iter().map(|row| parsed(row, "id")).collect()
    }

    /// Skips up to `limit` pending and queued recipients of a campaign; returns how many it has found.
    pub(super) async fn skip_some(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        reason: SkipReason,
        limit: u32,
        now: Timestamp,
    ) -> sqlx::Result<u64> {
        // In the order of an index; they are locked in the order of their ids.
        let find = sqlx::query(
            "SELECT id FROM campaign_recipients WHERE campaign_id = $1 \
             AND state IN ('pending', 'queued') LIMIT $2",
        );
        let find = find.bind(campaign.to_string()).bind(i64::from(limit));
        let found = find.fetch_all(&mut *db).await?;
        if found.is_empty() {
            return Ok(0);
        }
        let ids: Vec<RecipientId> =
            found.iter().map(|row| parsed(row, "id")).collect::<sqlx::Result<_>>()?;
        let ids = to_json(&ids);
        self.lock_recipients(&mut *db, &ids).await?;
        let update = format!(
            "UPDATE campaign_recipients SET state = 'skipped', skip_reason = $3, next_at = NULL, \
             updated_at = $2 WHERE state IN ('pending', 'queued') AND id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let update = sqlx::query(AssertSqlSafe(update)).bind(ids).bind(now.as_millisecond());
        update.bind(reason.as_str()).execute(db).await?;
        Ok(found.len() as u64)
    }

    /// Skips up to `limit` recipients that are left of a cancelled campaign.
    pub(super) async fn skip_left(
        &self,
        id: CampaignId,
        limit: u32,
        now: Timestamp,
    ) -> Result<u64> {
        in_transaction!(self, Relaxed, async |db| {
            // No lock: a campaign that is cancelled stays so.
            let found = find_campaign(&mut *db, id).await?;
            if found.is_none_or(|found| found.state != CampaignState::Cancelled) {
                return Ok(0);
            }
            let skipped = self.skip_some(&mut *db, id, SkipReason::Cancelled, limit, now).await?;
            let every = if skipped < u64::from(limit) { Duration::ZERO } else { TOLD_EVERY };
            self.tell_progress(db, id, every, now).await?;
            Ok(skipped)
        })
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

    /// Notes why an account may not send, and pauses its running campaigns; nothing if it has another version than `seen`.
    pub(super) async fn block(
        &self,
        db: &mut AnyConnection,
        account: &AccountId,
        reason: &str,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> sqlx::Result<Blocked> {
        let lock = format!(
            "SELECT id, blocked, updated_at FROM campaign_accounts WHERE id = $1 {}",
            self.dialect.to_change()
        );
        let held = sqlx::query(AssertSqlSafe(lock)).bind(account.as_str());
        let held = held.fetch_optional(&mut *db).await?;
        let version = held.as_ref().map(|row| time(row, "updated_at")).transpose()?;
        if seen.is_some() && seen != version {
            return Ok(Blocked::default());
        }
        let before =
            held.as_ref().map(|row| value::<Option<String>>(row, "blocked")).transpose()?;
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
        let mut stopped = Vec::with_capacity(running.len());
        for campaign in running {
            if let Some(found) = find_campaign(&mut *db, campaign).await? {
                let paused = CampaignState::Paused;
                let entered = self.enter(&mut *db, &found, paused, Some(reason), now).await?;
                stopped.push(Stopped { campaign, taken_back: entered.taken_back });
            }
        }
        Ok(Blocked { is_new: before == Some(None), stopped })
    }
}
