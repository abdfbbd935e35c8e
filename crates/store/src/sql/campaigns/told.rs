//! What outsiders are told of campaigns, in SQL.
//!
//! | change | told |
//! |---|---|
//! | a campaign is made, in another state, changed by a person, deleted | in the transaction of the change |
//! | recipients in other states, while it runs | with the next step of its feeder, at most once in [`TOLD_EVERY`] |
//! | recipients in other states, otherwise: receipts, say | by the reconciler |
//!
//! The triggers count the changes of a campaign's counts (`revision`). What was told last (`told_revision`) is kept beside, so
//! that nothing is told twice and no change is forgotten.

use std::time::Duration;

use sqlx::AnyConnection;
use stampede_model::feed::{CampaignData, Change};
use stampede_model::{CampaignId, Timestamp};

use super::find_campaign;
use crate::Durability::Relaxed;
use crate::sql::Sql;
use crate::sql::outbox::Told;
use crate::sql::rows::{number, parsed};
use crate::sql::transaction::in_transaction;
use crate::{Campaign, Result};

/// Progress of a campaign is told no more often.
pub(super) const TOLD_EVERY: Duration = Duration::from_secs(1);

impl Sql {
    /// Tells what became of a campaign, whose counts are as they are in the database.
    pub(super) async fn tell_campaign(
        &self,
        db: &mut AnyConnection,
        campaign: &Campaign,
        change: fn(CampaignData) -> Change,
    ) -> sqlx::Result<()> {
        let update = sqlx::query(
            "UPDATE campaign_counts SET revision = revision + 1, told_revision = revision + 1 \
             WHERE campaign_id = $1 RETURNING campaign_id AS id, revision",
        );
        let row = update.bind(campaign.id.to_string()).fetch_one(&mut *db).await?;
        let data = data(campaign, number(&row, "revision")?);
        self.tell(db, [told(campaign, change(data))]).await
    }

    /// Tells the counts of a campaign if they have changed since they were told, and that is so long ago; returns whether.
    pub(super) async fn tell_progress(
        &self,
        db: &mut AnyConnection,
        id: CampaignId,
        every: Duration,
        now: Timestamp,
    ) -> sqlx::Result<bool> {
        let update = sqlx::query(
            "UPDATE campaign_counts SET told_revision = revision, told_at = $2 \
             WHERE campaign_id = $1 AND revision <> told_revision AND told_at <= $3 \
             RETURNING campaign_id AS id, revision",
        );
        let update = update.bind(id.to_string()).bind(now.as_millisecond());
        let update = update.bind((now - every).as_millisecond());
        let Some(row) = update.fetch_optional(&mut *db).await? else { return Ok(false) };
        let Some(campaign) = find_campaign(&mut *db, id).await? else { return Ok(false) };
        let data = data(&campaign, number(&row, "revision")?);
        self.tell(db, [told(&campaign, Change::CampaignProgressed(data))]).await?;
        Ok(true)
    }

    /// Tells the progress of campaigns that has not been told.
    pub(super) async fn tell_untold(&self, limit: u32, now: Timestamp) -> Result<u64> {
        let find = sqlx::query(
            "SELECT id FROM campaigns JOIN campaign_counts ON campaign_counts.campaign_id = campaigns.id \
             WHERE revision <> told_revision AND deleted = 0 ORDER BY id LIMIT $1",
        );
        let untold: Vec<CampaignId> =
            self.fetch_all(find.bind(i64::from(limit)), |row| parsed(row, "id")).await?;
        let mut count = 0;
        for id in untold {
            // One transaction each: nobody waits for the counts of many campaigns.
            let is_told = in_transaction!(self, Relaxed, async |db| {
                self.tell_progress(db, id, TOLD_EVERY, now).await
            });
            count += u64::from(is_told?);
        }
        Ok(count)
    }
}

fn told(campaign: &Campaign, change: Change) -> Told {
    Told::of_campaign(&campaign.owner, campaign.event, change)
}

fn data(campaign: &Campaign, revision: u64) -> CampaignData {
    let counts = &campaign.counts;
    CampaignData {
        campaign_id: campaign.id,
        name: campaign.name.clone(),
        status: campaign.state,
        status_reason: campaign.reason.clone(),
        total: counts.total(),
        pending: counts.pending,
        queued: counts.queued,
        sending: counts.sending,
        sent: counts.sent,
        delivered: counts.delivered,
        read: counts.read,
        failed: counts.failed,
        unknown: counts.unknown,
        skipped: counts.skipped,
        revision,
    }
}
