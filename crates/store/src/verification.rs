//! Verifying a token: which ticket it belongs to, and whether it admits.

use stampede_model::{Claims, Event, Refusal, Ticket, TicketStatus, Token};

use crate::{Result, Store};

/// Result of verifying a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The event that the token names, if it exists.
    pub event: Option<Event>,
    /// The content of the token; only if its signature is right and its key is trusted.
    pub claims: Option<Claims>,
    /// The ticket of a genuine token.
    pub ticket: Option<Ticket>,
    /// Why the token does not admit; `None` means that it does.
    pub refusal: Option<Refusal>,
}

impl Verdict {
    /// A verdict on a token whose event is not known.
    pub fn refused(refusal: Refusal) -> Self {
        Self { event: None, claims: None, ticket: None, refusal: Some(refusal) }
    }

    /// Returns whether one of the event's trusted keys signed the token.
    pub fn is_genuine(&self) -> bool {
        self.claims.is_some()
    }
}

impl Store {
    /// Compares a token with the keys and tickets of its event. Needs no secret.
    pub async fn verify(&self, token: &Token) -> Result<Verdict> {
        let Some(event) = self.event(token.event()).await? else {
            return Ok(Verdict::refused(Refusal::UnknownEvent));
        };
        let ring = self.key_ring(&event).await?;
        match token.verify(&ring) {
            Err(refusal) => Ok(Verdict { event: Some(event), ..Verdict::refused(refusal) }),
            Ok(claims) => {
                let ticket = self.ticket_by_serial(claims.event, claims.serial).await?;
                let mut refusal = refusal(&claims, ticket.as_ref());
                if let (None, Some(ticket)) = (refusal, &ticket)
                    && self.is_blocked(ticket.id).await?
                {
                    refusal = Some(Refusal::Blocked);
                }
                Ok(Verdict { event: Some(event), claims: Some(claims), ticket, refusal })
            }
        }
    }
}

/// Why a genuine token does not admit, given the ticket with its serial.
fn refusal(claims: &Claims, ticket: Option<&Ticket>) -> Option<Refusal> {
    match ticket {
        None => Some(Refusal::UnknownTicket),
        Some(ticket) if ticket.status == TicketStatus::Void => Some(Refusal::Void),
        // A token with a later generation means that the record comes from an older backup.
        Some(ticket) if ticket.generation != claims.generation => Some(Refusal::Superseded),
        Some(_) => None,
    }
}
