//! Accounts in SQL.

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::Timestamp;
use stampede_model::campaign::AccountId;

use super::rows;
use crate::Durability::Synced;
use crate::campaigns::CREDENTIALS_LOST;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{number, parsed, value};
use crate::sql::ticket_secret::check_secret;
use crate::sql::transaction::in_transaction;
use crate::sql::versions::{Held, Of};
use crate::vault::Vault;
use crate::{
    Account, AccountDeleted, AccountFilter, AccountWritten, Accounts, Result, Slice, Sorted,
    Versioned,
};

#[async_trait]
impl Accounts for Sql {
    async fn insert_account(
        &self,
        account: &Account,
        credentials: &[u8],
        most: u32,
        vault: &Vault,
    ) -> Result<AccountWritten> {
        let sealed = sealed(vault, &account.id, credentials);
        // Accounts are made one after the other, so that those of an owner are counted right.
        let lock = format!(
            "SELECT id FROM campaign_accounts WHERE id = $1 {}",
            self.dialect.to_count_on()
        );
        in_transaction!(self, Synced, async |db| {
            check_secret(&mut *db, vault).await?;
            let lock = sqlx::query(AssertSqlSafe(lock.as_str())).bind(AccountId::CONSOLE);
            lock.execute(&mut *db).await?;
            let namesake = sqlx::query(
                "SELECT id, owner, deleted, channel, (SELECT COUNT(*) FROM campaigns \
                 WHERE account_id = $1 AND campaigns.deleted = 0) AS campaigns FROM campaign_accounts WHERE id = $1",
            );
            let namesake = namesake.bind(account.id.as_str()).fetch_optional(&mut *db).await?;
            if let Some(row) = namesake {
                let is_deleted = number::<u8>(&row, "deleted")? != 0;
                let is_of_owner = value::<Option<String>>(&row, "owner")? == account.owner;
                // Its campaigns have addresses, and messages in flight, of the former channel.
                let is_used = number::<u64>(&row, "campaigns")? > 0;
                let is_same = value::<String>(&row, "channel")? == account.channel.as_str();
                if !is_deleted || !is_of_owner || is_used && !is_same {
                    return Ok(AccountWritten::Taken);
                }
            }
            if count(&mut *db, account.owner.as_deref()).await? >= u64::from(most) {
                return Ok(AccountWritten::TooMany);
            }
            sqlx::query("DELETE FROM campaign_accounts WHERE id = $1")
                .bind(account.id.as_str())
                .execute(&mut *db)
                .await?;
            insert(db, account, sealed.as_deref()).await?;
            Ok(AccountWritten::Done)
        })
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        let sql = select("id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.as_str());
        self.fetch_optional(query, rows::account).await
    }

    async fn account_even_deleted(&self, id: &AccountId) -> Result<Option<Account>> {
        let sql = format!("SELECT {} FROM campaign_accounts WHERE id = $1", rows::ACCOUNT);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.as_str());
        self.fetch_optional(query, rows::account).await
    }

    async fn accounts(
        &self,
        filter: &AccountFilter,
        slice: &Slice<AccountId>,
    ) -> Result<Vec<Account>> {
        let (beyond, order) = match slice.sorted {
            Sorted::NewestFirst => ("id <", "id DESC"),
            Sorted::OldestFirst => ("id >", "id"),
        };
        let mut texts = Vec::new();
        texts.extend(filter.channel.map(|channel| ("channel =", channel.as_str().to_owned())));
        texts.extend(slice.after.as_ref().map(|id| (beyond, id.to_string())));
        let mut sql = select("(CAST($1 AS TEXT) IS NULL OR owner IS NULL OR owner = $1)");
        let mut place = 2;
        for (condition, _) in &texts {
            place += 1;
            sql += &format!(" AND {condition} ${place}");
        }
        // Ids are chosen by people, so they do not tell the time.
        let times: Vec<(&str, Timestamp)> =
            [("created_at >=", slice.from), ("created_at <", slice.to)]
                .into_iter()
                .filter_map(|(condition, at)| Some((condition, at?)))
                .collect();
        for (condition, _) in &times {
            place += 1;
            sql += &format!(" AND {condition} ${place}");
        }
        sql += &format!(" ORDER BY {order} LIMIT $2");
        let mut query = sqlx::query(AssertSqlSafe(sql))
            .bind(filter.usable_by.as_deref())
            .bind(i64::from(slice.limit));
        for (_, text) in texts {
            query = query.bind(text);
        }
        for (_, at) in times {
            query = query.bind(at.as_millisecond());
        }
        self.fetch_all(query, rows::account).await
    }

