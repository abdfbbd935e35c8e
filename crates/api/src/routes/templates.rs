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
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::json;
use stampede_model::{Event, Limit, Principal, Template, TemplateFiles, TemplateId};
use stampede_press::{Published, Ready, sample};
use stampede_store::{NewRevision, Revised, TemplateDeleted};
use stampede_wire::ticketing::templates::{
    Compiled, Design, Files, Mode, Page, PublishedTemplate, Revision, RevisionPage, TemplatePage,
    TemplateWithFiles,
};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::body::LargeBody;
use crate::forms::{Line, Mistakes, Text, form};
use crate::input::{Id, Ids};
use crate::problem::Problem;
use crate::query::Params;
use crate::routes::{CHANGE_TRIES, Paging};

form! {
    /// `POST /api/templates` and `PUT /api/templates/{id}`.
    pub(crate) struct TemplateForm {
        /// The template's name.
        name: Line<{ Limit::NAME.0 }> = "name",
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

impl std::str::FromStr for Named {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Shipped(text.to_owned()), Self::Own))
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(paging): Params<Paging>,
) -> Result<Json<TemplatePage>, Problem> {
    let owner = caller.0.visible_owner();
    let templates = app.store.templates(owner, paging.after()?, paging.limit()).await?;
    let next = paging.next(&templates, |template| template.id);
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
) -> Result<Response, Problem> {
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
    let owner = caller.0.user;
    let template = Template {
        id: TemplateId::generate(),
        owner: owner.clone(),
        name,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let revision = NewRevision { files, author: owner, note };
    app.store.insert_template(&template, &revision).await?;
    let revision = template.revision;
    let body = PublishedTemplate { template: template.into(), compiled };
    Ok(tagged(StatusCode::CREATED, revision, body))
}

/// A template or design, with the files of its latest revision.
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(named): Id<Named>,
) -> Result<Response, Problem> {
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
            Ok(Json(body).into_response())
        }
        Named::Own(id) => {
            let template = find(&app, id).await?;
            caller.must_read(&template.owner)?;
            let found = app.store.template_files(id, Some(template.revision)).await?;
            let (revision, files) = found.ok_or_else(|| Problem::not_found("Template", &id))?;
            let number = template.revision;
            let body = TemplateWithFiles {
                template: template.into(),
                hash: revision.hash,
                note: revision.note,
                files: Files::from(&files),
            };
            Ok(tagged(StatusCode::OK, number, body))
        }
    }
}

/// Adds a revision, if the files compile and are not those of the latest. `If-Match` names the revision
/// the author has seen.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
    headers: HeaderMap,
    LargeBody(form, _held): LargeBody<TemplateForm>,
) -> Result<Response, Problem> {
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
        None => latest_files(&app, &template).await?,
    };
    let compiled = tried_out(&app, &caller.0, &files).await?;
    let revision = NewRevision { files, author: caller.0.user.clone(), note };
    for _ in 0..CHANGE_TRIES {
        must_match(&headers, template.revision)?;
        let name = name.as_deref().unwrap_or(&template.name);
        let seen = template.updated_at;
        match app.store.revise_template(id, name, &revision, seen, now()).await? {
            Revised::New(template) | Revised::Same(template) => {
                let number = template.revision;
                let body = PublishedTemplate { template: template.into(), compiled };
                return Ok(tagged(StatusCode::OK, number, body));
            }
            Revised::TooMany => {
                let detail =
                    "the template has as many revisions as it may have; make a new template";
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            Revised::NotFound => return Err(Problem::not_found("Template", &id)),
            // The other change stays as a revision; this one comes after it, unless If-Match forbids it.
            Revised::ChangedMeanwhile => template = find(&app, id).await?,
        }
    }
    Err(Problem::busy("the template"))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
) -> Result<StatusCode, Problem> {
    let Named::Own(id) = named else { return Err(read_only()) };
    caller.must_change(&find(&app, id).await?.owner)?;
    match app.store.delete_template(id).await? {
        TemplateDeleted::Gone => Ok(StatusCode::NO_CONTENT),
        TemplateDeleted::NotFound => Err(Problem::not_found("Template", &id)),
        TemplateDeleted::UsedBy(events) => {
            let list: Vec<String> = events.iter().map(ToString::to_string).collect();
            let detail = format!(
                "the template is used by events ({}); give them another one first",
                list.join(", ")
            );
            Err(Problem::new(StatusCode::CONFLICT, detail).with("events", json!(events)))
        }
    }
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

async fn latest_files(app: &App, template: &Template) -> Result<TemplateFiles, Problem> {
    let found = app.store.template_files(template.id, None).await?;
    found.map(|(_, files)| files).ok_or_else(|| Problem::not_found("Template", &template.id))
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

/// The revision is the version of a template: `ETag` here, `If-Match` when it is changed.
fn tagged(status: StatusCode, revision: u32, body: impl Serialize) -> Response {
    let mut response = (status, Json(body)).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn must_match(headers: &HeaderMap, revision: u32) -> Result<(), Problem> {
    let Some(wanted) = headers.get(IF_MATCH) else { return Ok(()) };
    let wanted = wanted.to_str().unwrap_or_default();
    let is_it =
        |tag: &str| tag.trim() == "*" || tag.trim().trim_matches('"') == revision.to_string();
    if wanted.split(',').any(is_it) {
        return Ok(());
    }
    let detail = format!(
        "the latest revision is {revision}, not {wanted}: read it, and send your change again with \
         If-Match: \"{revision}\""
    );
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail).with("revision", json!(revision)))
}

fn read_only() -> Problem {
    let detail = "designs that ship cannot be changed; create a template with {\"design\": \"…\"}";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
