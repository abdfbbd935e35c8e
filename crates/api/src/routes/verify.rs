//! `POST /api/verify`: is this token genuine, whose is it, and does it still admit?
//!
//! A ticket is not used up by being verified. The answer is 200 for good and bad tokens alike: `genuine` says
//! that a key of the event signed it, `valid` that it admits, `reason` why not.

use axum::Json;
use axum::extract::State;
use stampede_model::EventId;
use stampede_ticketing::verification;
use stampede_wire::ticketing::verification::Verification;

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, as_text};
use crate::problem::Problem;

pub(crate) async fn verify(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body,
) -> Result<Json<Verification>, Problem> {
    let mut fields = Fields::new(&body);
    fields.only(&["token", "target"]);
    if fields.get("token").is_none() {
        fields.wrong("token", "is missing: the text of a ticket's QR code");
    }
    let token = fields.read("token", |value| as_text(value).map(str::to_owned));
    let target: Option<EventId> = fields.read("target", |value| {
        as_text(value)?.parse().map_err(|_| "must be the id of an event".to_owned())
    });
    let verdict = app.ticketing.verify(&fields.finish(token)?, target).await?;
    if let Some(event) = &verdict.event {
        caller.must_read(&event.owner)?;
    }
    Ok(Json(verification(&verdict)))
}