    async fn update_account_as_seen(
        &self,
        account: &Account,
        credentials: Option<&[u8]>,
        seen: Option<Timestamp>,
        vault: &Vault,
    ) -> Result<Versioned<Account>> {
        let sealed = credentials.map(|credentials| sealed(vault, &account.id, credentials));
        // Lost credentials do not come back with other settings.
        let update = format!(
            "UPDATE campaign_accounts SET blocked = CASE WHEN $8 = 1 OR settings <> $3 AND credentials_lost = 0 \
             THEN NULL ELSE blocked END, \
             credentials = CASE WHEN $8 = 1 THEN CAST($7 AS TEXT) ELSE credentials END, \
             credentials_lost = CASE WHEN $8 = 1 THEN 0 ELSE credentials_lost END, \
             name = $2, settings = $3, pacing = $4, country = $5, time_zone = $6, updated_at = {} \
             WHERE id = $1",
            self.dialect.later("$9", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            if sealed.is_some() {
                check_secret(&mut *db, vault).await?;
            }
            match self.hold_as_seen(&mut *db, Of::Account, account.id.as_str(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(account.id.as_str())
                .bind(account.name.as_str())
                .bind(account.settings.as_str())
                .bind(to_json(&account.pacing))
                .bind(account.country.as_deref())
                .bind(account.time_zone.as_deref())
                .bind(sealed.as_ref().and_then(Option::as_deref))
                .bind(i64::from(sealed.is_some()))
                .bind(account.updated_at.as_millisecond())
                .execute(&mut *db)
                .await?;
            let sql = select("id = $1");
            let row = sqlx::query(AssertSqlSafe(sql)).bind(account.id.as_str());
            let row = row.fetch_optional(db).await?;
            let found = row.as_ref().map(rows::account).transpose()?;
            Ok(found.map_or(Versioned::NotFound, Versioned::Done))
        })
    }

    async fn delete_account_as_seen(
        &self,
        id: &AccountId,
        seen: Option<Timestamp>,
    ) -> Result<AccountDeleted> {
        if id.is_console() {
            return Ok(AccountDeleted::InUse);
        }
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(&mut *db, Of::Account, id.as_str(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(AccountDeleted::ChangedMeanwhile),
                Held::Missing => return Ok(AccountDeleted::NotFound),
            }
            let used = sqlx::query(
                "SELECT id FROM campaigns WHERE account_id = $1 AND deleted = 0 \
                 AND state IN ('scheduled', 'running', 'paused') LIMIT 1",
            );
            if used.bind(id.as_str()).fetch_optional(&mut *db).await?.is_some() {
                return Ok(AccountDeleted::InUse);
            }
            sqlx::query(
                "UPDATE campaign_accounts SET deleted = 1, credentials = NULL, settings = '{}' WHERE id = $1",
            )
            .bind(id.as_str())
            .execute(db)
            .await?;
            Ok(AccountDeleted::Gone)
        })
    }

    async fn sealed_credentials(&self, id: &AccountId) -> Result<Option<String>> {
        let query = sqlx::query(
            "SELECT id, credentials FROM campaign_accounts \
             WHERE id = $1 AND deleted = 0 AND credentials IS NOT NULL",
        );
        self.fetch_optional(query.bind(id.as_str()), |row| value(row, "credentials")).await
    }

    async fn lose_credentials(&self, now: Timestamp) -> Result<u64> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            let find = format!(
                "SELECT id FROM campaign_accounts WHERE credentials IS NOT NULL ORDER BY id {}",
                self.dialect.to_change()
            );
            let found = sqlx::query(AssertSqlSafe(find)).fetch_all(&mut *db).await?;
            for row in &found {
                let id: AccountId = parsed(row, "id")?;
                sqlx::query("UPDATE campaign_accounts SET credentials_lost = 1 WHERE id = $1")
                    .bind(id.as_str())
                    .execute(&mut *db)
                    .await?;
                self.block(&mut *db, &id, CREDENTIALS_LOST, None, now).await?;
            }
            Ok(found.len() as u64)
        })
    }
}

/// A query of the accounts that are not deleted and meet a condition.
fn select(condition: &str) -> String {
    format!("SELECT {} FROM campaign_accounts WHERE deleted = 0 AND {condition}", rows::ACCOUNT)
}

/// Credentials as they are kept; `None`: there are none.
fn sealed(vault: &Vault, id: &AccountId, credentials: &[u8]) -> Option<String> {
    (!credentials.is_empty()).then(|| vault.seal_account_credentials(id, credentials))
}

/// The number of accounts that a user has, or nobody.
async fn count(db: &mut AnyConnection, owner: Option<&str>) -> sqlx::Result<u64> {
    let count = sqlx::query(
        "SELECT 'accounts' AS id, COUNT(*) AS accounts FROM campaign_accounts WHERE deleted = 0 \
         AND id <> $2 AND (owner = $1 OR owner IS NULL AND CAST($1 AS TEXT) IS NULL)",
    );
    let row = count.bind(owner).bind(AccountId::CONSOLE).fetch_one(db).await?;
    number(&row, "accounts")
}

async fn insert(
    db: &mut AnyConnection,
    account: &Account,
    sealed: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO campaign_accounts (id, owner, name, channel, settings, pacing, country, time_zone, \
         blocked, credentials, first_sent_at, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(account.id.as_str())
    .bind(account.owner.as_deref())
    .bind(account.name.as_str())
    .bind(account.channel.as_str())
    .bind(account.settings.as_str())
    .bind(to_json(&account.pacing))
    .bind(account.country.as_deref())
    .bind(account.time_zone.as_deref())
    .bind(account.blocked.as_deref())
    .bind(sealed)
    .bind(account.first_sent_at.map(Timestamp::as_millisecond))
    .bind(account.created_at.as_millisecond())
    .bind(account.updated_at.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}
