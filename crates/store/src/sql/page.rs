//! Reading many rows: pages of a table, and rows by a list of ids.

use serde::Serialize;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use super::Sql;
use crate::Result;

/// One page of a table.
pub(super) struct Page {
    pub(super) table: &'static str,
    pub(super) columns: &'static str,
    pub(super) order: &'static str,
    /// Most rows of the page.
    pub(super) limit: u32,
}

impl Sql {
    /// Reads a page of the rows that meet all conditions (`column operator`, value).
    pub(super) async fn page<T>(
        &self,
        page: Page,
        conditions: Vec<(&'static str, String)>,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Vec<T>> {
        let Page { table, columns, order, limit } = page;
        let mut sql = format!("SELECT {columns} FROM {table} WHERE TRUE");
        for (number, (condition, _)) in conditions.iter().enumerate() {
            sql += &format!(" AND {condition} ${}", number + 2);
        }
        sql += &format!(" ORDER BY {order} LIMIT $1");
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(limit));
        for (_, value) in conditions {
            query = query.bind(value);
        }
        self.fetch_all(query, read).await
    }

    /// Reads the rows with these ids, by id.
    pub(super) async fn fetch_many<T>(
        &self,
        table: &'static str,
        columns: &'static str,
        ids: impl Serialize,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Vec<T>> {
        let each = self.dialect.each_text("$1");
        let sql = format!(
            "SELECT {columns} FROM {table} WHERE id IN (SELECT value FROM {each}) ORDER BY id"
        );
        self.fetch_all(sqlx::query(AssertSqlSafe(sql)).bind(to_json(&ids)), read).await
    }
}

/// Writes plain data as JSON, the form in which many rows go into one statement.
pub(super) fn to_json(rows: &impl Serialize) -> String {
    // Structs of texts and numbers always serialise; an empty list would change nothing.
    serde_json::to_string(rows).unwrap_or_else(|_| "[]".to_owned())
}
