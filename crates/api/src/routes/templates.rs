//! `/api/templates`: an organiser's templates. Each is a list of revisions; a revision is never changed.
//!
//! Files are sent as JSON: `{"files": {"template.typ": "text", "logo.png": {"base64": "…"}}}`. Files that do
//! not compile are not kept. The designs that ship are listed too; they are read by their names and cannot be
//! changed. Validation and previews are in `previews.rs`.

pub(crate) mod choice;
pub(crate) mod files;
pub(crate) mod previews;
mod request;

use axum::Json;
use axum::extract::State;
use schemars::{JsonSchema, json_schema};
use serde_json::{Value, json};
use stampede_model::{
    Event, EventId, Limit, Principal, Template, TemplateFiles, TemplateId, TemplateRevision,
};
use stampede_press::{Published, Ready, sample};
use stampede_store::{NewRevision, Revised, Sorted, TemplateDeleted};
use stampede_wire::ticketing::templates::{
    Compiled, Design, Files, Mode, Page, PublishedTemplate, Revision, RevisionPage,
    TemplateOrDesign, TemplatePage, TemplateWithFiles,
};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::body::LargeBody;
use crate::describe::{Created, Located, NoContent};
use crate::forms::{Changes, Line, Mistakes, Text, form, inline_schema};
use crate::input::{Id, Ids};
use crate::page::Part;
use crate::problem::{Code, Problem};
use crate::query::Params;
use crate::routes::{CHANGE_TRIES, Paging};
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};
use stampede_audit::{Kind, Subject};

form! {
    /// `POST /api/templates` and `PUT /api/templates/{id}`.
    pub(crate) struct TemplateForm {
        /// The template's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// The author's note to the revision.
        note: Line<500> = "note",
        /// Names and contents of its files.
        files: files::Files = "files",
        /// The design whose files it has.
        design: Text<200> = "design",
    }
}

/// All other fields of a template.
const FIXED: [&str; 6] = ["id", "owner", "revision", "hash", "createdAt", "updatedAt"];

/// A template of an organiser, or a design that ships.
pub(crate) enum Named {
    Own(TemplateId),
    Shipped(String),
}

impl JsonSchema for Named {
    inline_schema!(
        "Named",
        json_schema!({ "type": "string", "description": "An id, or a design." })
    );
}

impl std::str::FromStr for Named {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Shipped(text.to_owned()), Self::Own))
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(part): Params<Part>,
) -> Result<Json<TemplatePage>, Problem> {
    let owner = caller.0.visible_owner();
    let slice = part.slice(Sorted::NewestFirst)?;
    let templates = app.store.templates_slice(owner, &slice).await?;
    let next = part.page.next(&templates, |template| template.id);
    let designs = app.press.designs().iter().map(|design| Design {
        id: design.name.clone(),
        name: design.title.clone(),
        read_only: true,
        files: None,
    });
    let templates = templates.into_iter().map(Into::into).collect();
    Ok(Json(TemplatePage { designs: designs.collect(), templates, next }))
}

/// Keeps a new template, if it compiles.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    LargeBody(form, _held): LargeBody<TemplateForm>,
) -> Result<Audited<Tagged<Located<Created<PublishedTemplate>>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let name = mistakes.required(form.name).map(|Line(name)| name);
    let note = mistakes.value(form.note).map_or_else(String::new, |Line(note)| note);
    if !form.files.is_named() && !form.design.is_named() {
        mistakes
            .wrong("files", "is missing: an object with file names and contents, or name a design");
    }
    let read = files::read(&mut mistakes, form.files, form.design, &app);
    let (name, files) = mistakes.finish(name.zip(read))?;
    let compiled = tried_out(&app, &caller.0, &files).await?;
    let now = now();
    let owner = caller.0.user.clone();
    let template = Template {
        id: TemplateId::generate(),
        owner: owner.clone(),
        name,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let revision = NewRevision { files, author: owner, note };
    let noted = caller.begin_new(&app, Subject::of(Kind::Template, template.id)).await?;
    app.store.insert_template(&template, &revision).await?;
    let number = template.revision;
    let made = noted.after(&logged(&template, &revision.files));
    let body = PublishedTemplate { template: template.into(), compiled };
    let path = format!("/api/templates/{}", body.template.id);
    Ok(made.answer(Tagged::new(number, Located(path, Created(body)))))
}

