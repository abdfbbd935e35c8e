//! Suppressed addresses in SQL.

use std::borrow::Cow;

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, SuppressionReason, address_key};

use super::rows::{self, ALL_ACCOUNTS};
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::value;
use crate::sql::transaction::in_transaction;
use crate::{Result, Suppression, SuppressionFilter, Suppressions, Wishes};

/// Updates are remembered for two days: Telegram repeats them for one.
const UPDATES_KEPT_MS: i64 = 2 * 24 * 3_600_000;

#[async_trait]
impl Suppressions for Sql {
    async fn add_suppressions(&self, suppressions: &[Suppression]) -> Result<u64> {
        in_transaction!(self, Synced, async |db| { self.suppress(db, suppressions).await })
    }

    async fn suppressions(
        &self,
        filter: &SuppressionFilter,
        after: Option<&Suppression>,
        limit: u32,
    ) -> Result<Vec<Suppression>> {
        let address = filter.address.as_deref().map(address_key);
        let mut texts: Vec<&str> = Vec::new();
        let mut sql = format!("SELECT {} FROM campaign_suppressions WHERE TRUE", rows::SUPPRESSION);
        for (column, wanted) in [
            ("owner", filter.owner.as_deref()),
            ("account_id", filter.account.as_ref().map(AccountId::as_str)),
            ("address", address.as_deref()),
            ("reason", filter.reason.map(|reason| reason.as_str())),
        ] {
            if let Some(wanted) = wanted {
                texts.push(wanted);
                sql += &format!(" AND {column} = ${}", texts.len() + 1);
            }
        }
        if let Some(last) = after {
            let place = texts.len() + 2;
            texts.extend([last.owner.as_str(), account_word(last.account.as_ref()), &last.address]);
            sql += &format!(
                " AND (owner, account_id, address) > (${place}, ${}, ${})",
                place + 1,
                place + 2
            );
        }
        sql += " ORDER BY owner, account_id, address LIMIT $1";
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(limit));
        for text in texts {
            query = query.bind(text);
        }
        self.fetch_all(query, rows::suppression).await
    }

    async fn apply_wishes(&self, wishes: &Wishes, now: Timestamp) -> Result<u64> {
        if wishes.stops.is_empty() && wishes.starts.is_empty() {
            return Ok(0);
        }
        let lift = format!(
            "DELETE FROM campaign_suppressions WHERE account_id = $2 AND reason IN ($3, $4) \
             AND address IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        in_transaction!(self, Synced, async |db| {
            if let Some(update) = wishes.update
                && !note_update(&mut *db, &wishes.account, update, now).await?
            {
                return Ok(0);
            }
            let added = self.suppress(&mut *db, &wishes.stops).await?;
            sqlx::query(AssertSqlSafe(lift.as_str()))
                .bind(to_json(&keys(&wishes.starts)))
                .bind(wishes.account.as_str())
                .bind(SuppressionReason::Stop.as_str())
                .bind(SuppressionReason::Blocked.as_str())
                .execute(db)
                .await?;
            Ok(added)
        })
    }

    async fn suppressed_addresses(
        &self,
        owner: &str,
        account: &AccountId,
        addresses: &[String],
    ) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT DISTINCT address FROM campaign_suppressions WHERE owner IN ($2, '') \
             AND account_id IN ($3, $4) AND address IN (SELECT value FROM {}) ORDER BY address",
            self.dialect.each_text("$1")
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(to_json(&keys(addresses))).bind(owner);
        let query = query.bind(ALL_ACCOUNTS).bind(account.as_str());
        self.fetch_all(query, |row| value(row, "address")).await
    }

    async fn remove_suppression(
        &self,
        owner: &str,
        account: Option<&AccountId>,
        address: &str,
    ) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            let done = sqlx::query(
                "DELETE FROM campaign_suppressions WHERE owner = $1 AND account_id = $2 AND address = $3",
            )
            .bind(owner)
            .bind(account_word(account))
            .bind(address_key(address).into_owned())
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
    }
}

/// Addresses as they are compared.
fn keys(addresses: &[String]) -> Vec<Cow<'_, str>> {
    addresses.iter().map(|address| address_key(address)).collect()
}

/// The account of a suppression, as its column has it.
pub(super) fn account_word(account: Option<&AccountId>) -> &str {
    account.map_or(ALL_ACCOUNTS, AccountId::as_str)
}

/// Remembers an update of an account, and forgets old ones; `false`: it was remembered already.
async fn note_update(
    db: &mut AnyConnection,
    account: &AccountId,
    update: i64,
    now: Timestamp,
) -> sqlx::Result<bool> {
    sqlx::query("DELETE FROM campaign_updates WHERE at < $1")
        .bind(now.as_millisecond() - UPDATES_KEPT_MS)
        .execute(&mut *db)
        .await?;
    let noted = sqlx::query(
        "INSERT INTO campaign_updates (account_id, update_id, at) VALUES ($1, $2, $3) \
         ON CONFLICT (account_id, update_id) DO NOTHING",
    )
    .bind(account.as_str())
    .bind(update)
    .bind(now.as_millisecond())
    .execute(db)
    .await?;
    Ok(noted.rows_affected() > 0)
}
