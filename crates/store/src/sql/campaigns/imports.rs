//! Imports in SQL.
//!
//! A campaign has at most one open import, a row of `campaign_imports`. Only it adds recipients, at positions behind the one
//! that it began with: so everything that an import has added is found without a mark on each recipient.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::SkipReason;
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, Timestamp};

use super::find_campaign;
use super::new_rows::new_row;
use crate::Durability::{Relaxed, Synced};
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::pooled_connection::within;
use crate::sql::rows::{number, optional_time, parsed, value};
use crate::sql::transaction::in_transaction;
use crate::{Arrival, Audiences, FIELD_NAMES_KEPT, Import, Imported, Known, NewRecipient, Result};

/// Recipients that are removed in one transaction.
const PORTION: i64 = 5_000;

/// What may be in the way of an import that begins.
enum Beginning {
    Is(Import),
    /// The import of a process that died.
    Dead(RecipientId),
}

#[async_trait]
impl Audiences for Sql {
    async fn begin_import(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        now: Timestamp,
        dead_before: Timestamp,
    ) -> Result<Import> {
        loop {
            match self.try_begin(campaign, import, now, dead_before).await? {
                Beginning::Is(import) => return Ok(import),
                Beginning::Dead(former) => self.undo_import(campaign, former).await?,
            }
        }
    }