/// A template or design, with the files of its latest revision.
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(named): Id<Named>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<TemplateOrDesign>>, Problem> {
    match named {
        Named::Shipped(name) => {
            let design =
                app.press.design(&name).ok_or_else(|| Problem::not_found("Template", &name))?;
            let body = Design {
                id: design.name.clone(),
                name: design.title.clone(),
                read_only: true,
                files: Some(Files::from(&design.files)),
            };
            let version = Version::of_content(&body);
            Ok(known.answer(version, Json(TemplateOrDesign::Design(body))))
        }
        Named::Own(id) => {
            let template = find(&app, id).await?;
            caller.must_read(&template.owner)?;
            let found = app.store.template_files(id, Some(template.revision)).await?;
            let (revision, files) = found.ok_or_else(|| Problem::not_found("Template", &id))?;
            let version = version(&template, &revision);
            let body = TemplateWithFiles {
                template: template.into(),
                hash: revision.hash,
                note: revision.note,
                files: Files::from(&files),
            };
            Ok(known.answer(version, Json(TemplateOrDesign::Template(body))))
        }
    }
}

/// Adds a revision, if the files compile and are not those of the latest. `If-Match` names the version
/// the author has seen.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
    seen_by_author: IfMatch,
    LargeBody(Changes(form), _held): LargeBody<Changes<TemplateForm>>,
) -> Result<Audited<Tagged<Json<PublishedTemplate>>>, Problem> {
    let Named::Own(id) = named else { return Err(read_only()) };
    let mut template = find(&app, id).await?;
    caller.must_change(&template.owner)?;
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    let names_one = form.name.is_named() || form.files.is_named() || form.design.is_named();
    mistakes.must_name_one_of(names_one, &["name", "files", "design"]);
    let name = mistakes.value(form.name).map(|Line(name)| name);
    let note = mistakes.value(form.note).map_or_else(String::new, |Line(note)| note);
    let given = files::read(&mut mistakes, form.files, form.design, &app);
    let (name, given) = mistakes.finish(Some((name, given)))?;
    let files = match given {
        Some(files) => files,
        None => latest(&app, &template).await?.1,
    };
    let compiled = tried_out(&app, &caller.0, &files).await?;
    let revision = NewRevision { files, author: caller.0.user.clone(), note };
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let (latest, latest_files) = latest(&app, &template).await?;
        check_version(&seen_by_author, &template, &latest)?;
        let before = logged(&template, &latest_files);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, Subject::of(Kind::Template, id), &before).await?,
        };
        let name = name.as_deref().unwrap_or(&template.name);
        let seen = template.updated_at;
        match app.store.revise_template(id, name, &revision, seen, now()).await? {
            Revised::New(template) | Revised::Same(template) => {
                let (latest, _) = self::latest(&app, &template).await?;
                let version = version(&template, &latest);
                let made = noted.after(&logged(&template, &revision.files));
                let body = PublishedTemplate { template: template.into(), compiled };
                return Ok(made.answer(Tagged::new(version, Json(body))));
            }
            Revised::TooMany => {
                let detail =
                    "the template has as many revisions as it may have; make a new template";
                return Err(Problem::new(Code::TooMany, detail));
            }
            Revised::NotFound => return Err(Problem::not_found("Template", &id)),
            // The other change stays as a revision; this one comes after it, unless If-Match forbids it.
            Revised::ChangedMeanwhile => {
                template = find(&app, id).await?;
                begun = Some(noted);
            }
        }
    }
    Err(Problem::busy("the template"))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
    seen_by_author: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let Named::Own(id) = named else { return Err(read_only()) };
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let template = find(&app, id).await?;
        caller.must_change(&template.owner)?;
        let (latest, files) = latest(&app, &template).await?;
        check_version(&seen_by_author, &template, &latest)?;
        let seen = seen_by_author.names_versions().then_some(template.updated_at);
        let before = logged(&template, &files);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, Subject::of(Kind::Template, id), &before).await?,
        };
        match app.store.delete_template_as_seen(id, seen).await? {
            TemplateDeleted::Gone => return Ok(noted.gone().answer(NoContent)),
            TemplateDeleted::NotFound => return Err(Problem::not_found("Template", &id)),
            TemplateDeleted::UsedBy(events) => return Err(in_use(&events)),
            TemplateDeleted::ChangedMeanwhile => begun = Some(noted),
        }
    }
    Err(Problem::busy("the template"))
}

