//! Events in SQL.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::feed::Change;
use stampede_model::{Event, EventId, TemplateChoice, TicketId, Timestamp};

use super::outbox::Told;
use super::page::Page;
use super::ticket_keys::insert_key;
use super::transaction::in_transaction;
use super::versions::{Held, Of};
use super::{Sql, rows, slices};
use crate::Durability::Synced;
use crate::vault::Vault;
use crate::{Deleted, Events, Result, Slice, Versioned};

#[async_trait]
impl Events for Sql {
    async fn insert_event(&self, event: &Event, vault: &Vault) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
            let details = &event.details;
            let template = TemplateColumns::of(details.template.as_ref());
            sqlx::query(
                "INSERT INTO events (id, owner, name, location, starts_at, time_zone, currency, \
                 primary_color, secondary_color, created_at, updated_at, template_design, \
                 template_id, template_revision, lang) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            )
            .bind(event.id.to_string())
            .bind(event.owner.as_str())
            .bind(details.name.as_str())
            .bind(details.location.as_str())
            .bind(details.starts_at.map(|time| time.as_millisecond()))
            .bind(details.time_zone.as_str())
            .bind(details.currency.code())
            .bind(details.branding.primary.to_string())
            .bind(details.branding.secondary.to_string())
            .bind(event.created_at.as_millisecond())
            .bind(event.updated_at.as_millisecond())
            .bind(template.design)
            .bind(template.id)
            .bind(template.revision)
            .bind(details.lang.as_ref().map(ToString::to_string))
            .execute(&mut *db)
            .await?;
            insert_key(db, vault, event.id, 1, event.created_at).await?;
            let created = Change::EventCreated(event.into());
            self.tell(db, [Told::of_event(&event.owner, event.id, created)]).await
        })
    }

    async fn event(&self, id: EventId) -> Result<Option<Event>> {
        let sql = format!("SELECT {} FROM events WHERE id = $1", rows::EVENT);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::event).await
    }

    async fn events_slice(
        &self,
        owner: Option<&str>,
        slice: &Slice<EventId>,
    ) -> Result<Vec<Event>> {
        let mut conditions = slices::conditions(slice);
        conditions.extend(owner.map(|owner| ("owner =", owner.to_owned())));
        let (order, limit) = (slices::order(slice), slice.limit);
        let page = Page { table: "events", columns: rows::EVENT, order, limit };
        self.page(page, conditions, rows::event).await
    }

    async fn event_ids(&self, after: Option<EventId>, limit: u32) -> Result<Vec<EventId>> {
        let conditions = after.map(|id| ("id >", id.to_string())).into_iter().collect();
        let page = Page { table: "events", columns: "id", order: "id", limit };
        self.page(page, conditions, |row| rows::parsed(row, "id")).await
    }

    async fn update_event(&self, event: &Event, seen: Timestamp) -> Result<bool> {
        let sql = format!(
            "UPDATE events SET name = $2, location = $3, starts_at = $4, time_zone = $5, \
             currency = $6, primary_color = $7, secondary_color = $8, updated_at = {}, \
             template_design = $11, template_id = $12, template_revision = $13, lang = $14 \
             WHERE id = $1 AND updated_at = $10",
            self.dialect.later("$9", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            let details = &event.details;
            let template = TemplateColumns::of(details.template.as_ref());
            let done = sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(event.id.to_string())
                .bind(details.name.as_str())
                .bind(details.location.as_str())
                .bind(details.starts_at.map(|time| time.as_millisecond()))
                .bind(details.time_zone.as_str())
                .bind(details.currency.code())
                .bind(details.branding.primary.to_string())
                .bind(details.branding.secondary.to_string())
                .bind(event.updated_at.as_millisecond())
                .bind(seen.as_millisecond())
                .bind(template.design)
                .bind(template.id)
                .bind(template.revision)
                .bind(details.lang.as_ref().map(ToString::to_string))
                .execute(&mut *db)
                .await?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            let changed = Change::EventChanged(event.into());
            self.tell(db, [Told::of_event(&event.owner, event.id, changed)]).await?;
            Ok(true)
        })
    }

    async fn delete_event_as_seen(&self, id: EventId, seen: Option<Timestamp>) -> Result<Deleted> {
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(db, Of::Event, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Deleted::ChangedMeanwhile),
                Held::Missing => return Ok(Deleted::NotFound),
            }
            let count = sqlx::query("SELECT COUNT(*) AS tickets FROM tickets WHERE event_id = $1")
                .bind(id.to_string())
                .fetch_one(&mut *db)
                .await?;
            let tickets = rows::number(&count, "tickets")?;
            if tickets > 0 {
                return Ok(Deleted::HasTickets(tickets));
            }
            self.tell_deleted(db, id).await?;
            remove_event(db, id).await?;
            Ok(Deleted::Gone)
        })
    }

    async fn delete_event_with_tickets_as_seen(
        &self,
        id: EventId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Vec<TicketId>>> {
        let sql = format!(
            "SELECT id FROM tickets WHERE event_id = $1 ORDER BY id {}",
            self.dialect.to_change()
        );
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(db, Of::Event, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            let tickets = sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(id.to_string())
                .fetch_all(&mut *db)
                .await?;
            // Without its counter, no deleted ticket is noted for scanners.
            sqlx::query("DELETE FROM check_in_counters WHERE event_id = $1")
                .bind(id.to_string())
                .execute(&mut *db)
                .await?;
            sqlx::query("DELETE FROM tickets WHERE event_id = $1")
                .bind(id.to_string())
                .execute(&mut *db)
                .await?;
            self.tell_deleted(db, id).await?;
            remove_event(db, id).await?;
            let tickets = tickets.iter().map(|row| rows::parsed(row, "id"));
            Ok(Versioned::Done(tickets.collect::<sqlx::Result<_>>()?))
        })
    }
}

