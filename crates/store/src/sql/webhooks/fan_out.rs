//! From the outbox to deliveries: in the transaction that settles rows, each becomes a delivery to every endpoint that chose it.
//!
//! So a message is never lost between the two, and has one delivery to an endpoint however often its row is relayed.

use std::collections::BTreeSet;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{DeliveryId, FeedEventId, WebhookId};

use super::rows;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::{OutboxRow, Webhook};

/// A delivery, as it goes into the statement.
#[derive(Serialize)]
struct NewRow<'a> {
    id: DeliveryId,
    endpoint: WebhookId,
    message: FeedEventId,
    kind: &'a str,
    event: Option<String>,
    batch: Option<String>,
    at: i64,
    data: &'a str,
}

impl Sql {
    /// Writes the deliveries of rows that are being settled; returns whether there are any.
    pub(in crate::sql) async fn fan_out(
        &self,
        db: &mut AnyConnection,
        rows: &[&OutboxRow],
    ) -> sqlx::Result<bool> {
        let owners: BTreeSet<&str> = rows.iter().map(|row| row.owner.as_str()).collect();
        let endpoints = self.active_endpoints(&mut *db, &owners).await?;
        let mut deliveries = Vec::new();
        for row in rows {
            let chosen = endpoints.iter().filter(|webhook| chooses(webhook, row));
            deliveries.extend(chosen.map(|webhook| NewRow {
                id: DeliveryId::generate(),
                endpoint: webhook.id,
                message: row.id,
                kind: &row.kind,
                event: row.event_id.map(|id| id.to_string()),
                batch: row.batch_id.map(|id| id.to_string()),
                at: row.at.as_millisecond(),
                data: &row.data,
            }));
        }
        if deliveries.is_empty() {
            return Ok(false);
        }
        let insert = format!(
            "INSERT INTO webhook_deliveries (id, endpoint_id, message_id, kind, event_id, batch_id, happened_at, \
             data, state, attempts, tries, queued, created_at) \
             SELECT value ->> 'id', value ->> 'endpoint', value ->> 'message', value ->> 'kind', \
             value ->> 'event', value ->> 'batch', CAST(value ->> 'at' AS BIGINT), value ->> 'data', \
             'pending', 0, 0, 0, CAST(value ->> 'at' AS BIGINT) FROM {} WHERE TRUE \
             ON CONFLICT (endpoint_id, message_id) DO NOTHING",
            self.dialect.each_object("$1")
        );
        sqlx::query(AssertSqlSafe(insert)).bind(to_json(&deliveries)).execute(db).await?;
        Ok(true)
    }

    /// The active endpoints of some users. None of them is disabled before the transaction ends.
    async fn active_endpoints(
        &self,
        db: &mut AnyConnection,
        owners: &BTreeSet<&str>,
    ) -> sqlx::Result<Vec<Webhook>> {
        let read = format!(
            "SELECT {} FROM webhook_endpoints WHERE owner IN (SELECT value FROM {}) \
             AND disabled_at IS NULL AND deleted_at IS NULL ORDER BY id {}",
            rows::WEBHOOK,
            self.dialect.each_text("$1"),
            self.dialect.to_rely_on()
        );
        let found = sqlx::query(AssertSqlSafe(read)).bind(to_json(owners)).fetch_all(db).await?;
        found.iter().map(rows::webhook).collect()
    }
}

/// Whether an endpoint gets a message of its owner.
fn chooses(webhook: &Webhook, row: &OutboxRow) -> bool {
    let kinds = webhook.kinds.as_ref();
    webhook.owner == row.owner
        && kinds.is_none_or(|kinds| kinds.contains(&row.kind))
        && webhook.event.is_none_or(|event| row.event_id == Some(event))
}
