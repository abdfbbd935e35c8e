//! `/api/events/{id}/keys`: the keys that sign and prove an event's tickets.
//!
//! What GET answers is all a scanner needs to prove tickets without a network; `stampede verify --keys`
//! reads it as it is.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use stampede_model::{EventId, KeyRing, PublicKey};
use stampede_store::{Revoked, Rotated};

use crate::app::{App, now};
use crate::auth::Caller;
use crate::input::{Id, Ids};
use crate::problem::Problem;
use crate::routes::events;

/// The public keys; `signing` tells which one signs new tickets.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Value>, Problem> {
    let event = events::find(&app, id).await?;
    caller.must_read(&event.owner)?;
    Ok(Json(shown(&app.store.key_ring(&event).await?)))
}

/// A new key signs from now on; tickets signed before stay valid.
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    match app.store.rotate_ticket_key(id, now()).await? {
        Rotated::New(key) => Ok((StatusCode::CREATED, Json(shown_key(&key)))),
        Rotated::NotFound => Err(Problem::not_found("Event")),
        Rotated::TooMany => Err(Problem::new(
            StatusCode::CONFLICT,
            "the event has as many keys as it may have; more would not make it safer",
        )),
    }
}

/// Takes the trust from a key: tickets that it signed are refused from now on, and have to be handed
/// out again. Their PDFs are made anew, with the key that signs now, when somebody asks for them.
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Ids(id, number): Ids<EventId, u32>,
) -> Result<Json<Value>, Problem> {
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    match app.store.revoke_ticket_key(id, number, now()).await? {
        Revoked::Done { signing, tickets } => {
            tracing::info!(event = %id, key = number, user = caller.0.user, tickets, "ticket key revoked");
            Ok(Json(
                json!({ "revoked": number, "signing": signing, "ticketsToHandOutAgain": tickets }),
            ))
        }
        Revoked::NotFound => Err(Problem::not_found("Key")),
    }
}

fn shown(ring: &KeyRing) -> Value {
    let keys: Vec<Value> = ring.keys().iter().map(shown_key).collect();
    json!({
        "event": ring.event(),
        "eventName": ring.event_name,
        "algorithm": "Ed25519",
        "signing": ring.signing().map(|key| key.number),
        "keys": keys,
    })
}

fn shown_key(key: &PublicKey) -> Value {
    json!(key)
}
