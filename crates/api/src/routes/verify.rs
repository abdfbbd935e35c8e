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
use crate::body::Body;
use crate::forms::{IdOf, Mistakes, Text, form};
use crate::problem::Problem;
use crate::scope::must_reach;

form! {
    /// `POST /api/verify`.
    pub(crate) struct VerifyForm {
        /// The text of a ticket's QR code.
        token: Text<LONGEST_TOKEN> = "token" required,
        /// The event at whose door the ticket is shown.
        target: IdOf<EventId> = "target",
    }
}

/// Longest text that is looked at, in bytes; a genuine token is far shorter.
const LONGEST_TOKEN: usize = 64 << 10;

pub(crate) async fn verify(
    State(app): State<App>,
    caller: Caller,
    Body(form, _held): Body<VerifyForm>,
) -> Result<Json<Verification>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let token = mistakes.required_or(form.token, "is missing: the text of a ticket's QR code");
    let target = mistakes.ruled(form.target, "must be the id of an event", |IdOf(id)| id);
    let Text(token) = mistakes.finish(token)?;
    let verdict = app.ticketing.verify(&token, target).await?;
    if let Some(event) = &verdict.event {
        must_reach(&caller.0, event.id)?;
        caller.must_read(&event.owner)?;
    }
    Ok(Json(verification(&verdict)))
}
