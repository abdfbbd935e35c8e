//! Questions about many recipients at once, in SQL.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::{CampaignId, Timestamp};

use super::rows;
use crate::sql::Sql;
use crate::sql::dialect::Dialect;
use crate::sql::rows::{number, optional_time, parsed};
use crate::{
    AccountAtWork, BOUNCED_LATER, CODES_REPORTED, CampaignMinute, CampaignTotal, CodeCount,
    FAILED_LATER, LastAttempts, OTHER_CODES, Reports, Result,
};

/// An attempt of a campaign that counts, and no receipt.
const IS_ATTEMPT: &str = "campaign_id = $1 AND counted = 1 AND outcome NOT IN ($2, $3)";
/// A recipient that is to be sent to.
const IS_OPEN: &str = "campaign_id = $1 AND state IN ('pending', 'queued', 'sending')";

#[async_trait]
impl Reports for Sql {
    async fn recipients_by_code(&self, campaign: CampaignId) -> Result<Vec<CodeCount>> {
        // Codes are the words of providers: a provider that never says the same twice must not make a report large.
        let codes = "SELECT state, COALESCE(skip_reason, code, '') AS code, MIN(detail) AS example, \
             COUNT(*) AS recipients FROM campaign_recipients \
             WHERE campaign_id = $1 AND state IN ('failed', 'unknown', 'skipped') \
             GROUP BY state, COALESCE(skip_reason, code, '')";
        let ranked = format!(
            "SELECT state, code, example, recipients, \
             ROW_NUMBER() OVER (ORDER BY recipients DESC, state, code) AS place FROM ({codes}) AS codes"
        );
        let sql = format!(
            "SELECT state, CASE WHEN place <= {CODES_REPORTED} THEN code ELSE $2 END AS code, \
             CASE WHEN place <= {CODES_REPORTED} THEN example END AS example, \
             CAST(SUM(recipients) AS BIGINT) AS recipients FROM ({ranked}) AS ranked \
             GROUP BY 1, 2, 3, CASE WHEN place <= {CODES_REPORTED} THEN place ELSE 0 END \
             ORDER BY MIN(place)"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        let query = query.bind(OTHER_CODES);
        self.fetch_all_within(self.limits.order, query, rows::code_count).await
    }

    async fn campaign_span(&self, campaign: CampaignId) -> Result<Option<(Timestamp, Timestamp)>> {
        // Two questions: each is answered by the first entry of an index.
        let end = |order: &str| {
            format!(
                "(SELECT at FROM campaign_attempts WHERE {IS_ATTEMPT} ORDER BY at {order} LIMIT 1)"
            )
        };
        let sql = format!("SELECT {} AS began, {} AS ended", end("ASC"), end("DESC"));
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        let query = query.bind(BOUNCED_LATER).bind(FAILED_LATER);
        let read = |row: &_| Ok(optional_time(row, "began")?.zip(optional_time(row, "ended")?));
        Ok(self.fetch_optional(query, read).await?.flatten())
    }

    async fn campaign_minutes(
        &self,
        campaign: CampaignId,
        step_ms: u64,
    ) -> Result<Vec<CampaignMinute>> {
        let sql = format!(
            "SELECT at / $4 * $4 AS at, COUNT(*) FILTER (WHERE outcome = 'sent') AS sent, \
             COUNT(*) FILTER (WHERE outcome NOT IN ('sent', 'unknown')) AS failed, \
             COUNT(*) FILTER (WHERE outcome = 'unknown') AS unknown FROM campaign_attempts \
             WHERE {IS_ATTEMPT} GROUP BY 1 ORDER BY 1"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        let query = query.bind(BOUNCED_LATER).bind(FAILED_LATER);
        let query = query.bind(i64::try_from(step_ms.max(1)).unwrap_or(i64::MAX));
        self.fetch_all_within(self.limits.order, query, rows::minute).await
    }

    async fn last_attempts(
        &self,
        campaign: CampaignId,
        since: Timestamp,
        most: u32,
    ) -> Result<Option<LastAttempts>> {
        // Attempts that are tried again are left out.
        let query = sqlx::query(
            "SELECT COUNT(*) AS attempts, MIN(at) AS first, MAX(at + took_ms) AS last FROM \
             (SELECT at, took_ms FROM campaign_attempts WHERE campaign_id = $1 AND counted = 1 AND at >= $2 \
             AND outcome IN ('sent', 'never', 'bounced', 'refused', 'unknown') \
             ORDER BY at DESC LIMIT $3) AS settled",
        );
        let query = query.bind(campaign.to_string()).bind(since.as_millisecond());
        let query = query.bind(i64::from(most));
        let read = |row: &_| {
            let (first, last) = (optional_time(row, "first")?, optional_time(row, "last")?);
            let count = number(row, "attempts")?;
            Ok(first.zip(last).map(|(first, last)| LastAttempts { count, first, last }))
        };
        Ok(self.fetch_optional(query, read).await?.flatten())
    }

    async fn accounts_at_work(&self) -> Result<Vec<AccountAtWork>> {
        // Deleted campaigns do not run. The index `campaigns_to_feed` has those that do.
        let query = sqlx::query(
            "SELECT account_id AS id, CAST(SUM(queued) AS BIGINT) AS queued, \
             CAST(SUM(sending) AS BIGINT) AS sending FROM campaigns \
             JOIN campaign_counts ON campaign_counts.campaign_id = campaigns.id \
             WHERE state IN ('running', 'scheduled') AND queued + sending > 0 GROUP BY account_id",
        );
        let read = |row: &_| {
            let (queued, sending) = (number(row, "queued")?, number(row, "sending")?);
            Ok(AccountAtWork { account: parsed(row, "id")?, queued, sending })
        };
        self.fetch_all(query, read).await
    }

    async fn without_ticket(&self, campaign: CampaignId) -> Result<u64> {
        let sql = format!(
            "SELECT COUNT(*) AS recipients FROM campaign_recipients WHERE {IS_OPEN} AND ticket_id IS NULL"
        );
        Ok(self.numbers(sql, campaign, None, "recipients").await?.first().copied().unwrap_or(0))
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
        let mut found = Vec::new();
        for field in fields {
            let (recipients, positions) = self.some(&is_empty, campaign, Some(field)).await?;
            if recipients > 0 {
                found.push((field.clone(), recipients, positions));
            }
        }
        Ok(found)
    }

    async fn has_messages(&self, campaign: CampaignId) -> Result<bool> {
        let sql = format!(
            "SELECT position FROM campaign_recipients WHERE {IS_OPEN} AND message IS NOT NULL LIMIT 1"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        let read = |row: &_| number::<u64>(row, "position");
        Ok(!self.fetch_all_within(self.limits.order, query, read).await?.is_empty())
    }

    async fn without_message(&self, campaign: CampaignId) -> Result<(u64, Vec<u64>)> {
        self.some(&format!("{IS_OPEN} AND message IS NULL"), campaign, None).await
    }

    async fn campaign_totals(&self) -> Result<Vec<CampaignTotal>> {
        let query = sqlx::query(
            "SELECT c.state AS state, COUNT(*) AS campaigns, \
             CAST(COALESCE(SUM(n.unknown), 0) AS BIGINT) AS unknown FROM campaigns AS c \
             LEFT JOIN campaign_counts AS n ON n.campaign_id = c.id WHERE c.deleted = 0 \
             GROUP BY c.state ORDER BY c.state",
        );
        self.fetch_all(query, rows::campaign_total).await
    }

    async fn suppressed_recipients(&self, campaign: CampaignId) -> Result<u64> {
        // The condition under which a claim is refused.
        let sql = format!(
            "SELECT COUNT(*) AS recipients FROM campaign_recipients AS r \
             JOIN campaigns AS c ON c.id = r.campaign_id \
             LEFT JOIN campaign_accounts AS a ON a.id = c.account_id \
             WHERE r.campaign_id = $1 AND r.state IN ('pending', 'queued', 'sending') AND EXISTS \
             (SELECT 1 FROM campaign_suppressions AS s WHERE {HOLDS} AND {IS_ADDRESS})",
            HOLDS = rows::HOLDS,
            IS_ADDRESS = rows::IS_ADDRESS
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        let read = |row: &_| number(row, "recipients");
        let counted = self.fetch_all_within(self.limits.order, query, read).await?;
        Ok(counted.first().copied().unwrap_or_default())
    }
}

impl Sql {
    /// Recipients that meet a condition: how many, and the positions of the first ten.
    async fn some(
        &self,
        condition: &str,
        campaign: CampaignId,
        field: Option<&str>,
    ) -> Result<(u64, Vec<u64>)> {
        let count =
            format!("SELECT COUNT(*) AS recipients FROM campaign_recipients WHERE {condition}");
        let recipients = self.numbers(count, campaign, field, "recipients").await?;
        let recipients = recipients.first().copied().unwrap_or_default();
        if recipients == 0 {
            return Ok((0, Vec::new()));
        }
        let first = format!(
            "SELECT id, position FROM campaign_recipients WHERE {condition} ORDER BY position LIMIT 10"
        );
        Ok((recipients, self.numbers(first, campaign, field, "position").await?))
    }

    async fn numbers(
        &self,
        sql: String,
        campaign: CampaignId,
        field: Option<&str>,
        column: &str,
    ) -> Result<Vec<u64>> {
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        if let Some(field) = field {
            query = query.bind(field);
        }
        self.fetch_all_within(self.limits.order, query, |row| number(row, column)).await
    }
}
