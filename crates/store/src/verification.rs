//! What the records say of a token: whose it is, and whether it still admits.

use sqlx::AssertSqlSafe;
use stampede_model::{Claims, Event, EventId, Refusal, Ticket, TicketStatus, Token};

use crate::rows;
use crate::{Result, Store};

/// What is known of a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The event that the token names, if there is one.
    pub event: Option<Event>,
    /// What the token says; only when its signature is right and its key is trusted.
    pub claims: Option<Claims>,
    /// The ticket of a genuine token.
    pub ticket: Option<Ticket>,
    /// Why it does not admit; `None` means that it does.
    pub refusal: Option<Refusal>,
}

impl Verdict {
    /// For what does not even get as far as its event.
    pub fn refused(refusal: Refusal) -> Self {
        Self { event: None, claims: None, ticket: None, refusal: Some(refusal) }
    }

    /// Whether one of the event's trusted keys signed it.
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
        let (claims, refusal) = match token.verify(&ring) {
            Ok(claims) => (Some(claims), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let mut verdict = Verdict { event: Some(event), claims, ticket: None, refusal };
        let Some(claims) = claims else { return Ok(verdict) };
        verdict.ticket = self.ticket_by_serial(claims.event, claims.serial).await?;
        verdict.refusal = match &verdict.ticket {
            None => Some(Refusal::UnknownTicket),
            Some(ticket) if ticket.status == TicketStatus::Void => Some(Refusal::Void),
            // A later one than the record's means that the record is older: from a backup.
            Some(ticket) if ticket.generation != claims.generation => Some(Refusal::Superseded),
            Some(_) => None,
        };
        Ok(verdict)
    }

    /// The ticket with that number within its event.
    pub async fn ticket_by_serial(&self, event: EventId, serial: u32) -> Result<Option<Ticket>> {
        let sql =
            format!("SELECT {} FROM tickets WHERE event_id = $1 AND serial = $2", rows::TICKET);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string()).bind(i64::from(serial));
        let row = self.fetch_optional(query).await?;
        Ok(row.as_ref().map(rows::ticket).transpose()?)
    }
}
