//! What people and the reconciler settle, in SQL: many recipients in one statement.

use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{CampaignChange, next_campaign_state};
use stampede_model::{CampaignId, RecipientId, Timestamp};

use crate::Durability::Synced;
use crate::campaigns::{LOST, LOST_DETAIL};
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::transaction::in_transaction;
use crate::{Result, Settlement};

/// A recipient that the provider did not want now is not tried again before.
const NOT_NOW: Duration = Duration::from_secs(24 * 3_600);

impl Sql {
    pub(super) async fn settle(
        &self,
        campaign: CampaignId,
        settlement: Settlement,
        ids: Option<&[RecipientId]>,
        now: Timestamp,
    ) -> Result<u64> {
        let again = "state = 'pending', next_at = NULL, code = NULL, detail = NULL";
        let (assignments, mut condition) = match settlement {
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
        if ids.is_some() {
            condition +=
                &format!(" AND id IN (SELECT value FROM {})", self.dialect.each_text("$3"));
        }
        // The run that had claimed it has no say any more.
        let update = format!(
            "UPDATE campaign_recipients SET {assignments}, run_id = NULL, updated_at = $2 \
             WHERE campaign_id = $1 AND {condition}"
        );
        let is_again = matches!(settlement, Settlement::Resend | Settlement::RetryFailed);
        let ids = ids.map(|ids| to_json(&ids));
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            let Some(found) = self.hold_campaign(&mut *db, campaign).await? else { return Ok(0) };
            let next = next_campaign_state(found.state, CampaignChange::Reopen);
            if is_again && next.is_none() {
                return Ok(0);
            }
            self.lock_recipients_of(&mut *db, campaign, "state IN ('unknown', 'failed')").await?;
            let query = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(campaign.to_string())
                .bind(now.as_millisecond());
            let query = match &ids {
                Some(ids) => query.bind(ids.as_str()),
                None => query,
            };
            let settled = query.execute(&mut *db).await?.rows_affected();
            if let (true, 1.., Some(next)) = (is_again, settled, next)
                && next != found.state
            {
                self.enter(&mut *db, &found, next, None, now).await?;
            }
            self.tell_progress(db, campaign, Duration::ZERO, now).await?;
            Ok(settled)
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

    /// Locks the campaigns of recipients, which keep their states.
    async fn lock_campaigns_of(&self, db: &mut AnyConnection, ids: &str) -> sqlx::Result<()> {
        let lock = self.dialect.to_rely_on();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM campaigns WHERE id IN (SELECT campaign_id FROM campaign_recipients \
                 WHERE id IN (SELECT value FROM {})) ORDER BY id {lock}",
                self.dialect.each_text("$1")
            );
            sqlx::query(AssertSqlSafe(sql)).bind(ids).execute(db).await?;
        }
        Ok(())
    }
}
