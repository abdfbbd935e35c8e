//! What was shown at a door: which event it belongs to, and whether its signature is right.
//!
//! Signatures are checked before the transaction, with public keys that are remembered for a few seconds: the
//! bytes of a key never change. Whether a key is revoked is read inside the transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use stampede_model::{
    Event, EventId, KeyRing, Principal, Refusal, ScanResult, Signed, TicketId, Token,
};
use stampede_store::{Shown, Store};

use crate::{CheckIn, Error};

/// Most events to remember.
const REMEMBERED: usize = 1_024;
/// How long an event and its keys are remembered.
const FRESH: Duration = Duration::from_secs(5);

/// An event with its public keys.
#[derive(Debug)]
pub(crate) struct DoorKeys {
    pub(crate) event: Event,
    ring: KeyRing,
}

/// Events with their keys, remembered for a few seconds.
#[derive(Default)]
pub(crate) struct Doors {
    known: Mutex<HashMap<EventId, (Arc<DoorKeys>, Instant)>>,
}

impl Doors {
    /// An event with its keys, if there is one.
    pub(crate) async fn of(
        &self,
        store: &Store,
        event: EventId,
    ) -> Result<Option<Arc<DoorKeys>>, Error> {
        let known = self.known.lock().get(&event).cloned();
        match known {
            Some((door, read)) if read.elapsed() < FRESH => Ok(Some(door)),
            _ => self.read(store, event).await,
        }
    }

    async fn read(&self, store: &Store, id: EventId) -> Result<Option<Arc<DoorKeys>>, Error> {
        let Some(event) = store.event(id).await? else {
            self.known.lock().remove(&id);
            return Ok(None);
        };
        let ring = store.key_ring(&event).await?;
        let door = Arc::new(DoorKeys { event, ring });
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(id, (door.clone(), Instant::now()));
        Ok(Some(door))
    }

    /// What a token says, if one of the event's keys signed it.
    async fn signed(
        &self,
        store: &Store,
        door: &DoorKeys,
        token: &Token,
    ) -> Result<Result<Signed, Refusal>, Error> {
        match token.signed_by(&door.ring) {
            // A key that is younger than what is remembered.
            Err(Refusal::UnknownKey) => {
                let fresh = self.read(store, door.event.id).await?;
                Ok(fresh.map_or(Err(Refusal::UnknownEvent), |door| token.signed_by(&door.ring)))
            }
            result => Ok(result),
        }
    }
}

/// A ticket as a scanner reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownTicket {
    /// The text of its QR code.
    Token(String),
    /// Its id, typed or found by name.
    Id(TicketId),
}

impl ShownTicket {
    /// A hash of what was shown.
    pub(crate) fn fingerprint(&self) -> String {
        let hash = match self {
            Self::Token(text) => Sha256::digest(text),
            Self::Id(id) => Sha256::digest(id.to_string()),
        };
        hex::encode(&hash[..16])
    }
}

/// The event at whose door somebody stands.
#[derive(Debug, Clone)]
pub enum Door {
    /// The event of the request, or the one that the key is limited to.
    At(Box<Event>),
    /// The caller may not let guests in there.
    Forbidden,
    /// There is no such event.
    NotFound,
}

/// What is known of a ticket before the transaction.
pub(crate) enum Presented {
    /// To be decided and recorded at this event.
    At(Arc<DoorKeys>, Shown),
    /// No event is known whose log could take it.
    Nowhere(ScanResult),
}

impl CheckIn {
    /// The event of a request: the one it names, or the one that the key is limited to; `None`: neither.
    pub async fn door(
        &self,
        caller: &Principal,
        target: Option<EventId>,
    ) -> Result<Option<Door>, Error> {
        let Some(id) = target.or(caller.scope.event) else { return Ok(None) };
        let Some(door) = self.shared.doors.of(&self.shared.store, id).await? else {
            // A key that is limited to one event learns nothing of others.
            let hidden = caller.scope.event.is_some_and(|only| only != id);
            return Ok(Some(if hidden { Door::Forbidden } else { Door::NotFound }));
        };
        Ok(Some(match caller.may_admit(&door.event.owner, id) {
            true => Door::At(Box::new(door.event.clone())),
            false => Door::Forbidden,
        }))
    }

    /// Finds the event of what was shown, and checks its signature.
    pub(crate) async fn present(
        &self,
        caller: &Principal,
        target: Option<EventId>,
        shown: &ShownTicket,
    ) -> Result<Presented, Error> {
        match shown {
            ShownTicket::Token(text) => self.present_token(caller, target, text).await,
            ShownTicket::Id(id) => self.present_ticket(caller, target, *id).await,
        }
    }

    async fn present_token(
        &self,
        caller: &Principal,
        target: Option<EventId>,
        text: &str,
    ) -> Result<Presented, Error> {
        let token = text.parse::<Token>();
        let event = token.as_ref().ok().map(Token::event);
        let Some(id) = target.or(event) else {
            return Ok(Presented::Nowhere(result_of(token.err().unwrap_or(Refusal::Malformed))));
        };
        let shared = &self.shared;
        let Some(door) = shared.doors.of(&shared.store, id).await? else {
            return Ok(Presented::Nowhere(ScanResult::Unknown));
        };
        if !caller.may_admit(&door.event.owner, id) {
            return Ok(Presented::Nowhere(ScanResult::WrongEvent));
        }
        let shown = match token {
            Err(refusal) => Shown::Refused(result_of(refusal)),
            Ok(token) => match shared.doors.signed(&shared.store, &door, &token).await? {
                Ok(signed) => Shown::Token(signed.claims),
                Err(refusal) => Shown::Refused(result_of(refusal)),
            },
        };
        Ok(Presented::At(door, shown))
    }

    async fn present_ticket(
        &self,
        caller: &Principal,
        target: Option<EventId>,
        ticket: TicketId,
    ) -> Result<Presented, Error> {
        let shared = &self.shared;
        let found = shared.store.ticket(ticket).await?;
        let Some(id) = target.or(found.as_ref().map(|ticket| ticket.event_id)) else {
            return Ok(Presented::Nowhere(ScanResult::Unknown));
        };
        let Some(door) = shared.doors.of(&shared.store, id).await? else {
            return Ok(Presented::Nowhere(ScanResult::Unknown));
        };
        if !caller.may_admit(&door.event.owner, id) {
            return Ok(Presented::Nowhere(ScanResult::WrongEvent));
        }
        let shown = match found {
            Some(ticket) if ticket.event_id != id => Shown::Refused(ScanResult::WrongEvent),
            _ => Shown::Ticket(ticket),
        };
        Ok(Presented::At(door, shown))
    }
}

/// The word of the door for a token that is refused.
fn result_of(refusal: Refusal) -> ScanResult {
    match refusal {
        Refusal::Malformed => ScanResult::Malformed,
        Refusal::ForeignEvent => ScanResult::WrongEvent,
        Refusal::Forged => ScanResult::Forged,
        Refusal::RevokedKey => ScanResult::RevokedKey,
        Refusal::Superseded => ScanResult::Superseded,
        Refusal::Void => ScanResult::Void,
        Refusal::Blocked => ScanResult::Blocked,
        Refusal::UnknownVersion
        | Refusal::UnknownEvent
        | Refusal::UnknownKey
        | Refusal::UnknownTicket => ScanResult::Unknown,
    }
}
