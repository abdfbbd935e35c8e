//! Campaigns in SQL.
//!
//! | file | holds |
//! |---|---|
//! | `accounts.rs` | accounts |
//! | `moves.rs` | the states of campaigns |
//! | `imports.rs` | recipients that come |
//! | `feed.rs` | recipients that get a job |
//! | `held.rs` | locking, reading and writing a group of recipients |
//! | `runs.rs` | claims, results of runs, receipts |
//! | `settle.rs` | what people and the reconciler settle |
//! | `known.rs`, `new_rows.rs` | which recipients are known before they come; the rows that are written |
//! | `ledger.rs` | lists |
//! | `reports.rs` | questions about many recipients at once |
//! | `past_sends.rs` | messages that left |
//! | `test_log.rs` | test messages |
//! | `suppressions.rs` | suppressed addresses |
//! | `told.rs` | what outsiders are told of campaigns |
//! | `rows.rs` | reads rows |
//!
//! Every transaction locks in one order: accounts, campaigns, imports, recipients by id, counts (in triggers). Whoever makes
//! recipients pending locks their campaign, shared or not: so a campaign that is completed has none, and one that is cancelled
//! gets none besides those that are skipped in portions.

mod accounts;
mod feed;
mod held;
mod imports;
mod known;
mod ledger;
mod moves;
mod new_rows;
mod past_sends;
mod reports;
mod rows;
mod runs;
mod settle;
mod suppressions;
mod test_log;
mod told;

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::AccountId;
use stampede_model::feed::Change;
use stampede_model::{CampaignId, Timestamp};

use super::page::to_json;
use super::rows::parsed;
use super::transaction::in_transaction;
use super::versions::{Held, Of};
use super::{Sql, slices};
use crate::Durability::{Relaxed, Synced};
use crate::{
    Blocked, Campaign, CampaignCounts, CampaignFilter, Campaigns, Move, Moved, Result, Slice,
    Versioned,
};

#[async_trait]
impl Campaigns for Sql {
    async fn insert_campaign(&self, campaign: &Campaign) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
            insert(&mut *db, campaign).await?;
            self.tell_campaign(db, campaign, Change::CampaignCreated).await
        })
    }

    async fn campaign(&self, id: CampaignId) -> Result<Option<Campaign>> {
        let sql = select("id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::campaign).await
    }

    async fn campaigns(
        &self,
        filter: &CampaignFilter,
        slice: &Slice<CampaignId>,
    ) -> Result<Vec<Campaign>> {
        let mut conditions = Vec::new();
        conditions.extend(filter.owner.clone().map(|owner| ("owner =", owner)));
        conditions.extend(filter.state.map(|state| ("state =", state.as_str().to_owned())));
        conditions.extend(filter.account.as_ref().map(|id| ("account_id =", id.to_string())));
        conditions.extend(filter.event.map(|id| ("event_id =", id.to_string())));
        conditions.extend(slices::conditions(slice));
        let mut sql = select("TRUE");
        for (number, (condition, _)) in conditions.iter().enumerate() {
            sql += &format!(" AND {condition} ${}", number + 2);
        }
        sql += &format!(" ORDER BY {} LIMIT $1", slices::order(slice));
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(slice.limit));
        for (_, value) in conditions {
            query = query.bind(value);
        }
        self.fetch_all(query, rows::campaign).await
    }

    async fn update_campaign_as_seen(
        &self,
        campaign: &Campaign,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Campaign>> {
        let update = format!(
            "UPDATE campaigns SET name = $2, \
             account_id = CASE WHEN started_at IS NOT NULL OR EXISTS (SELECT 1 FROM campaign_imports \
             WHERE campaign_imports.campaign_id = campaigns.id) THEN account_id ELSE $3 END, \
             content = CASE WHEN state = 'running' THEN content ELSE $4 END, \
             pacing = $5, auto_pause = $6, max_attempts = $7, time_zone = $8, country = $9, \
             start_at = $10, end_at = $11, updated_at = {} WHERE id = $1 AND deleted = 0",
            self.dialect.later("$12", "updated_at")
        );
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(&mut *db, Of::Campaign, &campaign.id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(campaign.id.to_string())
                .bind(campaign.name.as_str())
                .bind(campaign.account.as_str())
                .bind(to_json(&campaign.content))
                .bind(to_json(&campaign.pacing))
                .bind(to_json(&campaign.auto_pause))
                .bind(i64::from(campaign.max_attempts))
                .bind(campaign.time_zone.as_deref())
                .bind(campaign.country.as_deref())
                .bind(ms(campaign.start_at))
                .bind(ms(campaign.end_at))
                .bind(campaign.updated_at.as_millisecond())
                .execute(&mut *db)
                .await?;
            let Some(found) = find_campaign(&mut *db, campaign.id).await? else {
                return Ok(Versioned::NotFound);
            };
            self.tell_campaign(db, &found, Change::CampaignChanged).await?;
            Ok(Versioned::Done(found))
        })
    }

    async fn move_campaign(&self, change: &Move) -> Result<Moved> {
        self.make_move(change).await
    }

    async fn block_account(
        &self,
        account: &AccountId,
        reason: &str,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Blocked> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            self.block(db, account, reason, seen, now).await
        })
    }

    async fn delete_campaign_as_seen(
        &self,
        id: CampaignId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>> {
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(&mut *db, Of::Campaign, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            let Some(campaign) = find_campaign(&mut *db, id).await? else {
                return Ok(Versioned::NotFound);
            };
            if campaign.state == stampede_model::campaign::CampaignState::Running {
                return Ok(Versioned::ChangedMeanwhile);
            }
            sqlx::query("UPDATE campaigns SET deleted = 1 WHERE id = $1")
                .bind(id.to_string())
                .execute(&mut *db)
                .await?;
            sqlx::query("DELETE FROM campaign_imports WHERE campaign_id = $1")
                .bind(id.to_string())
                .execute(&mut *db)
                .await?;
            self.tell_campaign(db, &campaign, Change::CampaignDeleted).await?;
            Ok(Versioned::Done(()))
        })
    }

    async fn skip_cancelled(&self, id: CampaignId, limit: u32, now: Timestamp) -> Result<u64> {
        self.skip_left(id, limit, now).await
    }

    async fn cancelled_campaigns(&self, limit: u32) -> Result<Vec<CampaignId>> {
        let query = sqlx::query(
            "SELECT id FROM campaigns JOIN campaign_counts ON campaign_counts.campaign_id = campaigns.id \
             WHERE state = 'cancelled' AND deleted = 0 AND (pending > 0 OR queued > 0) \
             ORDER BY id LIMIT $1",
        );
        self.fetch_all(query.bind(i64::from(limit)), |row| parsed(row, "id")).await
    }

    async fn tell_campaigns(&self, limit: u32, now: Timestamp) -> Result<u64> {
        self.tell_untold(limit, now).await
    }

    async fn forget_campaigns(&self, limit: u32) -> Result<u64> {
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            let done = sqlx::query(
                "DELETE FROM campaign_recipients WHERE id IN (SELECT id FROM campaign_recipients \
                 WHERE campaign_id IN (SELECT id FROM campaigns WHERE deleted = 1) LIMIT $1)",
            )
            .bind(i64::from(limit))
            .execute(&mut *db)
            .await?;
            sqlx::query(
                "DELETE FROM campaigns WHERE deleted = 1 AND NOT EXISTS \
                 (SELECT 1 FROM campaign_recipients WHERE campaign_id = campaigns.id)",
            )
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
    }

    async fn campaigns_to_feed(
        &self,
        now: Timestamp,
        after: Option<CampaignId>,
        limit: u32,
    ) -> Result<Vec<CampaignId>> {
        let query = sqlx::query(
            "SELECT id FROM campaigns WHERE state IN ('running', 'scheduled') AND deleted = 0 \
             AND id > $1 AND (state = 'running' OR start_at <= $2 AND NOT EXISTS \
             (SELECT 1 FROM campaign_imports WHERE campaign_id = campaigns.id)) ORDER BY id LIMIT $3",
        );
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let query = query.bind(after).bind(now.as_millisecond()).bind(i64::from(limit));
        self.fetch_all(query, |row| parsed(row, "id")).await
    }

    async fn wrong_campaign_counts(&self) -> Result<Vec<(CampaignId, CampaignCounts)>> {
        let states = stampede_model::campaign::RecipientState::WORDS;
        let list = |write: &dyn Fn(&str) -> String, between: &str| -> String {
            states.iter().map(|state| write(state)).collect::<Vec<_>>().join(between)
        };
        let sql = format!(
            "SELECT campaign_id AS id, {} FROM campaign_counts LEFT JOIN \
             (SELECT campaign_id AS counted_id, {} FROM campaign_recipients GROUP BY campaign_id) AS counted \
             ON counted_id = campaign_id WHERE {} ORDER BY campaign_id",
            list(&|state| format!("COALESCE(right_{state}, 0) AS {state}"), ", "),
            list(
                &|state| format!("COUNT(*) FILTER (WHERE state = '{state}') AS right_{state}"),
                ", "
            ),
            list(&|state| format!("{state} <> COALESCE(right_{state}, 0)"), " OR "),
        );
        self.fetch_all_within(self.limits.order, sqlx::query(AssertSqlSafe(sql)), rows::counted)
            .await
    }
}

