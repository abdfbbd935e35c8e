//! Messages that left, in SQL.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;
use stampede_model::Timestamp;

use crate::sql::Sql;
use crate::sql::rows::{time, value};
use crate::{BOUNCED_LATER, FAILED_LATER, PastSend, PastSends, Result, SendFilter, SendScope};

/// The word of an attempt of which not a byte left, and of one without a message.
const NOT_SENT: [&str; 2] = ["not_sent", "withheld"];

#[async_trait]
impl PastSends for Sql {
    async fn past_sends(
        &self,
        filter: &SendFilter,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<PastSend>> {
        let (of_scope, scope) = match &filter.scope {
            SendScope::Account(id) => {
                ("campaign_id IN (SELECT id FROM campaigns WHERE account_id = $1)", id.to_string())
            }
            SendScope::Campaign(id) => ("campaign_id = $1", id.to_string()),
        };
        // An attempt has no address of its own. The next attempt of a recipient has the number after those that were logged.
        let (of_attempt, of_recipient, of_test) = match filter.once_per_address {
            true => (
                "(SELECT address FROM campaign_recipients WHERE id = recipient_id)",
                "address",
                "address",
            ),
            false => ("recipient_id || ':' || number", "id || ':' || (logged + 1)", "id"),
        };
        let sql = format!(
            "SELECT key, MAX(earliest) AS earliest, MAX(latest) AS latest FROM ( \
             SELECT {of_attempt} AS key, at AS earliest, at AS latest FROM campaign_attempts \
             WHERE {of_scope} AND counted = 1 AND at > $2 AND outcome NOT IN ($5, $6, $7, $8) \
             UNION ALL \
             SELECT {of_recipient}, updated_at, CAST($3 AS BIGINT) FROM campaign_recipients \
             WHERE {of_scope} AND state = 'sending' \
             UNION ALL \
             SELECT {of_recipient}, CAST($2 AS BIGINT), updated_at FROM campaign_recipients \
             WHERE {of_scope} AND state = 'unknown' AND run_id IS NOT NULL AND updated_at > $2 \
             UNION ALL \
             SELECT {of_test}, at, COALESCE(at + took_ms, CAST($3 AS BIGINT)) FROM campaign_tests \
             WHERE {of_scope} AND at > $2 AND COALESCE(outcome, '') NOT IN ($7, $8) \
             ) AS sends WHERE key IS NOT NULL GROUP BY key ORDER BY latest DESC, key LIMIT $4"
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(scope)
            .bind(filter.since.as_millisecond())
            .bind(now.as_millisecond())
            .bind(i64::from(limit))
            .bind(BOUNCED_LATER)
            .bind(FAILED_LATER)
            .bind(NOT_SENT[0])
            .bind(NOT_SENT[1]);
        self.fetch_all_within(self.limits.order, query, past_send).await
    }
}

fn past_send(row: &AnyRow) -> sqlx::Result<PastSend> {
    Ok(PastSend {
        key: value(row, "key")?,
        earliest: time(row, "earliest")?,
        latest: time(row, "latest")?,
    })
}
