//! Feeding in SQL: the next recipients of a campaign get a job.

use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{CampaignChange, CampaignState, SkipReason, next_campaign_state};
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::find_campaign;
use super::moves::{Sender, find_sender};
use super::told::TOLD_EVERY;
use crate::Durability::Relaxed;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{optional_time, parsed};
use crate::sql::transaction::in_transaction;
use crate::{Campaign, Fed, QUIET_HOURS, Result};

/// Recipients that are skipped in one transaction when the end of a campaign has come.
const PORTION: u32 = 5_000;
/// Recipients of a campaign that are tried again, by the time they are due.
const DUE: &str = "state = 'pending' AND next_at <= $2 ORDER BY next_at, position";
/// Recipients of a campaign that do not wait for a time, by position; the order is the one of the index.
const NEW: &str = "state = 'pending' AND next_at IS NULL ORDER BY next_at, position";
/// Recipients of a campaign that wait for hours which were changed since; the order is the one of an index.
const CHANGED: &str = "state = 'pending' AND code = 'quiet_hours' AND updated_at < $4 AND next_at > $2 ORDER BY updated_at";
/// Hours that a recipient was put off by may be older than the recipient's row: jobs read a campaign some moments before, and a change
/// gets its version some moments before its commit.
const CHANGE_SETTLES: Duration = Duration::from_secs(15);
/// The job that has put a recipient off has ended after this time: before, no other job of the recipient could be added.
const JOB_ENDS: Duration = Duration::from_secs(2);

impl Sql {
    pub(super) async fn feed(&self, id: CampaignId, most: u32, now: Timestamp) -> Result<Fed> {
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            let Some(mut campaign) = self.hold_campaign(&mut *db, id).await? else {
                return Ok(Fed::default());
            };
            let mut hours_seen = campaign.updated_at;
            if campaign.state == CampaignState::Running || is_due(&campaign, now) {
                let reason = match find_sender(&mut *db, &campaign.account).await? {
                    Sender::Ready(version) => {
                        hours_seen = hours_seen.max(version);
                        None
                    }
                    Sender::Blocked(reason) => Some(reason),
                    Sender::Gone => Some(format!("account {} was deleted", campaign.account)),
                };
                let next = next_campaign_state(campaign.state, CampaignChange::Pause);
                if let (Some(reason), Some(next)) = (reason, next) {
                    let entered = self.enter(db, &campaign, next, Some(&reason), now).await?;
                    let taken_back = entered.taken_back;
                    return Ok(Fed { stopped: Some(reason), taken_back, ..Fed::default() });
                }
            }
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
            let queued = self.queue(&mut *db, id, room, hours_seen, now).await?;
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
            Ok(Fed { queued, next_at, is_running: true, ..Fed::default() })
        })
    }

    /// Makes pending recipients of a campaign that is locked queued.
    async fn queue(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        room: u64,
        hours_seen: Timestamp,
        now: Timestamp,
    ) -> sqlx::Result<Vec<RecipientId>> {
        let mut queued: Vec<RecipientId> = Vec::new();
        let changed = (hours_seen + CHANGE_SETTLES).min(now - JOB_ENDS).as_millisecond();
        for condition in [DUE, NEW, CHANGED] {
            let left = room.saturating_sub(queued.len() as u64);
            if left == 0 {
                break;
            }
            let find = format!(
                "SELECT id FROM campaign_recipients WHERE campaign_id = $1 AND CAST($2 AS BIGINT) IS NOT NULL \
                 AND CAST($4 AS BIGINT) IS NOT NULL AND {condition} LIMIT $3"
            );
            let next = sqlx::query(AssertSqlSafe(find))
                .bind(campaign.to_string())
                .bind(now.as_millisecond())
                .bind(i64::try_from(left).unwrap_or(i64::MAX))
                .bind(changed)
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
            "UPDATE campaign_recipients SET state = 'queued', next_at = NULL, updated_at = $2, \
             code = CASE WHEN code = '{QUIET_HOURS}' THEN NULL ELSE code END, \
             detail = CASE WHEN code = '{QUIET_HOURS}' THEN NULL ELSE detail END \
             WHERE state = 'pending' AND id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let update = sqlx::query(AssertSqlSafe(update)).bind(ids).bind(now.as_millisecond());
        update.execute(db).await?;
        Ok(queued)
    }
}

impl Sql {
    pub(super) async fn put_off(
        &self,
        id: RecipientId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool> {
        let ids = to_json(&[id]);
        in_transaction!(self, Relaxed, async |db| {
            self.lock_campaigns_of(&mut *db, &ids).await?;
            let update = sqlx::query(
                "UPDATE campaign_recipients SET state = 'pending', next_at = $2, updated_at = $3, code = $4, \
                 detail = 'it waits for the end of quiet hours' WHERE id = $1 AND state = 'queued'",
            );
            let update = update.bind(id.to_string()).bind(until.as_millisecond());
            let update = update.bind(now.as_millisecond()).bind(QUIET_HOURS);
            Ok(update.execute(db).await?.rows_affected() > 0)
        })
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
