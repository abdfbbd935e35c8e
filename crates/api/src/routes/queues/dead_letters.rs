//! `/api/queues/{name}/dead-letters`: jobs that failed permanently.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use stampede_broker::{DeadLetters, Letters};
use stampede_wire::queues as wire;

use super::operate::is_set;
use super::{LONGEST_NAME, Page, any, existing, shown};
use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::LargeBody;
use crate::forms::{Flag, Given, List, Mistakes, Payload, Text, form};
use crate::input::{Id, Ids};
use crate::problem::{Code, Problem};
use crate::query::Params;
use crate::trace::Audited;
use crate::unknown::no_such_action;
use stampede_audit::{Kind, Subject};

/// Letters, newest first, or those that contain a text; `next` is the `skip` of the next page.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Id(name): Id<String>,
    Params(page): Params<Page>,
) -> Result<Json<wire::DeadLetters>, Problem> {
    let letters = letters_of(&app, &name).await?;
    let found = match &page.search {
        Some(text) => letters.search(text, page.skip, page.count).await?,
        None => letters.list(page.skip, page.count).await?,
    };
    Ok(Json(wire::DeadLetters {
        letters: found.letters.into_iter().map(shown::letter).collect(),
        next: found.next,
        total: letters.count().await? as u64,
    }))
}

/// Runs jobs again: `{ids: […]}` or `{all: true}`, and another `data` if wanted. More than 10,000 take more than one
/// request; `left` is the number of letters that remain.
pub(crate) async fn replay(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    LargeBody(form, _held): LargeBody<ReplayForm>,
) -> Result<Audited<Json<wire::BulkResult>>, Problem> {
    let letters = letters_of(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let data = mistakes.value(form.data).map(|payload| payload.value);
    let which = selection(mistakes, form.ids, form.all)?;
    log_intent(&admin, &name, "replay", &which);
    let noted = admin.begin_new(&app, Subject::of(Kind::DeadLetters, &name)).await?;
    let done = letters.replay(&which, data.as_ref()).await?;
    log_done(&admin, &name, "replay", done.count);
    let result = shown::bulk(done, letters.count().await? as u64);
    Ok(noted.after(&result).answer(Json(result)))
}

/// Throws letters away: `{ids: […]}` or `{all: true}`.
pub(crate) async fn purge(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    LargeBody(form, _held): LargeBody<PurgeForm>,
) -> Result<Audited<Json<wire::BulkResult>>, Problem> {
    let letters = letters_of(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let which = selection(mistakes, form.ids, form.all)?;
    log_intent(&admin, &name, "purge", &which);
    let noted = admin.begin_new(&app, Subject::of(Kind::DeadLetters, &name)).await?;
    let done = letters.purge(&which).await?;
    log_done(&admin, &name, "purge", done.count);
    let result = shown::bulk(done, letters.count().await? as u64);
    Ok(noted.after(&result).answer(Json(result)))
}

/// Refuses an action that dead letters do not have.
pub(crate) async fn unknown(
    State(app): State<App>,
    _: Admin,
    Ids(name, action): Ids<String, String>,
) -> Result<Infallible, Problem> {
    letters_of(&app, &name).await?;
    Err(no_such_action(&action, &["replay", "purge"]))
}

/// Logs an operation before it happens, because it may break off in the middle.
fn log_intent(admin: &Admin, queue: &str, action: &str, which: &Letters) {
    tracing::info!(user = admin.0.user, queue, action, ?which, "dead letters are to be changed");
}

fn log_done(admin: &Admin, queue: &str, action: &str, count: usize) {
    tracing::info!(user = admin.0.user, queue, action, count, "dead letters changed");
}

/// Letters that one request may name.
const MOST_IDS: usize = 100_000;
/// The ids of letters.
type LetterIds = List<Text<LONGEST_NAME>, MOST_IDS>;

form! {
    /// `POST /api/queues/{name}/dead-letters/replay`.
    pub(crate) struct ReplayForm {
        /// The ids of the letters.
        ids: LetterIds = "ids",
        /// Whether all letters are meant.
        all: Flag = "all",
        /// Another payload for the jobs.
        data: Payload = "data",
    }
}

form! {
    /// `POST /api/queues/{name}/dead-letters/purge`.
    pub(crate) struct PurgeForm {
        /// The ids of the letters.
        ids: LetterIds = "ids",
        /// Whether all letters are meant.
        all: Flag = "all",
    }
}

/// The letters that a request names.
fn selection(
    mut mistakes: Mistakes,
    ids: Given<LetterIds>,
    all: Given<Flag>,
) -> Result<Letters, Problem> {
    let ids: Option<Vec<String>> = mistakes.read(ids, |List(ids)| {
        let ids: Result<_, _> = ids.into_iter().map(|id| id.map(|Text(id)| id)).collect();
        ids.map_err(|_| "must be a list of texts")
    });
    let all = is_set(&mut mistakes, all);
    mistakes.finish(Some(()))?;
    let refused = |detail: &str| Err(Problem::new(Code::Invalid, detail));
    match (ids, all) {
        (Some(_), true) => refused("say either ids or all, not both"),
        (Some(ids), false) => Ok(Letters::These(ids)),
        (None, true) => Ok(Letters::All),
        (None, false) => refused("say which: {\"ids\": [\"…\"]} or {\"all\": true}"),
    }
}

/// The letters of a queue, which may have been destroyed since.
async fn letters_of(app: &App, name: &str) -> Result<DeadLetters, Problem> {
    if app.broker.has_queue(&format!("{name}-dlq")).await? {
        return Ok(any(app, name).await?.dead_letters());
    }
    Ok(existing(app, name).await?.dead_letters())
}