    async fn import_recipients(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        recipients: &[NewRecipient],
        now: Timestamp,
    ) -> Result<Option<Imported>> {
        let insert = format!(
            "INSERT INTO campaign_recipients (id, campaign_id, position, dedupe_key, address, fields, message, \
             time_zone, ticket_id, line, state, skip_reason, detail, updated_at) \
             SELECT value ->> 'id', $2, CAST(value ->> 'position' AS BIGINT), value ->> 'key', \
             value ->> 'address', value ->> 'fields', value ->> 'message', value ->> 'zone', \
             value ->> 'ticket', CAST(value ->> 'line' AS BIGINT), value ->> 'state', value ->> 'reason', \
             value ->> 'detail', $3 FROM {} WHERE TRUE",
            self.dialect.each_object("$1")
        );
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            if !self.hold_import(&mut *db, campaign, import, now).await? {
                return Ok(None);
            }
            let mut last = last_position(&mut *db, campaign).await?;
            let mut known = self.known_among(&mut *db, campaign, recipients).await?;
            let mut imported = Imported::default();
            let mut rows = Vec::with_capacity(recipients.len());
            for recipient in recipients {
                last += 1;
                let mut row = new_row(recipient, last);
                let arrival = known.judge(recipient);
                match arrival {
                    Arrival::Added => {}
                    Arrival::Suppressed => row.skip(SkipReason::OptedOut, None),
                    Arrival::Duplicate(first) => {
                        let detail = first.map(|line| format!("the same address as line {line}"));
                        row.skip(SkipReason::Duplicate, detail);
                        row.key = None;
                    }
                    Arrival::Invalid => {
                        if let Some((reason, detail)) = &recipient.skip {
                            row.skip(*reason, Some(detail.clone()));
                        }
                    }
                }
                imported.count(recipient.line, arrival);
                rows.push(row);
            }
            sqlx::query(AssertSqlSafe(insert.as_str()))
                .bind(to_json(&rows))
                .bind(campaign.to_string())
                .bind(now.as_millisecond())
                .execute(db)
                .await?;
            Ok(Some(imported))
        })
    }

    async fn known_recipients(
        &self,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> Result<Known> {
        let looking = async {
            let mut connection = self.connection().await?;
            let known = self.known_among(&mut connection, campaign, recipients).await;
            connection.give_back_after(&known);
            known
        };
        within(self.limits.read, looking).await
    }

    async fn note_guests(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        event: EventId,
        batch: Option<BatchId>,
    ) -> Result<bool> {
        // No guest came with an earlier import.
        let first = "NOT EXISTS (SELECT 1 FROM campaign_recipients WHERE campaign_id = $1 AND ticket_id IS NOT NULL \
             AND position <= (SELECT after_position FROM campaign_imports WHERE campaign_id = $1))";
        let note = format!(
            "UPDATE campaigns SET event_id = CASE WHEN event_id = $3 OR {first} THEN $3 END, \
             batch_id = CASE WHEN batch_id = $4 OR {first} THEN $4 END \
             WHERE id = $1 AND EXISTS (SELECT 1 FROM campaign_imports \
             WHERE campaign_id = $1 AND import_id = $2 AND undone = 0)"
        );
        in_transaction!(self, Relaxed, async |db| {
            let noted = sqlx::query(AssertSqlSafe(note.as_str()))
                .bind(campaign.to_string())
                .bind(import.to_string())
                .bind(event.to_string())
                .bind(batch.map(|batch| batch.to_string()))
                .execute(db)
                .await?;
            Ok(noted.rows_affected() > 0)
        })
    }

    async fn end_import(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        fields: &BTreeSet<String>,
    ) -> Result<bool> {
        let lock = self.dialect.to_refer_to();
        let lock_campaign = format!("SELECT id FROM campaigns WHERE id = $1 {lock}");
        let note = format!(
            "INSERT INTO campaign_fields (campaign_id, name) SELECT $2, value FROM {} \
             WHERE (SELECT COUNT(*) FROM campaign_fields WHERE campaign_id = $2) < $3 \
             ON CONFLICT (campaign_id, name) DO NOTHING",
            self.dialect.each_text("$1")
        );
        let (names, most) = (to_json(fields), FIELD_NAMES_KEPT as i64);
        in_transaction!(self, Synced, async |db| {
            if !lock.is_empty() {
                // Campaigns are locked before imports, and the names refer to one.
                let lock = sqlx::query(AssertSqlSafe(lock_campaign.as_str()));
                lock.bind(campaign.to_string()).execute(&mut *db).await?;
            }
            let done = sqlx::query(
                "DELETE FROM campaign_imports WHERE campaign_id = $1 AND import_id = $2 AND undone = 0",
            )
            .bind(campaign.to_string())
            .bind(import.to_string())
            .execute(&mut *db)
            .await?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            let note = sqlx::query(AssertSqlSafe(note.as_str())).bind(names.as_str());
            note.bind(campaign.to_string()).bind(most).execute(db).await?;
            Ok(true)
        })
    }

    async fn recipient_fields(&self, campaign: CampaignId) -> Result<BTreeSet<String>> {
        let query = sqlx::query("SELECT name FROM campaign_fields WHERE campaign_id = $1");
        let query = query.bind(campaign.to_string());
        Ok(self.fetch_all(query, |row| value(row, "name")).await?.into_iter().collect())
    }

    async fn undo_import(&self, campaign: CampaignId, import: RecipientId) -> Result<()> {
        while self.undo_portion(campaign, import).await? {}
        Ok(())
    }

    async fn undo_dead_imports(&self, dead_before: Timestamp) -> Result<u64> {
        let query = sqlx::query(
            "SELECT campaign_id AS id, import_id FROM campaign_imports WHERE continued_at < $1 ORDER BY campaign_id",
        );
        let query = query.bind(dead_before.as_millisecond());
        let dead: Vec<(CampaignId, RecipientId)> = self
            .fetch_all(query, |row| Ok((parsed(row, "id")?, parsed(row, "import_id")?)))
            .await?;
        for (campaign, import) in &dead {
            self.undo_import(*campaign, *import).await?;
        }
        Ok(dead.len() as u64)
    }
}

