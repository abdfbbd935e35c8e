//! The ledger in SQL: recipients are read and listed. What changes them is in `feed.rs`, `runs.rs` and `settle.rs`.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::campaign::{AccountId, RecipientState, address_key};
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::rows;
use crate::sql::Sql;
use crate::sql::rows::{parsed, value};
use crate::{
    Attempt, BOUNCED_LATER, Claim, Claimed, FAILED_LATER, Fed, Ledger, Receipt, ReceiptEffect,
    Recipient, RecipientFilter, Result, RunResult, Settlement,
};

#[async_trait]
impl Ledger for Sql {
    async fn feed_campaign(&self, id: CampaignId, most: u32, now: Timestamp) -> Result<Fed> {
        self.feed(id, most, now).await
    }

    async fn put_off_recipient(
        &self,
        id: RecipientId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool> {
        self.put_off(id, until, now).await
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
             WHERE campaign_id = $1 AND counted = 1 AND at >= $2 \
             AND (outcome NOT IN ($4, $5) OR at - took_ms >= $2) ORDER BY at DESC LIMIT $3",
        );
        let query =
            query.bind(campaign.to_string()).bind(since.as_millisecond()).bind(i64::from(limit));
        let query = query.bind(BOUNCED_LATER).bind(FAILED_LATER);
        self.fetch_all(query, |row| Ok((value(row, "outcome")?, value(row, "code")?))).await
    }

    async fn last_outcomes_to(
        &self,
        account: &AccountId,
        address: &str,
        limit: u32,
    ) -> Result<Vec<(String, Option<String>)>> {
        // The key of a recipient with a ticket is the address, a line break and the ticket.
        let query = sqlx::query(
            "SELECT a.recipient_id AS id, a.outcome AS outcome, a.code AS code FROM campaigns AS c \
             JOIN campaign_recipients AS r ON r.campaign_id = c.id \
             JOIN campaign_attempts AS a ON a.recipient_id = r.id \
             WHERE c.account_id = $1 AND r.dedupe_key >= $2 AND r.dedupe_key < $3 AND a.counted = 1 \
             AND a.outcome NOT IN ($5, $6) ORDER BY a.at DESC LIMIT $4",
        );
        let address = address_key(address).into_owned();
        let behind = format!("{address}\u{b}");
        let query = query.bind(account.as_str()).bind(address).bind(behind).bind(i64::from(limit));
        let query = query.bind(BOUNCED_LATER).bind(FAILED_LATER);
        self.fetch_all(query, |row| Ok((value(row, "outcome")?, value(row, "code")?))).await
    }

    async fn apply_receipts(
        &self,
        receipts: &[Receipt],
        now: Timestamp,
    ) -> Result<Vec<ReceiptEffect>> {
        self.receive_all(receipts, now).await
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
}
