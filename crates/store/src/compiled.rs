//! What templates were compiled to: a cache that all processes share, bounded in size.

use sqlx::Row;
use stampede_model::Timestamp;

use crate::transaction::in_transaction;
use crate::{Result, Store};

/// Bytes kept in all; beyond that the oldest go.
const KEPT_BYTES: i64 = 512 << 20;

impl Store {
    /// What is kept under a key.
    pub async fn compiled_template(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let query = sqlx::query("SELECT blob FROM compiled_templates WHERE key = $1");
        let row = self.fetch_optional(query.bind(key)).await?;
        Ok(row.map(|row| row.try_get("blob")).transpose()?)
    }

    /// The keys of all that is kept, the newest first.
    pub async fn compiled_template_keys(&self) -> Result<Vec<String>> {
        let query = sqlx::query("SELECT key FROM compiled_templates ORDER BY made_at DESC, key");
        let rows = self.fetch_all(query).await?;
        Ok(rows.iter().map(|row| row.try_get("key")).collect::<sqlx::Result<_>>()?)
    }

    /// Keeps what a template was compiled to; the same key always stands for the same.
    pub async fn keep_compiled_template(
        &self,
        key: &str,
        blob: &[u8],
        now: Timestamp,
    ) -> Result<()> {
        self.keep_compiled_within(KEPT_BYTES, key, blob, now).await
    }

    /// The same with a limit of one's own.
    #[doc(hidden)]
    pub async fn keep_compiled_within(
        &self,
        limit: i64,
        key: &str,
        blob: &[u8],
        now: Timestamp,
    ) -> Result<()> {
        in_transaction!(self, async |db| {
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
            .bind(limit)
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }
}
