//! Templates in SQL.

use async_trait::async_trait;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{Template, TemplateId, TemplateRevision, Timestamp};

use super::page::Page;
use super::transaction::in_transaction;
use super::versions::{Held, Of};
use super::{Sql, rows, slices};
use crate::Durability::Synced;
use crate::templates::{MAX_REVISIONS, NAMED_EVENTS, archive};
use crate::{NewRevision, Result, Revised, Slice, TemplateDeleted, Templates};

#[async_trait]
impl Templates for Sql {
    async fn insert_template(&self, template: &Template, first: &NewRevision) -> Result<()> {
        let archive = archive::pack(&first.files);
        in_transaction!(self, Synced, async |db| {
            sqlx::query(
                "INSERT INTO templates (id, owner, name, revision, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(template.id.to_string())
            .bind(template.owner.as_str())
            .bind(template.name.as_str())
            .bind(i64::from(template.revision))
            .bind(template.created_at.as_millisecond())
            .bind(template.updated_at.as_millisecond())
            .execute(&mut *db)
            .await?;
            insert_revision(db, template, first, &archive).await
        })
    }

    async fn template(&self, id: TemplateId) -> Result<Option<Template>> {
        let sql = format!("SELECT {} FROM templates WHERE id = $1", rows::TEMPLATE);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::template).await
    }

    async fn templates_slice(
        &self,
        owner: Option<&str>,
        slice: &Slice<TemplateId>,
    ) -> Result<Vec<Template>> {
        let mut conditions = slices::conditions(slice);
        conditions.extend(owner.map(|owner| ("owner =", owner.to_owned())));
        let (order, limit) = (slices::order(slice), slice.limit);
        let page = Page { table: "templates", columns: rows::TEMPLATE, order, limit };
        self.page(page, conditions, rows::template).await
    }

    async fn template_revisions(
        &self,
        id: TemplateId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<TemplateRevision>> {
        let sql = format!(
            "SELECT {} FROM template_revisions WHERE template_id = $1 AND number < $2 \
             ORDER BY number DESC LIMIT $3",
            rows::TEMPLATE_REVISION
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(id.to_string())
            .bind(before.map_or(i64::MAX, i64::from))
            .bind(i64::from(limit));
        self.fetch_all(query, rows::template_revision).await
    }

    async fn template_revision(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<TemplateRevision>> {
        let columns = rows::TEMPLATE_REVISION;
        self.fetch_revision(columns, id, number, rows::template_revision).await
    }

    async fn template_archive(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<(TemplateRevision, Vec<u8>)>> {
        let columns = "template_id AS id, number, hash, size, author, note, created_at, files";
        self.fetch_revision(columns, id, number, |row| {
            Ok((rows::template_revision(row)?, row.try_get("files")?))
        })
        .await
    }

    async fn revise_template(
        &self,
        id: TemplateId,
        name: &str,
        revision: &NewRevision,
        seen: Timestamp,
        now: Timestamp,
    ) -> Result<Revised> {
        let archive = archive::pack(&revision.files);
        let hash = revision.files.hash();
        let find = format!(
            "SELECT {} FROM templates WHERE id = $1 {}",
            rows::TEMPLATE,
            self.dialect.to_change()
        );
        let update = format!(
            "UPDATE templates SET name = $2, revision = $3, updated_at = {} WHERE id = $1 \
             RETURNING {}",
            self.dialect.later("$4", "updated_at"),
            rows::TEMPLATE
        );
        in_transaction!(self, Synced, async |db| {
            let row = sqlx::query(AssertSqlSafe(find.as_str()))
                .bind(id.to_string())
                .fetch_optional(&mut *db)
                .await?;
            let Some(row) = row else { return Ok(Revised::NotFound) };
            let template = rows::template(&row)?;
            if template.updated_at != seen {
                return Ok(Revised::ChangedMeanwhile);
            }
            let same = hash_of_latest(db, &template).await? == hash;
            if same && template.name == name {
                return Ok(Revised::Same(template));
            }
            if !same && template.revision >= MAX_REVISIONS {
                return Ok(Revised::TooMany);
            }
            let number = if same { template.revision } else { template.revision + 1 };
            let changed = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(id.to_string())
                .bind(name)
                .bind(i64::from(number))
                .bind(now.as_millisecond())
                .fetch_one(&mut *db)
                .await?;
            let changed = rows::template(&changed)?;
            if same {
                return Ok(Revised::Same(changed));
            }
            insert_revision(db, &changed, revision, &archive).await?;
            Ok(Revised::New(changed))
        })
    }

    async fn delete_template_as_seen(
        &self,
        id: TemplateId,
        seen: Option<Timestamp>,
    ) -> Result<TemplateDeleted> {
        in_transaction!(self, Synced, async |db| {
            match self.hold_as_seen(db, Of::Template, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(TemplateDeleted::ChangedMeanwhile),
                Held::Missing => return Ok(TemplateDeleted::NotFound),
            }
            // An event that chooses it at the same time waits for this lock, then finds no template.
            let users =
                sqlx::query("SELECT id FROM events WHERE template_id = $1 ORDER BY id LIMIT $2")
                    .bind(id.to_string())
                    .bind(i64::from(NAMED_EVENTS))
                    .fetch_all(&mut *db)
                    .await?;
            if !users.is_empty() {
                let users = users.iter().map(|row| rows::parsed(row, "id"));
                return Ok(TemplateDeleted::UsedBy(users.collect::<sqlx::Result<_>>()?));
            }
            for sql in [
                "DELETE FROM template_revisions WHERE template_id = $1",
                "DELETE FROM templates WHERE id = $1",
            ] {
                sqlx::query(sql).bind(id.to_string()).execute(&mut *db).await?;
            }
            Ok(TemplateDeleted::Gone)
        })
    }
}

impl Sql {
    /// Reads one revision; the latest if no number is given.
    async fn fetch_revision<T>(
        &self,
        columns: &'static str,
        id: TemplateId,
        number: Option<u32>,
        read: impl Fn(&AnyRow) -> sqlx::Result<T>,
    ) -> Result<Option<T>> {
        // Revisions have no gaps, so the latest is the one with the highest number.
        let sql = format!(
            "SELECT {columns} FROM template_revisions WHERE template_id = $1 \
             AND number BETWEEN $2 AND $3 ORDER BY number DESC LIMIT 1"
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(id.to_string())
            .bind(number.map_or(0, i64::from))
            .bind(number.map_or(i64::MAX, i64::from));
        self.fetch_optional(query, read).await
    }
}

/// Writes the revision that the template names as its latest.
async fn insert_revision(
    db: &mut AnyConnection,
    template: &Template,
    revision: &NewRevision,
    archive: &[u8],
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO template_revisions (template_id, number, hash, size, files, author, note, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(template.id.to_string())
    .bind(i64::from(template.revision))
    .bind(revision.files.hash())
    .bind(revision.files.size() as i64)
    .bind(archive.to_vec())
    .bind(revision.author.as_str())
    .bind(revision.note.as_str())
    .bind(template.updated_at.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}

/// Reads the hash of the files of the latest revision.
async fn hash_of_latest(db: &mut AnyConnection, template: &Template) -> sqlx::Result<String> {
    let query =
        sqlx::query("SELECT hash FROM template_revisions WHERE template_id = $1 AND number = $2");
    let row = query
        .bind(template.id.to_string())
        .bind(i64::from(template.revision))
        .fetch_one(db)
        .await?;
    row.try_get("hash")
}
