//! Reading API keys from SQL.

use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;
use stampede_model::{KeyId, Timestamp};

use crate::api_keys::PRESET_KEY_ID;
use crate::sql::page::to_json;
use crate::sql::{Sql, rows, slices};
use crate::{ApiKey, KeyFilter, KeyKind, KeyState, Result, Slice};

impl Sql {
    pub(super) async fn read_key(&self, id: KeyId, now: Timestamp) -> Result<Option<ApiKey>> {
        let sql = format!("{} WHERE id = $1", select(now));
        self.fetch_optional(sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()), key).await
    }

    pub(super) async fn list_keys(
        &self,
        filter: &KeyFilter,
        slice: &Slice<KeyId>,
        now: Timestamp,
    ) -> Result<Vec<ApiKey>> {
        let (conditions, values) = self.conditions(filter, slice, now);
        let mut sql = format!("{} WHERE TRUE", select(now));
        for condition in conditions {
            sql += &format!(" AND {condition}");
        }
        sql += &format!(" ORDER BY {} LIMIT $1", slices::order(slice));
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(slice.limit));
        for value in values {
            query = query.bind(value);
        }
        self.fetch_all(query, key).await
    }

    /// The conditions of a listing, and the values of their parameters, which begin with `$2`.
    fn conditions(
        &self,
        filter: &KeyFilter,
        slice: &Slice<KeyId>,
        now: Timestamp,
    ) -> (Vec<String>, Vec<String>) {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        let mut equals = |condition: &str, value: Option<String>| {
            if let Some(value) = value {
                values.push(value);
                conditions.push(format!("{condition} ${}", values.len() + 1));
            }
        };
        equals("owner =", filter.user.clone());
        equals("role =", filter.role.map(|role| role.to_string()));
        equals("label =", filter.name.clone());
        for (condition, value) in slices::conditions(slice) {
            equals(condition, Some(value));
        }
        let now = now.as_millisecond();
        conditions.extend(filter.state.map(|state| match state {
            KeyState::Active => {
                format!("revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})")
            }
            KeyState::Expired => format!("revoked_at IS NULL AND expires_at <= {now}"),
            KeyState::Revoked => "revoked_at IS NOT NULL".to_owned(),
        }));
        if filter.within.is_limited() {
            conditions.push("(event_id IS NOT NULL OR queues IS NOT NULL)".to_owned());
            values.push(filter.within.event.map(|id| id.to_string()).unwrap_or_default());
            conditions.push(format!("(event_id IS NULL OR event_id = ${})", values.len() + 1));
            values.push(to_json(&filter.within.queues.as_deref().unwrap_or_default()));
            conditions.push(self.only_queues(values.len() + 1));
        }
        (conditions, values)
    }

    /// No queue of the key is missing in the JSON list that is the parameter.
    fn only_queues(&self, parameter: usize) -> String {
        format!(
            "NOT EXISTS (SELECT 1 FROM {} AS own WHERE own.value NOT IN (SELECT named.value FROM {} AS named))",
            self.dialect.each_text("keys.queues"),
            self.dialect.each_text(&format!("${parameter}")),
        )
    }
}

/// The beginning of a query that [`key`] reads.
fn select(now: Timestamp) -> String {
    format!(
        "SELECT id, owner, role, label, event_id, queues, created_at, updated_at, expires_at, revoked_at, \
         last_used_at, last_used_from, \
         CAST(CASE WHEN EXISTS (SELECT 1 FROM check_in_devices WHERE key_id = keys.id) THEN 1 ELSE 0 END AS BIGINT) AS is_device, \
         (SELECT MAX(valid_until) FROM former_keys WHERE key_id = keys.id AND valid_until > {}) AS former_until \
         FROM keys",
        now.as_millisecond()
    )
}

fn key(row: &AnyRow) -> sqlx::Result<ApiKey> {
    let (id, principal) = (rows::parsed(row, "id")?, rows::principal(row)?);
    Ok(ApiKey {
        id,
        kind: kind(row, id)?,
        name: rows::value(row, "label")?,
        principal,
        created_at: rows::time(row, "created_at")?,
        updated_at: rows::time(row, "updated_at")?,
        revoked_at: rows::optional_time(row, "revoked_at")?,
        last_used_at: rows::optional_time(row, "last_used_at")?,
        last_used_from: rows::value(row, "last_used_from")?,
        former_until: rows::optional_time(row, "former_until")?,
    })
}

fn kind(row: &AnyRow, id: KeyId) -> sqlx::Result<KeyKind> {
    if id.to_string() == PRESET_KEY_ID {
        return Ok(KeyKind::Preset);
    }
    let is_device: i32 = rows::number(row, "is_device")?;
    Ok(if is_device == 1 { KeyKind::Device } else { KeyKind::Issued })
}
