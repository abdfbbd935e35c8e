//! Recipients that are locked, decided about in [`crate::campaigns::Held`], and written back: one statement each, however
//! many recipients there are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::address_key;
use stampede_model::{CampaignId, RecipientId, RunId, Timestamp};

use super::rows;
use super::suppressions::account_word;
use crate::campaigns::Held;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::{Attempt, Suppression};

/// The recipients of one transaction, by id.
pub(super) type Group = BTreeMap<RecipientId, Held>;

/// What a transaction that changes recipients locks before them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: no change leads to a state in which a campaign is open.
    Nothing,
    /// The campaigns, which keep their states.
    Campaigns,
    /// The accounts, one claim after the other, then the campaigns.
    Accounts,
}

/// The columns of a recipient that change, as they go into the statement.
#[derive(Serialize)]
struct ChangedRow<'a> {
    id: RecipientId,
    address: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    logged: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<&'a str>,
    updated_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at: Option<i64>,
}

impl<'a> From<&'a Held> for ChangedRow<'a> {
    fn from(held: &'a Held) -> Self {
        let it = &held.recipient;
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        Self {
            id: it.id,
            address: &it.address,
            state: it.state.as_str(),
            skip_reason: it.skipped.map(|reason| reason.as_str()),
            code: it.code.as_deref(),
            detail: it.detail.as_deref(),
            attempts: it.attempts,
            next_at: ms(it.next_at),
            run_id: held.run,
            logged: held.logged,
            provider_id: it.provider_id.as_deref(),
            updated_at: it.updated_at.as_millisecond(),
            sent_at: ms(it.sent_at),
            delivered_at: ms(it.delivered_at),
            read_at: ms(it.read_at),
        }
    }
}

/// An attempt for the log.
pub(super) struct NewAttempt {
    pub(super) recipient: RecipientId,
    pub(super) campaign: CampaignId,
    pub(super) run: RunId,
    pub(super) attempt: Attempt,
    pub(super) counts: bool,
}

#[derive(Serialize)]
struct AttemptRow<'a> {
    recipient: RecipientId,
    number: u32,
    campaign: CampaignId,
    run: RunId,
    counted: u8,
    at: i64,
    took: u64,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
}

#[derive(Serialize)]
struct SuppressionRow<'a> {
    owner: &'a str,
    account: &'a str,
    address: &'a str,
    reason: &'static str,
    since: i64,
    by: &'a str,
}

impl Sql {
    /// Locks recipients, and what goes before them, until the transaction ends; then reads them.
    ///
    /// Every transaction locks in one order: accounts, campaigns, recipients by id, counts (in triggers).
    pub(super) async fn hold(
        &self,
        db: &mut AnyConnection,
        ids: &[RecipientId],
        before: Before,
    ) -> sqlx::Result<Group> {
        let (ids, each) = (to_json(&ids), self.dialect.each_text("$1"));
        // SQLite has one writer, which needs no locks.
        if !self.dialect.to_change().is_empty() {
            if before == Before::Accounts {
                let lock = format!(
                    "SELECT id FROM campaign_accounts WHERE id IN (SELECT account_id FROM campaigns \
                     WHERE id IN (SELECT campaign_id FROM campaign_recipients WHERE id IN \
                     (SELECT value FROM {each}))) ORDER BY id {}",
                    self.dialect.to_count_on()
                );
                let lock = sqlx::query(AssertSqlSafe(lock)).bind(ids.as_str());
                lock.execute(&mut *db).await?;
            }
            if before != Before::Nothing {
                self.lock_campaigns_of(&mut *db, &ids).await?;
            }
            self.lock_recipients(&mut *db, &ids).await?;
        }
        let sql = format!(
            "SELECT {}, {} WHERE r.id IN (SELECT value FROM {each})",
            rows::RECIPIENT,
            rows::held_columns()
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(ids).fetch_all(db).await?;
        found.iter().map(|row| rows::held(row).map(|held| (held.recipient.id, held))).collect()
    }

    /// Locks the campaigns of recipients, which keep their states.
    pub(super) async fn lock_campaigns_of(
        &self,
        db: &mut AnyConnection,
        ids: &str,
    ) -> sqlx::Result<()> {
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

    /// Locks recipients in the order of their ids; an `UPDATE` would lock them in any order.
    pub(super) async fn lock_recipients(
        &self,
        db: &mut AnyConnection,
        ids: &str,
    ) -> sqlx::Result<()> {
        let lock = self.dialect.to_change();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM campaign_recipients WHERE id IN (SELECT value FROM {}) ORDER BY id {lock}",
                self.dialect.each_text("$1")
            );
            sqlx::query(AssertSqlSafe(sql)).bind(ids).execute(db).await?;
        }
        Ok(())
    }

