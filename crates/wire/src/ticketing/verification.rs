//! The verdict about a ticket's token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{Claims, Event, EventId, Refusal, Ticket, TicketId, TicketStatus, Timestamp};

/// The answer of `POST /api/verify`, and of `stampede verify --json` for each ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// A key of the event signed the token.
    pub genuine: bool,
    /// The ticket admits.
    pub valid: bool,
    /// The reason for which it does not, for programs.
    pub reason: Option<String>,
    /// The reason, for people.
    pub detail: Option<String>,
    /// What the token says; only of a genuine one.
    pub token: Option<Claims>,
    /// The event that the token names.
    pub event: Option<VerifiedEvent>,
    /// The ticket of a genuine token.
    pub ticket: Option<VerifiedTicket>,
    /// The source of the verdict on the command line: `database` or `keys`; absent in the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_with: Option<String>,
}

/// The event of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedEvent {
    /// The event's id.
    pub id: EventId,
    /// Its name.
    pub name: String,
    /// When it begins (`null`: not said); absent if only the keys were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Option<Timestamp>>,
}

/// The ticket of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedTicket {
    /// The ticket's id.
    pub id: TicketId,
    /// Its number within the event.
    pub number: u32,
    /// The holder's name.
    pub name: String,
    /// The holder's seat.
    pub seat: Option<String>,
    /// The state of the ticket.
    pub status: TicketStatus,
    /// The generation that admits.
    pub generation: u32,
}

impl Verification {
    /// The verdict about a token that admits (`refusal` is `None`) or does not.
    pub fn new(
        refusal: Option<Refusal>,
        token: Option<Claims>,
        event: Option<VerifiedEvent>,
        ticket: Option<VerifiedTicket>,
    ) -> Self {
        Self {
            genuine: token.is_some(),
            valid: refusal.is_none(),
            reason: refusal.map(|refusal| refusal.as_str().to_owned()),
            detail: refusal.map(|refusal| refusal.to_string()),
            token,
            event,
            ticket,
            checked_with: None,
        }
    }
}

impl From<&Event> for VerifiedEvent {
    fn from(event: &Event) -> Self {
        let details = &event.details;
        Self { id: event.id, name: details.name.clone(), starts_at: Some(details.starts_at) }
    }
}

impl From<&Ticket> for VerifiedTicket {
    fn from(ticket: &Ticket) -> Self {
        Self {
            id: ticket.id,
            number: ticket.serial,
            name: ticket.holder.name.clone(),
            seat: ticket.holder.seat.clone(),
            status: ticket.status,
            generation: ticket.generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn a_verdict_has_the_names_that_scanners_read() {
        let refused = Verification::new(Some(Refusal::Forged), None, None, None);
        assert_golden(
            &refused,
            json!({
                "genuine": false,
                "valid": false,
                "reason": "forged",
                "detail": "the signature is wrong: the ticket was forged or altered",
                "token": null,
                "event": null,
                "ticket": null,
            }),
        );
        let event = EventId::from_bytes([1; 16]);
        let ticket = VerifiedTicket {
            id: TicketId::from_bytes([2; 16]),
            number: 7,
            name: "Ann".into(),
            seat: None,
            status: TicketStatus::Completed,
            generation: 1,
        };
        let claims = Claims { event, key: 1, serial: 7, generation: 1 };
        let known = VerifiedEvent { id: event, name: "Night".into(), starts_at: None };
        let admitted = Verification {
            checked_with: Some("keys".into()),
            ..Verification::new(None, Some(claims), Some(known), Some(ticket))
        };
        assert_golden(
            &admitted,
            json!({
                "genuine": true,
                "valid": true,
                "reason": null,
                "detail": null,
                "token": { "event": event, "kid": 1, "serial": 7, "generation": 1 },
                "event": { "id": event, "name": "Night" },
                "ticket": {
                    "id": "02020202-0202-0202-0202-020202020202", "number": 7, "name": "Ann",
                    "seat": null, "status": "completed", "generation": 1,
                },
                "checkedWith": "keys",
            }),
        );
        let unsaid = VerifiedEvent { id: event, name: "Night".into(), starts_at: Some(None) };
        let unsaid = serde_json::to_value(unsaid).unwrap();
        assert_eq!(unsaid, json!({ "id": event, "name": "Night", "startsAt": null }));
    }
}
