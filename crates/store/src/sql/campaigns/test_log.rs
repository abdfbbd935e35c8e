//! The log of test messages in SQL.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::CampaignId;

use super::rows;
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::transaction::in_transaction;
use crate::{Result, TESTS_KEPT, TestAttempt, TestEnd, TestLog};

#[async_trait]
impl TestLog for Sql {
    async fn note_test(&self, test: &TestAttempt) -> Result<()> {
        let ms = |took: Duration| i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let end = test.end.as_ref();
        let text = |text: fn(&TestEnd) -> Option<&String>| end.and_then(text).cloned();
        in_transaction!(self, Synced, async |db| {
            sqlx::query(
                "INSERT INTO campaign_tests (id, campaign_id, address, position, at, took_ms, outcome, code, \
                 answer, provider_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                 ON CONFLICT (id) DO UPDATE SET took_ms = excluded.took_ms, outcome = excluded.outcome, \
                 code = excluded.code, answer = excluded.answer, provider_id = excluded.provider_id",
            )
            .bind(test.id.to_string())
            .bind(test.campaign.to_string())
            .bind(test.address.as_str())
            .bind(i64::try_from(test.position).unwrap_or(i64::MAX))
            .bind(test.at.as_millisecond())
            .bind(end.map(|end| ms(end.took)))
            .bind(end.map(|end| end.outcome.clone()))
            .bind(text(|end| end.code.as_ref()))
            .bind(text(|end| end.answer.as_ref()))
            .bind(text(|end| end.provider_id.as_ref()))
            .execute(&mut *db)
            .await?;
            sqlx::query(
                "DELETE FROM campaign_tests WHERE campaign_id = $1 AND id NOT IN \
                 (SELECT id FROM campaign_tests WHERE campaign_id = $1 ORDER BY id DESC LIMIT $2)",
            )
            .bind(test.campaign.to_string())
            .bind(i64::from(TESTS_KEPT))
            .execute(db)
            .await?;
            Ok(())
        })
    }

    async fn campaign_tests(&self, campaign: CampaignId) -> Result<Vec<TestAttempt>> {
        let sql = format!(
            "SELECT {} FROM campaign_tests WHERE campaign_id = $1 ORDER BY id DESC",
            rows::TEST
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(campaign.to_string());
        self.fetch_all(query, rows::test).await
    }
}