impl Sql {
    async fn try_begin(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        now: Timestamp,
        dead_before: Timestamp,
    ) -> Result<Beginning> {
        in_transaction!(self, Relaxed, async |db| {
            let Some(found) = self.hold_campaign(&mut *db, campaign).await? else {
                return Ok(Beginning::Is(Import::NotFound));
            };
            if !found.state.takes_recipients() {
                return Ok(Beginning::Is(Import::WrongState));
            }
            let open = sqlx::query(
                "SELECT campaign_id AS id, import_id, continued_at FROM campaign_imports WHERE campaign_id = $1",
            );
            let open = open.bind(campaign.to_string()).fetch_optional(&mut *db).await?;
            if let Some(row) = open {
                let is_dead =
                    optional_time(&row, "continued_at")?.is_none_or(|at| at < dead_before);
                return Ok(match is_dead {
                    true => Beginning::Dead(parsed(&row, "import_id")?),
                    false => Beginning::Is(Import::Busy),
                });
            }
            let last = last_position(&mut *db, campaign).await?;
            sqlx::query(
                "INSERT INTO campaign_imports (campaign_id, import_id, after_position, continued_at) \
                 VALUES ($1, $2, $3, $4)",
            )
            .bind(campaign.to_string())
            .bind(import.to_string())
            .bind(i64::try_from(last).unwrap_or(i64::MAX))
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(Beginning::Is(Import::Begun))
        })
    }

    /// Locks an import and notes that it goes on; `false`: it is not open any more.
    async fn hold_import(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        import: RecipientId,
        now: Timestamp,
    ) -> sqlx::Result<bool> {
        let lock = self.dialect.to_rely_on();
        if !lock.is_empty() {
            let sql = format!("SELECT id FROM campaigns WHERE id = $1 {lock}");
            sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string()).execute(&mut *db).await?;
        }
        let found = find_campaign(&mut *db, campaign).await?;
        if !found.is_some_and(|found| found.state.takes_recipients()) {
            return Ok(false);
        }
        let held = sqlx::query(
            "UPDATE campaign_imports SET continued_at = $3 \
             WHERE campaign_id = $1 AND import_id = $2 AND undone = 0",
        )
        .bind(campaign.to_string())
        .bind(import.to_string())
        .bind(now.as_millisecond())
        .execute(db)
        .await?;
        Ok(held.rows_affected() > 0)
    }

    /// Removes a portion of what an import has added, the last first; `false`: nothing is left, and the import is gone.
    async fn undo_portion(&self, campaign: CampaignId, import: RecipientId) -> Result<bool> {
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            // From now on, the import adds nothing more.
            let marked = sqlx::query(
                "UPDATE campaign_imports SET undone = 1 WHERE campaign_id = $1 AND import_id = $2 \
                 RETURNING campaign_id AS id, after_position",
            )
            .bind(campaign.to_string())
            .bind(import.to_string())
            .fetch_optional(&mut *db)
            .await?;
            let Some(row) = marked else { return Ok(false) };
            let removed = sqlx::query(
                "DELETE FROM campaign_recipients WHERE id IN (SELECT id FROM campaign_recipients \
                 WHERE campaign_id = $1 AND position > $2 ORDER BY position DESC LIMIT $3)",
            )
            .bind(campaign.to_string())
            .bind(number::<i64>(&row, "after_position")?)
            .bind(PORTION)
            .execute(&mut *db)
            .await?;
            if removed.rows_affected() > 0 {
                return Ok(true);
            }
            sqlx::query("DELETE FROM campaign_imports WHERE campaign_id = $1 AND import_id = $2")
                .bind(campaign.to_string())
                .bind(import.to_string())
                .execute(db)
                .await?;
            Ok(false)
        })
    }
}

/// The position of the last recipient of a campaign.
async fn last_position(db: &mut AnyConnection, campaign: CampaignId) -> sqlx::Result<u64> {
    let last = sqlx::query(
        "SELECT 'last' AS id, COALESCE(MAX(position), 0) AS position FROM campaign_recipients \
         WHERE campaign_id = $1",
    );
    number(&last.bind(campaign.to_string()).fetch_one(db).await?, "position")
}
