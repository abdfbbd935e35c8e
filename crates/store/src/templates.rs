//! Templates of organisers: each a list of revisions that only grows.
//!
//! The files of a revision are one tar archive (`templates/archive.rs`): equal files are equal bytes.
//! Compiled templates are in `compiled_templates.rs`.

pub(crate) mod archive;

use async_trait::async_trait;
use stampede_model::{EventId, Template, TemplateFiles, TemplateId, TemplateRevision, Timestamp};

use crate::{Error, Result, Slice, Sorted};

/// The most revisions a template may have.
pub(crate) const MAX_REVISIONS: u32 = 10_000;

/// How many of the events that use a template are named when it cannot be deleted.
pub(crate) const NAMED_EVENTS: u32 = 10;

/// A revision to be written.
#[derive(Debug, Clone)]
pub struct NewRevision {
    /// The files.
    pub files: TemplateFiles,
    /// The user who wrote them.
    pub author: String,
    /// The author's note about them.
    pub note: String,
}

/// Result of changing a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revised {
    /// The template has a new revision.
    New(Template),
    /// The files are those of the latest revision, which stays the latest; the name may have changed.
    Same(Template),
    /// The template changed after the author read it; it stays as it is.
    ChangedMeanwhile,
    /// The template has as many revisions as it may have.
    TooMany,
    /// There is no such template.
    NotFound,
}

/// Result of deleting a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateDeleted {
    /// The template is deleted with all of its revisions.
    Gone,
    /// There is no such template.
    NotFound,
    /// The template stays, because these events use it (the first ten, if there are more).
    UsedBy(Vec<EventId>),
    /// The template stays, because it has another version than the one that was seen.
    ChangedMeanwhile,
}

/// The templates and their revisions. A revision is never changed, because tickets were made with it.
/// All changes are synced: the only copy of the files may be here.
#[async_trait]
pub trait Templates: Send + Sync {
    /// Writes a new template with its first revision.
    async fn insert_template(&self, template: &Template, first: &NewRevision) -> Result<()>;

    /// Reads one template.
    async fn template(&self, id: TemplateId) -> Result<Option<Template>>;

    /// Reads a part of the templates.
    async fn templates_slice(
        &self,
        owner: Option<&str>,
        slice: &Slice<TemplateId>,
    ) -> Result<Vec<Template>>;

    /// Reads a page of templates, newest first; `after` is the last id of the page before.
    async fn templates(
        &self,
        owner: Option<&str>,
        after: Option<TemplateId>,
        limit: u32,
    ) -> Result<Vec<Template>> {
        self.templates_slice(owner, &Slice::new(Sorted::NewestFirst, after, limit)).await
    }

    /// Reads a page of a template's revisions without their files, newest first; `before` is the last
    /// number of the page before.
    async fn template_revisions(
        &self,
        id: TemplateId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<TemplateRevision>>;

    /// Reads one revision of a template without its files; the latest if no number is given.
    async fn template_revision(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<TemplateRevision>>;

    /// Reads one revision of a template with the archive of its files; the latest if no number is given.
    #[doc(hidden)]
    async fn template_archive(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<(TemplateRevision, Vec<u8>)>>;

    /// Reads one revision of a template with its files; the latest if no number is given. Fails with
    /// `Corrupt` if the files do not match the revision's hash.
    async fn template_files(
        &self,
        id: TemplateId,
        number: Option<u32>,
    ) -> Result<Option<(TemplateRevision, TemplateFiles)>> {
        let Some((revision, archive)) = self.template_archive(id, number).await? else {
            return Ok(None);
        };
        let files = archive::unpack(&archive)
            .map_err(|reason| Error::Corrupt(format!("files of template {id}: {reason}")))?;
        if files.hash() != revision.hash {
            let reason = "the files do not match their hash";
            return Err(Error::Corrupt(format!("template {id}: {reason}")));
        }
        Ok(Some((revision, files)))
    }

    /// Renames a template if its `updated_at` is still `seen`, and adds a revision unless the latest has
    /// the same files. Of concurrent authors who read the same version one succeeds.
    async fn revise_template(
        &self,
        id: TemplateId,
        name: &str,
        revision: &NewRevision,
        seen: Timestamp,
        now: Timestamp,
    ) -> Result<Revised>;

    /// Deletes a template that no event uses, with all of its revisions.
    ///
    /// An event that chooses the template at the same time is written first and keeps it, or is refused.
    async fn delete_template_as_seen(
        &self,
        id: TemplateId,
        seen: Option<Timestamp>,
    ) -> Result<TemplateDeleted>;

    /// Deletes any version of a template that no event uses.
    async fn delete_template(&self, id: TemplateId) -> Result<TemplateDeleted> {
        self.delete_template_as_seen(id, None).await
    }
}