/// A template as the audit log is told it; the log keeps the hashes of the files.
fn logged(template: &Template, files: &TemplateFiles) -> Value {
    let shown = stampede_wire::ticketing::templates::Template::from(template.clone());
    let mut logged = json!(shown);
    logged["hash"] = json!(files.hash());
    logged["files"] = json!(Files::from(files));
    logged
}

/// 409: events use the template.
fn in_use(events: &[EventId]) -> Problem {
    let list: Vec<String> = events.iter().map(ToString::to_string).collect();
    let list = list.join(", ");
    let detail = format!("the template is used by events ({list}); give them another one first");
    Problem::new(Code::InUse, detail).with("events", json!(events))
}

/// The version of a template: the number of its latest revision, and if the name was changed since, when.
fn version(template: &Template, latest: &TemplateRevision) -> Version {
    match latest.number == template.revision && latest.created_at == template.updated_at {
        true => template.revision.into(),
        false => Version::renamed(template.revision, template.updated_at),
    }
}

/// Refuses unless the template has a version that the author has seen.
fn check_version(
    seen_by_author: &IfMatch,
    template: &Template,
    latest: &TemplateRevision,
) -> Result<(), Problem> {
    let checked = seen_by_author.check(&version(template, latest));
    checked.map_err(|problem| problem.with("revision", template.revision.into()))
}

pub(crate) async fn revisions(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TemplateId>,
    Params(paging): Params<Paging>,
) -> Result<Json<RevisionPage>, Problem> {
    caller.must_read(&find(&app, id).await?.owner)?;
    let found = app.store.template_revisions(id, paging.after()?, paging.limit()).await?;
    let next = paging.next(&found, |revision| revision.number);
    Ok(Json(RevisionPage { revisions: found.into_iter().map(Into::into).collect(), next }))
}

pub(crate) async fn revision(
    State(app): State<App>,
    caller: Caller,
    Ids(id, number): Ids<TemplateId, u32>,
) -> Result<Json<Revision>, Problem> {
    caller.must_read(&find(&app, id).await?.owner)?;
    let found = app.store.template_files(id, Some(number)).await?;
    let (revision, files) = found.ok_or_else(|| Problem::not_found("Revision", &number))?;
    Ok(Json(Revision { files: Some(Files::from(&files)), ..revision.into() }))
}

pub(crate) async fn find(app: &App, id: TemplateId) -> Result<Template, Problem> {
    app.store.template(id).await?.ok_or_else(|| Problem::not_found("Template", &id))
}

/// The latest revision of a template, and its files.
async fn latest(
    app: &App,
    template: &Template,
) -> Result<(TemplateRevision, TemplateFiles), Problem> {
    let found = app.store.template_files(template.id, None).await?;
    found.ok_or_else(|| Problem::not_found("Template", &template.id))
}

/// Compiles files that are to be kept, when it is the user's turn; returns what the compiler says.
async fn tried_out(
    app: &App,
    caller: &Principal,
    files: &TemplateFiles,
) -> Result<Compiled, Problem> {
    let _turn = app.turns.take(&caller.user).await;
    let event = Event { owner: caller.user.clone(), ..sample::event() };
    let (published, ready) = app.press.try_out(files, &event).await?;
    Ok(compiled(&published, &ready))
}

/// What the compiler says of a template that works.
fn compiled(published: &Published, ready: &Ready) -> Compiled {
    let reason = ready.slow_because().map(str::to_owned);
    let mm = |points: f32| (points * 25.4 / 72.0 * 10.0).round() / 10.0;
    let page = |(width, height): &(f32, f32)| Page { width_mm: mm(*width), height_mm: mm(*height) };
    Compiled {
        mode: if reason.is_some() { Mode::Typeset } else { Mode::Stamped },
        reason,
        pages: published.pages.iter().map(page).collect(),
        fields: published.fields.clone(),
        diagnostics: published.warnings.clone(),
    }
}

fn read_only() -> Problem {
    let detail = "designs that ship cannot be changed; create a template with {\"design\": \"…\"}";
    Problem::new(Code::ReadOnly, detail)
}
