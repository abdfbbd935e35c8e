//! Templates of organisers: each a row of revisions that are only ever added to.
//!
//! The files of a revision are one tar archive in the order of their names, without times and owners:
//! equal files are equal bytes. What templates are compiled to is in `compiled.rs`.

mod archive;

use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{EventId, Template, TemplateFiles, TemplateId, TemplateRevision, Timestamp};

use crate::rows;
use crate::transaction::in_transaction;
use crate::{Error, Result, Store};

/// A template with more revisions takes no new one.
const MAX_REVISIONS: u32 = 10_000;

/// How many of the events that use a template are named when it cannot be deleted.
const NAMED_EVENTS: i64 = 10;

/// What is to be written as a revision.
#[derive(Debug, Clone)]
pub struct NewRevision {
    /// The files.
    pub files: TemplateFiles,
    /// The user who wrote them.
    pub author: String,
    /// What the author says about them.
    pub note: String,
}

/// What became of a template that was to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revised {
    /// It has a new revision.
    New(Template),
    /// The files are those of the latest revision, which stays the latest.
    Same(Template),
    /// It is not any more what the author saw, and stays as it is.
    ChangedMeanwhile,
    /// It has as many revisions as it may have.
    TooMany,
    /// There is none.
    NotFound,
}

/// What became of a template that was to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateDeleted {
    /// It is gone, with all of its revisions.
    Gone,
    /// There was none.
    NotFound,
    /// It stays, because these events (some of them, if there are many) use it.
    UsedBy(Vec<EventId>),
}

impl Store {
    /// Writes a new template with its first revision.
    pub async fn insert_template(&self, template: &Template, first: &NewRevision) -> Result<()> {
        let archive = archive::pack(&first.files);
        in_transaction!(self, async |db| {
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

    /// One template.
    pub async fn template(&self, id: TemplateId) -> Result<Option<Template>> {
        let sql = format!("SELECT {} FROM templates WHERE id = $1", rows::TEMPLATE);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        let row = self.fetch_optional(query).await?;
        Ok(row.as_ref().map(rows::template).transpose()?)
    }

    /// A page of templates, newest first; `after` is the last id of the page before.
    pub async fn templates(
        &self,
        owner: Option<&str>,
        after: Option<TemplateId>,
        limit: u32,
    ) -> Result<Vec<Template>> {
        let mut conditions: Vec<(&str, String)> = Vec::new();
        conditions.extend(owner.map(|owner| ("owner =", owner.to_owned())));
        conditions.extend(after.map(|id| ("id <", id.to_string())));
        let rows = self.page("templates", rows::TEMPLATE, conditions, "id DESC", limit).await?;
        Ok(rows.iter().map(rows::template).collect::<sqlx::Result<_>>()?)
    }

    /// A page of a template's revisions without their files, newest first; `before` is the last number
    /// of the page before.
    pub async fn template_revisions(
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
        let rows = self.fetch_all(query).await?;
        Ok(rows.iter().map(rows::template_revision).collect::<sqlx::Result<_>>()?)
    }

    /// One revision of a template without its files; without a number the latest.
    pub async fn template_revision(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<TemplateRevision>> {
        let row = self.fetch_revision(rows::TEMPLATE_REVISION, id, number).await?;
        Ok(row.as_ref().map(rows::template_revision).transpose()?)
    }

    /// The files of one revision of a template; without a number of the latest.
    pub async fn template_files(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<(TemplateRevision, TemplateFiles)>> {
        let columns = "template_id AS id, number, hash, size, author, note, created_at, files";
        let Some(row) = self.fetch_revision(columns, id, number).await? else { return Ok(None) };
        let revision = rows::template_revision(&row)?;
        let files = archive::unpack(&row.try_get::<Vec<u8>, _>("files")?)
            .map_err(|reason| Error::Corrupt(format!("files of template {id}: {reason}")))?;
        if files.hash() != revision.hash {
            let reason = "the files do not match their hash";
            return Err(Error::Corrupt(format!("template {id}: {reason}")));
        }
        Ok(Some((revision, files)))
    }

    async fn fetch_revision(
        &self,
        columns: &'static str,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<sqlx::any::AnyRow>> {
        // Revisions have no gaps, so the latest is the one with the highest number.
        let sql = format!(
            "SELECT {columns} FROM template_revisions WHERE template_id = $1 \
             AND number BETWEEN $2 AND $3 ORDER BY number DESC LIMIT 1"
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(id.to_string())
            .bind(number.map_or(0, i64::from))
            .bind(number.map_or(i64::MAX, i64::from));
        self.fetch_optional(query).await
    }

    /// Renames a template whose `updated_at` was `seen`, and adds a revision unless the latest has the
    /// same files.
    pub async fn revise_template(
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
        in_transaction!(self, async |db| {
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

    /// Deletes a template that no event uses, with all of its revisions.
    pub async fn delete_template(&self, id: TemplateId) -> Result<TemplateDeleted> {
        let hold = format!("SELECT id FROM templates WHERE id = $1 {}", self.dialect.to_change());
        in_transaction!(self, async |db| {
            let held = sqlx::query(AssertSqlSafe(hold.as_str()))
                .bind(id.to_string())
                .fetch_optional(&mut *db)
                .await?;
            if held.is_none() {
                return Ok(TemplateDeleted::NotFound);
            }
            // An event that takes it at this moment waits for us, and then finds it gone.
            let users =
                sqlx::query("SELECT id FROM events WHERE template_id = $1 ORDER BY id LIMIT $2")
                    .bind(id.to_string())
                    .bind(NAMED_EVENTS)
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

/// Adds the latest revision that the template names.
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
