//! `/api/queues/{name}/dead-letters`: jobs that failed for good.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::{Value, json};
use stampede_broker::{BulkResult, DeadLetters, Letters};

use super::{Page, any, existing};
use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields};
use crate::problem::Problem;
use crate::query::Params;

/// Letters, newest first, or those that contain a text; `next` says where to go on.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(page): Params<Page>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let letters = letters_of(&app, &name).await?;
    let found = match &page.search {
        Some(text) => letters.search(text, page.skip, page.count).await?,
        None => letters.list(page.skip, page.count).await?,
    };
    let mut answer = json!(found);
    answer["total"] = json!(letters.count().await?);
    Ok(Json(answer))
}

/// `replay` or `purge`: `{ids: […]}` or `{all: true}`, and for a replay other `data` if wanted. They answer how many,
/// what could not be, and how many letters are left: more than 10,000 take more than one request.
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path((name, verb)): Path<(String, String)>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let letters = letters_of(&app, &name).await?;
    let mut fields = Fields::new(&body);
    fields.only(if verb == "replay" { &["ids", "all", "data"] } else { &["ids", "all"] });
    let ids: Option<Vec<String>> = fields.read("ids", |value| {
        let ids = value.as_array().into_iter().flatten();
        let ids: Vec<String> = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let all_read = value.as_array().is_some_and(|given| given.len() == ids.len());
        if all_read { Ok(ids) } else { Err("must be a list of texts") }
    });
    let all = fields.flag("all");
    let data = fields.get("data");
    fields.finish(Some(()))?;
    let which = match (ids, all) {
        (Some(_), true) => {
            let detail = "say either ids or all, not both";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        (Some(ids), false) => Letters::These(ids),
        (None, true) => Letters::All,
        (None, false) => {
            let detail = "say which: {\"ids\": [\"…\"]} or {\"all\": true}";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
    };
    if !["replay", "purge"].contains(&verb.as_str()) {
        return Err(Problem::new(StatusCode::NOT_FOUND, "replay or purge"));
    }
    // Before it happens: it may break off in the middle.
    tracing::info!(user = caller.0.user, queue = name, verb, ?which, "dead letters are changed");
    let done = match verb.as_str() {
        "replay" => letters.replay(&which, data).await?,
        _ => letters.purge(&which).await?,
    };
    let BulkResult { count, failed } = done;
    tracing::info!(user = caller.0.user, queue = name, verb, count, "dead letters changed");
    let left = letters.count().await?;
    let success = failed.is_empty();
    Ok(Json(json!({ "success": success, "count": count, "failed": failed, "left": left })))
}

/// The letters of a queue, which may have been destroyed since.
async fn letters_of(app: &App, name: &str) -> Result<DeadLetters, Problem> {
    if app.broker.has_queue(&format!("{name}-dlq")).await? {
        return Ok(any(app, name).await?.dead_letters());
    }
    Ok(existing(app, name).await?.dead_letters())
}
