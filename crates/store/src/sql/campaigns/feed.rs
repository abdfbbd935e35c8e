//! Feeding in SQL: the next recipients of a campaign get a job.

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{CampaignState, SkipReason};
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::find_campaign;
use super::told::TOLD_EVERY;
use crate::Durability::Relaxed;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{optional_time, parsed};
use crate::sql::transaction::in_transaction;
use crate::{Campaign, Fed, Result};

/// Recipients that are skipped in one transaction when the end of a campaign has come.
const PORTION: u32 = 5_000;
/// Recipients of a campaign that are tried again, by the time they are due.
const DUE: &str = "state = 'pending' AND next_at <= $2 ORDER BY next_at, position";
/// Recipients of a campaign that do not wait for a time, by position; the order is the one of the index.
const NEW: &str = "state = 'pending' AND next_at IS NULL ORDER BY next_at, position";

impl Sql {
    pub(super) async fn feed(&self, id: CampaignId, most: u32, now: Timestamp) -> Result<Fed> {
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            let Some(mut campaign) = self.hold_campaign(&mut *db, id).await? else {
                return Ok(Fed::default());
            };
            if is_due(&campaign, now) {
                let running = CampaignState::Running;
                campaign = self.enter(&mut *db, &campaign, running, None, now).await?.campaign;
            }
            if campaign.state != CampaignState::Running {
                let is_completed = campaign.state == CampaignState::Completed;
                return Ok(Fed { is_completed, ..Fed::default() });
            }
            if campaign.end_at.is_some_and(|end| end <= now) {
                let skipped =
                    self.skip_some(&mut *db, id, SkipReason::Expired, PORTION, now).await?;
                if skipped == u64::from(PORTION) {
                    self.tell_progress(db, id, TOLD_EVERY, now).await?;
                    return Ok(Fed { next_at: Some(now), is_running: true, ..Fed::default() });
                }
                campaign = find_campaign(&mut *db, id).await?.ok_or(sqlx::Error::RowNotFound)?;
            }
            if campaign.counts.open() == 0 {
                self.enter(db, &campaign, CampaignState::Completed, None, now).await?;
                return Ok(Fed { is_completed: true, ..Fed::default() });
            }
            let room = u64::from(most).saturating_sub(campaign.counts.queued);
            let queued = self.queue(&mut *db, id, room, now).await?;
            // While messages are on their way, the feeder comes back soon: it tells how far the campaign is.
            let is_idle = queued.is_empty()
                && room > 0
                && campaign.counts.queued == 0
                && campaign.counts.sending == 0;
            let next_at = match is_idle {
                true => next_due(&mut *db, id).await?,
                false => None,
            };
            self.tell_progress(db, id, TOLD_EVERY, now).await?;
            Ok(Fed { queued, next_at, is_completed: false, is_running: true })
        })
    }

    /// Makes pending recipients of a campaign that is locked queued.
    async fn queue(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        room: u64,
        now: Timestamp,
    ) -> sqlx::Result<Vec<RecipientId>> {
        let mut queued: Vec<RecipientId> = Vec::new();
        for condition in [DUE, NEW] {
            let left = room.saturating_sub(queued.len() as u64);
            if left == 0 {
                break;
            }
            let find = format!(
                "SELECT id FROM campaign_recipients WHERE campaign_id = $1 \
                 AND CAST($2 AS BIGINT) IS NOT NULL AND {condition} LIMIT $3"
            );
            let next = sqlx::query(AssertSqlSafe(find))
                .bind(campaign.to_string())
                .bind(now.as_millisecond())
                .bind(i64::try_from(left).unwrap_or(i64::MAX))
                .fetch_all(&mut *db)
                .await?;
            for row in &next {
                queued.push(parsed(row, "id")?);
            }
        }
        if queued.is_empty() {
            return Ok(queued);
        }
        let ids = to_json(&queued);
        self.lock_recipients(&mut *db, &ids).await?;
        let update = format!(
            "UPDATE campaign_recipients SET state = 'queued', next_at = NULL, updated_at = $2 \
             WHERE state = 'pending' AND id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let update = sqlx::query(AssertSqlSafe(update)).bind(ids).bind(now.as_millisecond());
        update.execute(db).await?;
        Ok(queued)
    }
}

/// Whether the time of a scheduled campaign has come.
fn is_due(campaign: &Campaign, now: Timestamp) -> bool {
    campaign.state == CampaignState::Scheduled
        && campaign.importing.is_none()
        && campaign.start_at.is_some_and(|start| start <= now)
}

/// When the next pending recipient of a campaign is due.
async fn next_due(db: &mut AnyConnection, campaign: CampaignId) -> sqlx::Result<Option<Timestamp>> {
    let next = sqlx::query(
        "SELECT 'next' AS id, MIN(next_at) AS next_at FROM campaign_recipients \
         WHERE campaign_id = $1 AND state = 'pending' AND next_at IS NOT NULL",
    );
    optional_time(&next.bind(campaign.to_string()).fetch_one(db).await?, "next_at")
}
