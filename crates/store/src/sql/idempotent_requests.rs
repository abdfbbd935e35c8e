//! Requests that are carried out once, in SQL.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::any::AnyRow;
use stampede_model::Timestamp;

use super::Sql;
use super::rows::value;
use super::transaction::in_transaction;
use crate::Durability::{Relaxed, Synced};
use crate::{IdempotentRequests, RequestClaim, RequestClaimed, Result};

#[async_trait]
impl IdempotentRequests for Sql {
    async fn claim(&self, claim: &RequestClaim<'_>, now: Timestamp) -> Result<RequestClaimed> {
        in_transaction!(self, Relaxed, async |db| {
            let claimed = sqlx::query(
                "INSERT INTO idempotent_requests (owner, key, target, holder, held_until, expires_at) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, key) DO UPDATE SET \
                 target = excluded.target, holder = excluded.holder, held_until = excluded.held_until, \
                 expires_at = excluded.expires_at, body_hash = NULL, answer = NULL \
                 WHERE idempotent_requests.expires_at <= $7 OR \
                 (idempotent_requests.body_hash IS NULL AND idempotent_requests.held_until <= $7)",
            )
            .bind(claim.owner)
            .bind(claim.key)
            .bind(claim.target)
            .bind(claim.holder)
            .bind(claim.held_until.as_millisecond())
            .bind(claim.expires_at.as_millisecond())
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
            if claimed.rows_affected() > 0 {
                return Ok(RequestClaimed::Yes);
            }
            let found = sqlx::query(
                "SELECT target, body_hash, answer FROM idempotent_requests WHERE owner = $1 AND key = $2",
            )
            .bind(claim.owner)
            .bind(claim.key)
            .fetch_one(&mut *db)
            .await?;
            known(&found, claim.target)
        })
    }

    async fn keep_sealed(
        &self,
        claim: &RequestClaim<'_>,
        body_hash: &str,
        answer: Option<&[u8]>,
    ) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            let done = sqlx::query(
                "UPDATE idempotent_requests SET body_hash = $4, answer = $5 \
                 WHERE owner = $1 AND key = $2 AND holder = $3 AND body_hash IS NULL",
            )
            .bind(claim.owner)
            .bind(claim.key)
            .bind(claim.holder)
            .bind(body_hash)
            .bind(answer.map(<[u8]>::to_vec))
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    async fn release(&self, claim: &RequestClaim<'_>) -> Result<bool> {
        in_transaction!(self, Relaxed, async |db| {
            let done = sqlx::query(
                "DELETE FROM idempotent_requests \
                 WHERE owner = $1 AND key = $2 AND holder = $3 AND body_hash IS NULL",
            )
            .bind(claim.owner)
            .bind(claim.key)
            .bind(claim.holder)
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    async fn forget_requests(&self, most: u32, now: Timestamp) -> Result<u64> {
        in_transaction!(self, Relaxed, async |db| {
            let done = sqlx::query(
                "DELETE FROM idempotent_requests WHERE (owner, key) IN \
                 (SELECT owner, key FROM idempotent_requests WHERE expires_at <= $1 \
                 ORDER BY expires_at LIMIT $2) AND expires_at <= $1",
            )
            .bind(now.as_millisecond())
            .bind(i64::from(most))
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
    }
}

/// What a record that somebody else claimed says to a request with this target.
fn known(row: &AnyRow, target: &str) -> sqlx::Result<RequestClaimed> {
    if value::<String>(row, "target")? != target {
        return Ok(RequestClaimed::OtherTarget);
    }
    Ok(match value::<Option<String>>(row, "body_hash")? {
        None => RequestClaimed::InFlight,
        Some(body_hash) => RequestClaimed::Done { body_hash, answer: row.try_get("answer")? },
    })
}