    /// Writes the recipients of a group that changed.
    pub(super) async fn write_changed(
        &self,
        db: &mut AnyConnection,
        group: &Group,
    ) -> sqlx::Result<()> {
        let changed: Vec<ChangedRow<'_>> =
            group.values().filter(|held| held.is_changed).map(ChangedRow::from).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let update = format!(
            "UPDATE campaign_recipients SET address = change.address, state = change.state, \
             skip_reason = change.skip_reason, code = change.code, detail = change.detail, \
             attempts = change.attempts, next_at = change.next_at, run_id = change.run_id, \
             logged = change.logged, provider_id = change.provider_id, updated_at = change.updated_at, \
             sent_at = change.sent_at, delivered_at = change.delivered_at, read_at = change.read_at \
             FROM (SELECT value ->> 'id' AS id, value ->> 'address' AS address, \
             value ->> 'state' AS state, value ->> 'skip_reason' AS skip_reason, \
             value ->> 'code' AS code, value ->> 'detail' AS detail, \
             CAST(value ->> 'attempts' AS BIGINT) AS attempts, \
             CAST(value ->> 'next_at' AS BIGINT) AS next_at, value ->> 'run_id' AS run_id, \
             CAST(value ->> 'logged' AS BIGINT) AS logged, value ->> 'provider_id' AS provider_id, \
             CAST(value ->> 'updated_at' AS BIGINT) AS updated_at, \
             CAST(value ->> 'sent_at' AS BIGINT) AS sent_at, \
             CAST(value ->> 'delivered_at' AS BIGINT) AS delivered_at, \
             CAST(value ->> 'read_at' AS BIGINT) AS read_at FROM {}) AS change \
             WHERE campaign_recipients.id = change.id",
            self.dialect.each_object("$1")
        );
        sqlx::query(AssertSqlSafe(update)).bind(to_json(&changed)).execute(db).await?;
        Ok(())
    }

    /// Gives the recipients of a group that have moved the keys of their new addresses. Of two recipients of a campaign with the
    /// same new key, the one that moves later is skipped.
    pub(super) async fn write_keys_of_moved(
        &self,
        db: &mut AnyConnection,
        group: &mut Group,
        now: Timestamp,
    ) -> sqlx::Result<()> {
        // Seldom is there one, and hardly ever are there more.
        for held in group.values_mut().filter(|held| held.is_moved) {
            let (id, campaign, key) =
                (held.recipient.id.to_string(), held.recipient.campaign.to_string(), held.key());
            let twin = sqlx::query(
                "SELECT id FROM campaign_recipients WHERE campaign_id = $1 AND dedupe_key = $2 AND id <> $3",
            );
            let twin = twin.bind(campaign).bind(key.as_str()).bind(id.as_str());
            let has_twin = twin.fetch_optional(&mut *db).await?.is_some();
            if has_twin {
                held.skip_as_twin(now);
            }
            sqlx::query("UPDATE campaign_recipients SET dedupe_key = $2 WHERE id = $1")
                .bind(id)
                .bind((!has_twin).then_some(key))
                .execute(&mut *db)
                .await?;
        }
        Ok(())
    }

    /// Adds attempts to the log.
    pub(super) async fn log_attempts(
        &self,
        db: &mut AnyConnection,
        attempts: &[NewAttempt],
    ) -> sqlx::Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        let row = |new: &'_ NewAttempt| -> serde_json::Value {
            let attempt = &new.attempt;
            serde_json::json!(AttemptRow {
                recipient: new.recipient,
                number: attempt.number,
                campaign: new.campaign,
                run: new.run,
                counted: u8::from(new.counts),
                at: attempt.at.as_millisecond(),
                took: u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
                outcome: &attempt.outcome,
                code: attempt.code.as_deref(),
                answer: attempt.answer.as_deref(),
            })
        };
        let rows: Vec<serde_json::Value> = attempts.iter().map(row).collect();
        let insert = format!(
            "INSERT INTO campaign_attempts (recipient_id, number, campaign_id, run_id, counted, at, took_ms, \
             outcome, code, answer) \
             SELECT value ->> 'recipient', CAST(value ->> 'number' AS BIGINT), value ->> 'campaign', \
             value ->> 'run', CAST(value ->> 'counted' AS BIGINT), CAST(value ->> 'at' AS BIGINT), \
             CAST(value ->> 'took' AS BIGINT), value ->> 'outcome', value ->> 'code', value ->> 'answer' \
             FROM {} WHERE TRUE",
            self.dialect.each_object("$1")
        );
        sqlx::query(AssertSqlSafe(insert)).bind(to_json(&rows)).execute(db).await?;
        Ok(())
    }

    /// Adds suppressions that are not there yet; returns how many are new.
    pub(super) async fn suppress(
        &self,
        db: &mut AnyConnection,
        suppressions: &[Suppression],
    ) -> sqlx::Result<u64> {
        if suppressions.is_empty() {
            return Ok(0);
        }
        let keys = suppressions.iter().map(|one| address_key(&one.address));
        let keys: Vec<Cow<'_, str>> = keys.collect();
        let mut rows: Vec<SuppressionRow<'_>> = suppressions
            .iter()
            .zip(&keys)
            .map(|(one, address)| SuppressionRow {
                owner: &one.owner,
                account: account_word(one.account.as_ref()),
                address,
                reason: one.reason.as_str(),
                since: one.since.as_millisecond(),
                by: &one.by,
            })
            .collect();
        // Two transactions that add the same addresses wait for each other in one order.
        rows.sort_by_key(|row| (row.owner, row.account, row.address));
        let insert = format!(
            "INSERT INTO campaign_suppressions (owner, account_id, address, reason, since, added_by) \
             SELECT value ->> 'owner', value ->> 'account', value ->> 'address', value ->> 'reason', \
             CAST(value ->> 'since' AS BIGINT), value ->> 'by' FROM {} WHERE TRUE \
             ON CONFLICT (owner, account_id, address) DO NOTHING",
            self.dialect.each_object("$1")
        );
        let done = sqlx::query(AssertSqlSafe(insert)).bind(to_json(&rows)).execute(db).await?;
        Ok(done.rows_affected())
    }
}