/// A query of the campaigns that are not deleted and meet a condition.
fn select(condition: &str) -> String {
    let (columns, tables) = (rows::CAMPAIGN, rows::CAMPAIGNS);
    format!("SELECT {columns} FROM {tables} WHERE deleted = 0 AND {condition}")
}

/// Reads a campaign inside a transaction.
async fn find_campaign(db: &mut AnyConnection, id: CampaignId) -> sqlx::Result<Option<Campaign>> {
    let sql = select("id = $1");
    let row = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await?;
    row.as_ref().map(rows::campaign).transpose()
}

async fn insert(db: &mut AnyConnection, campaign: &Campaign) -> sqlx::Result<()> {
    let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
    sqlx::query(
        "INSERT INTO campaigns (id, owner, name, account_id, state, reason, content, pacing, auto_pause, \
         max_attempts, time_zone, country, start_at, end_at, event_id, batch_id, created_at, updated_at, \
         started_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
         $16, $17, $18, $19, $20)",
    )
    .bind(campaign.id.to_string())
    .bind(campaign.owner.as_str())
    .bind(campaign.name.as_str())
    .bind(campaign.account.as_str())
    .bind(campaign.state.as_str())
    .bind(campaign.reason.as_deref())
    .bind(to_json(&campaign.content))
    .bind(to_json(&campaign.pacing))
    .bind(to_json(&campaign.auto_pause))
    .bind(i64::from(campaign.max_attempts))
    .bind(campaign.time_zone.as_deref())
    .bind(campaign.country.as_deref())
    .bind(ms(campaign.start_at))
    .bind(ms(campaign.end_at))
    .bind(campaign.event.map(|id| id.to_string()))
    .bind(campaign.batch.map(|id| id.to_string()))
    .bind(campaign.created_at.as_millisecond())
    .bind(campaign.updated_at.as_millisecond())
    .bind(ms(campaign.started_at))
    .bind(ms(campaign.ended_at))
    .execute(db)
    .await?;
    Ok(())
}
