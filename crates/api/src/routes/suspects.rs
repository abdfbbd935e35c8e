//! `/api/suspects`: templates that brought down the processes that worked with them. Viewers of
//! everybody see them, administrators forgive them.

use axum::Json;
use axum::extract::State;
use stampede_wire::Paged;
use stampede_wire::queues::{Suspect, Suspects};

use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::describe::NoContent;
use crate::input::Id;
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::trace::Audited;
use stampede_audit::{Kind, Subject};

/// All suspects, by name.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Suspects>>, Problem> {
    let suspects = app.broker.suspects().all().await?.into_iter().map(|suspect| Suspect {
        name: suspect.name,
        strikes: suspect.strikes,
        reason: suspect.reason,
        expires_in_ms: suspect.expires_in.as_millis() as u64,
    });
    let name = |suspect: &Suspect| suspect.name.clone();
    Ok(Json(page.cut(suspects.collect(), name, |suspects| Suspects { suspects })))
}

/// Forgets a suspect: workers use it again within a second.
pub(crate) async fn lift(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
) -> Result<Audited<NoContent>, Problem> {
    let noted = admin.begin_new(&app, Subject::of(Kind::Suspect, &name)).await?;
    if !app.broker.suspects().lift(&name).await? {
        return Err(Problem::not_found("Suspect", &name));
    }
    tracing::info!(user = admin.0.user, suspect = name, "suspicion lifted");
    Ok(noted.gone().answer(NoContent))
}
