//! The check of the ticket secret in SQL: one row.

use sqlx::{AnyConnection, Row};

use crate::ticket_secret::WRONG_SECRET;
use crate::vault::Vault;

/// Fails if the keys of this database are encrypted with another secret; the first key decides which.
pub(super) async fn check_secret(db: &mut AnyConnection, vault: &Vault) -> sqlx::Result<()> {
    // Waits for another process that writes the first key at the same time.
    sqlx::query(
        "INSERT INTO ticket_secret (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(vault.seal_check())
    .execute(&mut *db)
    .await?;
    let row = sqlx::query("SELECT sealed FROM ticket_secret").fetch_one(db).await?;
    let sealed: String = row.try_get("sealed")?;
    if vault.opens_check(&sealed) {
        Ok(())
    } else {
        Err(sqlx::Error::Configuration(WRONG_SECRET.into()))
    }
}

/// Writes the check of another secret.
pub(super) async fn write_secret_check(db: &mut AnyConnection, sealed: &str) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO ticket_secret (id, sealed) VALUES (1, $1) \
         ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed",
    )
    .bind(sealed)
    .execute(db)
    .await?;
    Ok(())
}
