//! The cache of compiled templates in SQL.

use async_trait::async_trait;
use sqlx::Row;
use stampede_model::Timestamp;

use super::Sql;
use super::transaction::in_transaction;
use crate::Durability::Relaxed;
use crate::{CompiledTemplates, Result};

#[async_trait]
impl CompiledTemplates for Sql {
    async fn compiled_template(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let query = sqlx::query("SELECT blob FROM compiled_templates WHERE key = $1");
        self.fetch_optional(query.bind(key), |row| row.try_get("blob")).await
    }

    async fn compiled_template_keys(&self) -> Result<Vec<String>> {
        let query = sqlx::query("SELECT key FROM compiled_templates ORDER BY made_at DESC, key");
        self.fetch_all(query, |row| row.try_get("key")).await
    }

    async fn keep_compiled_within(
        &self,
        max_bytes: u64,
        key: &str,
        blob: &[u8],
        now: Timestamp,
    ) -> Result<()> {
        in_transaction!(self, Relaxed, async |db| {
            sqlx::query(
                "INSERT INTO compiled_templates (key, blob, size, made_at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (key) DO UPDATE SET blob = excluded.blob, size = excluded.size, \
                 made_at = excluded.made_at",
            )
            .bind(key)
            .bind(blob.to_vec())
            .bind(blob.len() as i64)
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
            sqlx::query(
                "DELETE FROM compiled_templates WHERE key <> $1 AND key IN (SELECT key FROM \
                 (SELECT key, SUM(size) OVER (ORDER BY made_at DESC, key) AS total \
                 FROM compiled_templates) AS aged WHERE total > $2)",
            )
            .bind(key)
            .bind(i64::try_from(max_bytes).unwrap_or(i64::MAX))
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }
}
