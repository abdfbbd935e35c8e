//! The ledger in SQL: lists and reports. What changes recipients is in `feed.rs`, `runs.rs` and `settle.rs`.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::campaign::RecipientState;
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::rows;
use crate::sql::Sql;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{number, parsed, value};
use crate::{
    Attempt, CampaignMinute, Claim, Claimed, CodeCount, Fed, Ledger, Receipt, ReceiptEffect,
    Recipient, RecipientFilter, Result, RunResult, Settlement,
};

#[async_trait]
impl Ledger for Sql {
    async fn feed_campaign(&self, id: CampaignId, most: u32, now: Timestamp) -> Result<Fed> {
        self.feed(id, most, now).await
    }

    async fn claim_recipients(&self, claims: &[Claim], now: Timestamp) -> Result<Vec<Claimed>> {
        self.claim_group(claims, now).await
    }

    async fn record_runs(&self, results: &[RunResult], now: Timestamp) -> Result<Vec<bool>> {
        self.record_group(results, now).await
    }

    async fn last_outcomes(
        &self,
        campaign: CampaignId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(String, Option<String>)>> {
        let query = sqlx::query(
            "SELECT recipient_id AS id, outcome, code FROM campaign_attempts \
             WHERE campaign_id = $1 AND counted = 1 AND at >= $2 ORDER BY at DESC LIMIT $3",
        );
        let query =
            query.bind(campaign.to_string()).bind(since.as_millisecond()).bind(i64::from(limit));
        self.fetch_all(query, |row| Ok((value(row, "outcome")?, value(row, "code")?))).await
    }

    async fn apply_receipts(
        &self,
        receipts: &[Receipt],
        now: Timestamp,
    ) -> Result<Vec<ReceiptEffect>> {
        self.receive_group(receipts, now).await
    }

    async fn settle_recipients(
        &self,
        campaign: CampaignId,
        settlement: Settlement,
        ids: Option<&[RecipientId]>,
        now: Timestamp,
    ) -> Result<u64> {
        self.settle(campaign, settlement, ids, now).await
    }

    async fn recipient(&self, id: RecipientId) -> Result<Option<Recipient>> {
        let sql = format!(
            "SELECT {} FROM campaign_recipients AS r JOIN campaigns AS c ON c.id = r.campaign_id \
             WHERE r.id = $1 AND c.deleted = 0",
            rows::RECIPIENT
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::recipient).await
    }

    async fn recipients(
        &self,
        campaign: CampaignId,
        filter: &RecipientFilter,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Recipient>> {
        let mut sql = format!(
            "SELECT {} FROM campaign_recipients AS r JOIN campaigns AS c ON c.id = r.campaign_id \
             WHERE r.campaign_id = $1 AND c.deleted = 0 AND r.position > $2",
            rows::RECIPIENT
        );
        let mut texts = Vec::new();
        if let Some(state) = filter.state {
            texts.push(state.as_str().to_owned());
            sql += &format!(" AND r.state = ${}", texts.len() + 3);
        }
        if let Some(code) = &filter.code {
            texts.push(code.clone());
            let place = texts.len() + 3;
            sql += &format!(" AND (r.code = ${place} OR r.skip_reason = ${place})");
        }
        if let Some(part) = &filter.address {
            texts.push(part.clone());
            let contains = self.dialect.contains("r.address", &format!("${}", texts.len() + 3));
            sql += &format!(" AND {contains}");
        }
        // In the order of an index. Pending recipients are in the order of their times there.
        sql += match filter.state {
            Some(state) if state != RecipientState::Pending => {
                " AND r.next_at IS NULL ORDER BY r.next_at, r.position LIMIT $3"
            }
            _ => " ORDER BY r.position LIMIT $3",
        };
        let after = i64::try_from(after.unwrap_or_default()).unwrap_or(i64::MAX);
        let mut query = sqlx::query(AssertSqlSafe(sql))
            .bind(campaign.to_string())
            .bind(after)
            .bind(i64::from(limit));
        for text in texts {
            query = query.bind(text);
        }
        self.fetch_all(query, rows::recipient).await
    }

    async fn recipient_attempts(&self, id: RecipientId) -> Result<Vec<Attempt>> {
        let sql = format!(
            "SELECT {} FROM campaign_attempts WHERE recipient_id = $1 ORDER BY number",
            rows::ATTEMPT
        );
        self.fetch_all(sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()), rows::attempt).await
    }

    async fn recipients_in_hand(
        &self,
        before: Timestamp,
        after: Option<RecipientId>,
        limit: u32,
    ) -> Result<Vec<(RecipientId, RecipientState)>> {
        let query = sqlx::query(
            "SELECT id, state FROM campaign_recipients WHERE state IN ('queued', 'sending') \
             AND id > $1 AND updated_at < $2 ORDER BY id LIMIT $3",
        );
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let query = query.bind(after).bind(before.as_millisecond()).bind(i64::from(limit));
        let read = |row: &_| {
            Ok((parsed(row, "id")?, rows::word(row, "state", RecipientState::from_word)?))
        };
        self.fetch_all(query, read).await
    }

    async fn put_back_recipients(&self, ids: &[RecipientId], now: Timestamp) -> Result<u64> {
        self.put_back(ids, now).await
    }

    async fn recipients_by_code(&self, campaign: CampaignId) -> Result<Vec<CodeCount>> {
        let query = sqlx::query(
            "SELECT state, COALESCE(skip_reason, code, '') AS code, MIN(detail) AS example, \
             COUNT(*) AS recipients FROM campaign_recipients \
             WHERE campaign_id = $1 AND state IN ('failed', 'skipped') \
             GROUP BY state, COALESCE(skip_reason, code, '') ORDER BY recipients DESC, state, 2",
        );
        let query = query.bind(campaign.to_string());
        self.fetch_all_within(self.limits.order, query, rows::code_count).await
    }

    async fn campaign_minutes(
        &self,
        campaign: CampaignId,
        since: Timestamp,
    ) -> Result<Vec<CampaignMinute>> {
        let query = sqlx::query(
            "SELECT at / 60000 * 60000 AS at, COUNT(*) FILTER (WHERE outcome = 'sent') AS sent, \
             COUNT(*) FILTER (WHERE outcome <> 'sent') AS failed FROM campaign_attempts \
             WHERE campaign_id = $1 AND counted = 1 AND at >= $2 GROUP BY 1 ORDER BY 1",
        );
        let query = query.bind(campaign.to_string()).bind(since.as_millisecond());
        self.fetch_all_within(self.limits.order, query, rows::minute).await
    }

    async fn empty_fields(
        &self,
        campaign: CampaignId,
        fields: &[String],
    ) -> Result<Vec<(String, u64, Vec<u64>)>> {
        let field = match self.dialect {
            // A path with the name in quotation marks.
            Dialect::Sqlite => "fields ->> ('$.\"' || $2 || '\"')",
            Dialect::Postgres => "fields::jsonb ->> $2",
        };
        let is_empty =
            format!("campaign_id = $1 AND state <> 'skipped' AND COALESCE({field}, '') = ''");
        let count =
            format!("SELECT COUNT(*) AS recipients FROM campaign_recipients WHERE {is_empty}");
        let first = format!(
            "SELECT id, position FROM campaign_recipients WHERE {is_empty} ORDER BY position LIMIT 10"
        );
        let mut found = Vec::new();
        for field in fields {
            let query = sqlx::query(AssertSqlSafe(count.as_str()));
            let query = query.bind(campaign.to_string()).bind(field.as_str());
            let read = |row: &_| number::<u64>(row, "recipients");
            let counted = self.fetch_all_within(self.limits.order, query, read).await?;
            let recipients = counted.first().copied().unwrap_or_default();
            if recipients > 0 {
                let query = sqlx::query(AssertSqlSafe(first.as_str()));
                let query = query.bind(campaign.to_string()).bind(field.as_str());
                let read = |row: &_| number(row, "position");
                let positions = self.fetch_all_within(self.limits.order, query, read).await?;
                found.push((field.clone(), recipients, positions));
            }
        }
        Ok(found)
    }
}
