//! Imports in SQL.
//!
//! A campaign has at most one open import, a row of `campaign_imports`. Only it adds recipients, at positions behind the one
//! that it began with: so everything that an import has added is found without a mark on each recipient.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::{CampaignState, RecipientState, SkipReason};
use stampede_model::{CampaignId, RecipientId, TicketId, Timestamp};

use super::find_campaign;
use crate::Durability::{Relaxed, Synced};
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{number, optional_time, parsed, value};
use crate::sql::transaction::in_transaction;
use crate::{Audiences, Import, Imported, NewRecipient, Result};

/// Recipients that are removed in one transaction.
const PORTION: i64 = 5_000;

/// A recipient, as it goes into the statement.
#[derive(Serialize)]
struct NewRow<'a> {
    id: RecipientId,
    position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    address: &'a str,
    fields: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<TicketId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

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
        let keys: Vec<Option<String>> = recipients.iter().map(dedupe_key).collect();
        in_transaction!(self, Relaxed, [self.limits.order], async |db| {
            if !self.hold_import(&mut *db, campaign, import, now).await? {
                return Ok(None);
            }
            let mut last = last_position(&mut *db, campaign).await?;
            let mut first_lines = self.lines_of_keys(&mut *db, campaign, &keys).await?;
            let suppressed = self.suppressed_among(&mut *db, campaign, recipients).await?;
            let mut imported = Imported::default();
            let mut rows = Vec::with_capacity(recipients.len());
            for (recipient, key) in recipients.iter().zip(&keys) {
                last += 1;
                let mut row = new_row(recipient, key.as_deref(), last);
                if let Some((reason, detail)) = &recipient.skip {
                    row.skip(*reason, Some(detail.clone()));
                    imported.invalid += 1;
                } else if let Some(first) = row.key.and_then(|key| first_lines.get(key)) {
                    let detail = first.map(|line| format!("the same address as line {line}"));
                    row.skip(SkipReason::Duplicate, detail);
                    row.key = None;
                    imported.duplicates.push((recipient.line, *first));
                } else {
                    if suppressed.contains(&recipient.address) {
                        row.skip(SkipReason::OptedOut, None);
                        imported.suppressed += 1;
                    } else {
                        imported.added += 1;
                    }
                    if let Some(key) = key {
                        first_lines.insert(key.clone(), recipient.line);
                    }
                }
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

    async fn end_import(&self, campaign: CampaignId, import: RecipientId) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            let done = sqlx::query(
                "DELETE FROM campaign_imports WHERE campaign_id = $1 AND import_id = $2 AND undone = 0",
            )
            .bind(campaign.to_string())
            .bind(import.to_string())
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
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
            if !takes_recipients(found.state) {
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
        if !found.is_some_and(|found| takes_recipients(found.state)) {
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

    /// Which of these keys a campaign has, with the lines of their recipients.
    async fn lines_of_keys(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        keys: &[Option<String>],
    ) -> sqlx::Result<HashMap<String, Option<u64>>> {
        let sql = format!(
            "SELECT id, dedupe_key, line FROM campaign_recipients WHERE campaign_id = $2 \
             AND dedupe_key IS NOT NULL AND dedupe_key IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let keys: Vec<&String> = keys.iter().flatten().collect();
        let query = sqlx::query(AssertSqlSafe(sql)).bind(to_json(&keys)).bind(campaign.to_string());
        let mut lines = HashMap::new();
        for row in query.fetch_all(db).await? {
            let line = match value::<Option<i64>>(&row, "line")? {
                Some(_) => Some(number(&row, "line")?),
                None => None,
            };
            lines.insert(value(&row, "dedupe_key")?, line);
        }
        Ok(lines)
    }

    /// Which addresses of recipients are suppressed for the account of a campaign.
    async fn suppressed_among(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> sqlx::Result<HashSet<String>> {
        let sql = format!(
            "SELECT s.address AS address FROM campaigns AS c \
             LEFT JOIN campaign_accounts AS a ON a.id = c.account_id \
             JOIN campaign_suppressions AS s ON s.owner = COALESCE(a.owner, c.owner) \
             AND s.account_id IN ('*', c.account_id) \
             WHERE c.id = $2 AND s.address IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let addresses: Vec<&str> =
            recipients.iter().map(|recipient| recipient.address.as_str()).collect();
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = query.bind(to_json(&addresses)).bind(campaign.to_string());
        query.fetch_all(db).await?.iter().map(|row| value(row, "address")).collect()
    }
}

impl NewRow<'_> {
    fn skip(&mut self, reason: SkipReason, detail: Option<String>) {
        self.state = RecipientState::Skipped.as_str();
        self.reason = Some(reason.as_str());
        self.detail = detail;
    }
}

fn new_row<'a>(recipient: &'a NewRecipient, key: Option<&'a str>, position: u64) -> NewRow<'a> {
    NewRow {
        id: recipient.id,
        position,
        key,
        address: &recipient.address,
        fields: &recipient.fields,
        message: recipient.message.as_deref(),
        zone: recipient.time_zone.as_deref(),
        ticket: recipient.ticket,
        line: recipient.line,
        state: RecipientState::Pending.as_str(),
        reason: None,
        detail: None,
    }
}

/// What no two recipients of a campaign share; `None`: nothing is sent to this one.
fn dedupe_key(recipient: &NewRecipient) -> Option<String> {
    if recipient.skip.is_some() {
        return None;
    }
    Some(match recipient.ticket {
        // A line break is in no address.
        Some(ticket) => format!("{}\n{ticket}", recipient.address),
        None => recipient.address.clone(),
    })
}

fn takes_recipients(state: CampaignState) -> bool {
    matches!(state, CampaignState::Draft | CampaignState::Paused | CampaignState::Scheduled)
}

/// The position of the last recipient of a campaign.
async fn last_position(db: &mut AnyConnection, campaign: CampaignId) -> sqlx::Result<u64> {
    let last = sqlx::query(
        "SELECT 'last' AS id, COALESCE(MAX(position), 0) AS position FROM campaign_recipients \
         WHERE campaign_id = $1",
    );
    number(&last.bind(campaign.to_string()).fetch_one(db).await?, "position")
}
