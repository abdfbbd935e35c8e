//! Versions of rows: a row is locked and its `updated_at` compared, in the transaction that changes it.

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::Timestamp;

use super::{Sql, rows};

/// A table whose rows have versions, and the column of their ids, behind a condition if not all rows count.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Event,
    Ticket,
    Template,
    List,
    Gate,
    Block,
    Key,
    Account,
    Campaign,
}

impl Of {
    fn table(self) -> (&'static str, &'static str) {
        match self {
            Self::Event => ("events", "id"),
            Self::Ticket => ("tickets", "id"),
            Self::Template => ("templates", "id"),
            Self::List => ("check_in_lists", "id"),
            Self::Gate => ("check_in_gates", "id"),
            Self::Block => ("check_in_blocks", "ticket_id"),
            Self::Key => ("keys", "id"),
            Self::Account => ("campaign_accounts", "deleted = 0 AND id"),
            Self::Campaign => ("campaigns", "deleted = 0 AND id"),
        }
    }
}

/// A row that is locked until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// It has the version that was seen, or none was.
    AsSeen,
    /// It has another version.
    Changed,
    /// There is no such row.
    Missing,
}

impl Sql {
    /// Locks a row until the transaction ends, and compares its version with the one that was seen.
    pub(super) async fn hold_as_seen(
        &self,
        db: &mut AnyConnection,
        of: Of,
        id: &str,
        seen: Option<Timestamp>,
    ) -> sqlx::Result<Held> {
        let (table, key) = of.table();
        let lock = self.dialect.to_change();
        let sql = format!("SELECT updated_at FROM {table} WHERE {key} = $1 {lock}");
        let row = sqlx::query(AssertSqlSafe(sql)).bind(id).fetch_optional(db).await?;
        let Some(row) = row else { return Ok(Held::Missing) };
        let version = rows::time(&row, "updated_at")?;
        Ok(if seen.is_none_or(|seen| seen == version) { Held::AsSeen } else { Held::Changed })
    }
}