impl Sql {
    /// Locks an event against orders until the transaction ends; returns `false` if there is none.
    pub(super) async fn hold_event(
        &self,
        db: &mut sqlx::AnyConnection,
        id: EventId,
    ) -> sqlx::Result<bool> {
        let sql = format!("SELECT id FROM events WHERE id = $1 {}", self.dialect.to_change());
        let row = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await?;
        Ok(row.is_some())
    }

    /// Tells that an event is deleted, before it is.
    async fn tell_deleted(&self, db: &mut sqlx::AnyConnection, id: EventId) -> sqlx::Result<()> {
        let sql = format!("SELECT {} FROM events WHERE id = $1", rows::EVENT);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        let Some(row) = query.fetch_optional(&mut *db).await? else { return Ok(()) };
        let event = rows::event(&row)?;
        let deleted = Change::EventDeleted((&event).into());
        self.tell(db, [Told::of_event(&event.owner, id, deleted)]).await
    }
}

/// The choice of a template in its three columns.
struct TemplateColumns {
    design: Option<String>,
    id: Option<String>,
    revision: Option<i64>,
}

impl TemplateColumns {
    fn of(choice: Option<&TemplateChoice>) -> Self {
        let (design, id, revision) = match choice {
            None => (None, None, None),
            Some(TemplateChoice::Shipped(name)) => (Some(name.clone()), None, None),
            Some(TemplateChoice::Own { id, revision }) => {
                (None, Some(id.to_string()), revision.map(i64::from))
            }
        };
        Self { design, id, revision }
    }
}

/// Deletes an event whose tickets are deleted, with its batches and ticket keys. Its check-in records and keys of
/// scanners go by themselves (`ON DELETE CASCADE`).
async fn remove_event(db: &mut sqlx::AnyConnection, id: EventId) -> sqlx::Result<()> {
    for sql in [
        "DELETE FROM batches WHERE event_id = $1",
        "DELETE FROM ticket_keys WHERE event_id = $1",
        "DELETE FROM events WHERE id = $1",
    ] {
        sqlx::query(sql).bind(id.to_string()).execute(&mut *db).await?;
    }
    Ok(())
}
