//! What people and the reconciler settle, in SQL: many recipients in one statement, a portion in each transaction.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use stampede_model::campaign::{CampaignChange, next_campaign_state};
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::told::TOLD_EVERY;
use crate::Durability::Synced;
use crate::campaigns::{LOST, LOST_DETAIL};
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{number, parsed};
use crate::sql::transaction::in_transaction;
use crate::{Result, Settlement};

/// A recipient that the provider did not want now is not tried again before.
const NOT_NOW: Duration = Duration::from_secs(24 * 3_600);

/// Recipients that are settled in one transaction.
const PORTION: usize = 5_000;

/// How recipients of a campaign are settled.
struct Step {
    campaign: CampaignId,
    /// They are sent to again.
    is_again: bool,
    assignments: String,
    condition: String,
    now: Timestamp,
}

impl Sql {
    pub(super) async fn settle(
        &self,
        campaign: CampaignId,
        settlement: Settlement,
        ids: Option<&[RecipientId]>,
        now: Timestamp,
    ) -> Result<u64> {
        let again = "state = 'pending', next_at = NULL, code = NULL, detail = NULL";
        let (assignments, condition) = match settlement {
            Settlement::Resend => (again.to_owned(), "state = 'unknown'".to_owned()),
            Settlement::Sent => (
                "state = 'sent', code = NULL, detail = NULL, sent_at = COALESCE(sent_at, $2)"
                    .to_owned(),
                "state = 'unknown'".to_owned(),
            ),
            Settlement::Failed => ("state = 'failed'".to_owned(), "state = 'unknown'".to_owned()),
            Settlement::RetryFailed => (
                // Attempts whose ends nobody logged stay known: a receipt may still tell that one of them arrived.
                format!(
                    "{again}, attempts = 0, logged = CASE WHEN logged < attempts THEN attempts ELSE logged END"
                ),
                format!(
                    "state = 'failed' AND (code IS NULL OR code <> 'not_now' OR updated_at <= {})",
                    (now - NOT_NOW).as_millisecond()
                ),
            ),
        };
        let step = Step {
            campaign,
            is_again: matches!(settlement, Settlement::Resend | Settlement::RetryFailed),
            assignments,
            condition,
            now,
        };
        let Some(ids) = ids else { return self.settle_portions(&step, None).await };
        let mut settled = 0;
        for portion in ids.chunks(PORTION) {
            settled += self.settle_portions(&step, Some(portion)).await?;
        }
        Ok(settled)
    }

    /// Settles recipients by position, a portion in each transaction: other writers get their turn between two of them.
    async fn settle_portions(&self, step: &Step, ids: Option<&[RecipientId]>) -> Result<u64> {
        let (mut after, mut settled) = (Some(0), 0);
        while let Some(position) = after {
            let (portion, last) = self.settle_portion(step, ids, position).await?;
            (after, settled) = (last, settled + portion);
        }
        Ok(settled)
    }

    /// Settles a portion of recipients behind a position; returns how many, and the last position if there may be more.
    async fn settle_portion(
        &self,
        step: &Step,
        ids: Option<&[RecipientId]>,
        after: i64,
    ) -> Result<(u64, Option<i64>)> {
        let Step { campaign, is_again, assignments, condition, now } = step;
        let named = match ids {
            Some(_) => format!(" AND id IN (SELECT value FROM {})", self.dialect.each_text("$4")),
            None => String::new(),
        };
        // In the order of an index: only pending recipients have a time.
        let find = format!(
            "SELECT id, position FROM campaign_recipients WHERE campaign_id = $1 AND next_at IS NULL \
             AND position > $2 AND {condition}{named} ORDER BY next_at, position LIMIT $3"
        );
        // The run that had claimed it has no say any more.
        let update = format!(
            "UPDATE campaign_recipients SET {assignments}, run_id = NULL, updated_at = $2 \
             WHERE {condition} AND id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let ids = ids.map(|ids| to_json(&ids));
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            let Some(found) = self.hold_campaign(&mut *db, *campaign).await? else {
                return Ok((0, None));
            };
            let next = next_campaign_state(found.state, CampaignChange::Reopen);
            if *is_again && next.is_none() {
                return Ok((0, None));
            }
            let query = sqlx::query(AssertSqlSafe(find.as_str()))
                .bind(campaign.to_string())
                .bind(after)
                .bind(PORTION as i64);
            let query = match &ids {
                Some(ids) => query.bind(ids.as_str()),
                None => query,
            };
            let rows = query.fetch_all(&mut *db).await?;
            let last = rows.last().map(|row| number(row, "position")).transpose()?;
            let last = last.filter(|_| rows.len() == PORTION);
            let portion: Vec<RecipientId> =
                rows.iter().map(|row| parsed(row, "id")).collect::<sqlx::Result<_>>()?;
            let mut settled = 0;
            if !portion.is_empty() {
                let portion = to_json(&portion);
                self.lock_recipients(&mut *db, &portion).await?;
                let update = sqlx::query(AssertSqlSafe(update.as_str())).bind(portion);
                let update = update.bind(now.as_millisecond());
                settled = update.execute(&mut *db).await?.rows_affected();
            }
            if let (true, 1.., Some(next)) = (*is_again, settled, next)
                && next != found.state
            {
                self.enter(&mut *db, &found, next, None, *now).await?;
            }
            let every = if last.is_none() { Duration::ZERO } else { TOLD_EVERY };
            self.tell_progress(db, *campaign, every, *now).await?;
            Ok((settled, last))
        })
    }

    pub(super) async fn put_back(&self, ids: &[RecipientId], now: Timestamp) -> Result<u64> {
        if ids.is_empty() {
            return Ok(0);
        }
        let ids = to_json(&ids);
        in_transaction!(self, Synced, async |db| {
            self.lock_campaigns_of(&mut *db, &ids).await?;
            self.lock_recipients(&mut *db, &ids).await?;
            let update = format!(
                "UPDATE campaign_recipients SET \
                 code = CASE WHEN state = 'sending' THEN '{LOST}' ELSE code END, \
                 detail = CASE WHEN state = 'sending' THEN '{LOST_DETAIL}' ELSE detail END, \
                 state = CASE WHEN state = 'sending' THEN 'unknown' ELSE 'pending' END, updated_at = $2 \
                 WHERE state IN ('queued', 'sending') AND id IN (SELECT value FROM {})",
                self.dialect.each_text("$1")
            );
            let update = sqlx::query(AssertSqlSafe(update)).bind(ids.as_str());
            Ok(update.bind(now.as_millisecond()).execute(db).await?.rows_affected())
        })
    }
}
