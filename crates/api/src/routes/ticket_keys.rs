//! `/api/events/{id}/keys`: the keys that sign and prove an event's tickets.
//!
//! A scanner needs nothing but the answer of GET to prove tickets without a network; `stampede verify --keys`
//! reads it.

use axum::Json;
use axum::extract::State;
use stampede_model::{EventId, PublicKey};
use stampede_store::{Revoked, Rotated};
use stampede_wire::ticketing::keys::{EventKeys, KeyRevoked};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::describe::{Created, Located};
use crate::input::{Id, Ids};
use crate::problem::{Code, Problem};
use crate::routes::events;
use crate::trace::Audited;
use stampede_audit::{Kind, Subject};

/// The public keys; `signing` is the number of the key that signs new tickets.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<EventKeys>, Problem> {
    let event = events::find(&app, id).await?;
    caller.must_read(&event.owner)?;
    Ok(Json(EventKeys::from(&app.store.key_ring(&event).await?)))
}

/// A new key signs from now on; tickets signed before stay valid.
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
) -> Result<Audited<Located<Created<PublicKey>>>, Problem> {
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    let change = caller.begin_new(&app, Subject::new(Kind::TicketKey).at(id)).await?;
    match app.store.rotate_ticket_key(id, now()).await? {
        Rotated::New(key) => {
            let path = format!("/api/events/{id}/keys/{}", key.number);
            Ok(change.after(&*key).answer(Located(path, Created(*key))))
        }
        Rotated::NotFound => Err(Problem::not_found("Event", &id)),
        Rotated::TooMany => Err(Problem::new(
            Code::TooMany,
            "the event has as many keys as it may have; more would not make it safer",
        )),
    }
}

/// Revokes a key: tickets that it signed are refused from now on and have to be handed out again. Their PDFs
/// are made again, with the key that signs now, when they are downloaded.
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Writer,
    Ids(id, number): Ids<EventId, u32>,
) -> Result<Audited<Json<KeyRevoked>>, Problem> {
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    let change = caller.begin_new(&app, Subject::of(Kind::TicketKey, number).at(id)).await?;
    match app.store.revoke_ticket_key(id, number, now()).await? {
        Revoked::Done { signing, tickets } => {
            tracing::info!(event = %id, key = number, user = caller.0.user, tickets, "ticket key revoked");
            let revoked = number;
            let revoked = KeyRevoked { revoked, signing, tickets_to_hand_out_again: tickets };
            Ok(change.after(&revoked).answer(Json(revoked)))
        }
        Revoked::NotFound => Err(Problem::not_found("Key", &number)),
    }
}
