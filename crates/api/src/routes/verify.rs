//! `POST /api/verify`: is this token genuine, whose is it, and does it still admit?
//!
//! It only looks; a ticket is not used up by being verified. The answer is 200 for good and bad tokens
//! alike: `genuine` says that we signed it, `valid` that it admits, `reason` why not.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use stampede_model::{EventId, Refusal, Token};
use stampede_store::Verdict;

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, as_text};
use crate::problem::Problem;

pub(crate) async fn verify(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    let mut fields = Fields::new(&body);
    fields.only(&["token", "target"]);
    if fields.get("token").is_none() {
        fields.wrong("token", "is missing: the text of a ticket's QR code");
    }
    let token = fields.read("token", |value| as_text(value).map(str::parse::<Token>));
    let target: Option<EventId> = fields.read("target", |value| {
        as_text(value)?.parse().map_err(|_| "must be the id of an event".to_owned())
    });
    let verdict = match fields.finish(token)? {
        Ok(token) if target.is_some_and(|target| target != token.event()) => {
            Verdict::refused(Refusal::ForeignEvent)
        }
        Ok(token) => app.store.verify(&token).await?,
        Err(refusal) => Verdict::refused(refusal),
    };
    if let Some(event) = &verdict.event {
        caller.must_read(&event.owner)?;
    }
    Ok(Json(verdict_json(&verdict)))
}

/// What is known of a token, as the API tells it.
pub fn verdict_json(verdict: &Verdict) -> Value {
    let event = verdict.event.as_ref().map(|event| {
        json!({ "id": event.id, "name": event.details.name, "startsAt": event.details.starts_at })
    });
    let ticket = verdict.ticket.as_ref().map(|ticket| {
        json!({
            "id": ticket.id,
            "number": ticket.serial,
            "name": ticket.holder.name,
            "seat": ticket.holder.seat,
            "status": ticket.status,
            "generation": ticket.generation,
        })
    });
    json!({
        "genuine": verdict.is_genuine(),
        "valid": verdict.refusal.is_none(),
        "reason": verdict.refusal.map(Refusal::as_str),
        "detail": verdict.refusal.map(|refusal| refusal.to_string()),
        "token": verdict.claims,
        "event": event,
        "ticket": ticket,
    })
}
