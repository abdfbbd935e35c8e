//! Tickets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, Currency, EventId, TicketId, TicketStatus, Timestamp};

use super::orders::TicketWarnings;

/// A ticket. The names are those older software relies on (docs/compatibility.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// The ticket's id; also the id of its job.
    pub id: TicketId,
    /// The event it admits to.
    pub target: EventId,
    /// The order it came with.
    pub batch_id: BatchId,
    /// The user it belongs to.
    pub owner: String,
    /// 1 for the first ticket of its order.
    pub index: u32,
    /// Its number within the event.
    pub number: u32,
    /// How often it was issued; only paper of the latest generation admits.
    pub generation: u32,
    /// The holder's name.
    pub name: String,
    /// The holder's address for mail.
    pub email: Option<String>,
    /// The holder's telephone number, as it was given; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    /// The holder's chat of Telegram, as it was given; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Seat, row or class.
    pub seat: Option<String>,
    /// The amount, as a decimal text.
    pub price: Option<String>,
    /// The price's currency.
    pub currency: Option<Currency>,
    /// The state of its PDF.
    pub status: TicketStatus,
    /// The reason for which making the PDF failed.
    pub error: Option<String>,
    /// Path of the PDF below the public folder; `null` until it is made.
    pub image: Option<String>,
    /// Path of the PDF in the API.
    pub pdf: String,
    /// The worker that made it.
    pub processed_by: Option<String>,
    /// When it was made.
    pub processed_at: Option<Timestamp>,
    /// When it was ordered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A ticket after an edit, with warnings about what would not come out well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditedTicket {
    /// The ticket.
    #[serde(flatten)]
    pub ticket: Ticket,
    /// The warnings.
    #[serde(flatten)]
    pub warnings: TicketWarnings,
}

/// One page of tickets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TicketPage {
    /// The tickets.
    pub tickets: Vec<Ticket>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<TicketId>,
}

impl From<&stampede_model::Ticket> for Ticket {
    fn from(ticket: &stampede_model::Ticket) -> Self {
        let ready = ticket.status == TicketStatus::Completed;
        Self {
            id: ticket.id,
            target: ticket.event_id,
            batch_id: ticket.batch_id,
            owner: ticket.owner.clone(),
            index: ticket.index,
            number: ticket.serial,
            generation: ticket.generation,
            name: ticket.holder.name.clone(),
            email: ticket.holder.email.clone(),
            phone_number: ticket.holder.phone.clone(),
            chat_id: ticket.holder.chat.clone(),
            seat: ticket.holder.seat.clone(),
            price: ticket.price.map(|price| price.amount()),
            currency: ticket.price.map(|price| price.currency()),
            status: ticket.status,
            error: ticket.error.clone(),
            image: ready.then(|| format!("/{}", stampede_model::Ticket::pdf_path(ticket.id))),
            pdf: format!("/api/tickets/{}/pdf", ticket.id),
            processed_by: ticket.processed_by.clone(),
            processed_at: ticket.processed_at,
            created_at: ticket.created_at,
            updated_at: ticket.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_model::{Holder, Money};

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn a_ticket_has_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let made = stampede_model::Ticket {
            id: TicketId::from_bytes([1; 16]),
            event_id: EventId::from_bytes([2; 16]),
            batch_id: BatchId::from_bytes([3; 16]),
            owner: "ann".into(),
            index: 1,
            serial: 42,
            generation: 2,
            signing_key: Some(1),
            holder: Holder { name: "Zoë".into(), seat: Some("VIP".into()), ..Holder::default() },
            price: Money::parse("49.9", Currency::USD).ok(),
            status: TicketStatus::Completed,
            error: None,
            pdf: None,
            processed_by: Some("node-1-worker-1".into()),
            processed_at: Some(at),
            created_at: at,
            updated_at: at,
        };
        let id = "01010101-0101-0101-0101-010101010101";
        let json = json!({
            "id": id,
            "target": "02020202-0202-0202-0202-020202020202",
            "batchId": "03030303-0303-0303-0303-030303030303",
            "owner": "ann",
            "index": 1,
            "number": 42,
            "generation": 2,
            "name": "Zoë",
            "email": null,
            "seat": "VIP",
            "price": "49.90",
            "currency": "USD",
            "status": "completed",
            "error": null,
            "image": format!("/tickets/ticket-{id}.pdf"),
            "pdf": format!("/api/tickets/{id}/pdf"),
            "processedBy": "node-1-worker-1",
            "processedAt": "2027-01-15T08:00:00Z",
            "createdAt": "2027-01-15T08:00:00Z",
            "updatedAt": "2027-01-15T08:00:00Z",
        });
        let ticket = Ticket::from(&made);
        assert_golden(&ticket, json.clone());
        assert_golden(&EditedTicket { ticket, warnings: TicketWarnings::default() }, json);
        let pending = stampede_model::Ticket { status: TicketStatus::Pending, ..made };
        assert_eq!(Ticket::from(&pending).image, None);
        let (phone, chat) = (Some("8 999 123-45-67".to_owned()), Some("42".to_owned()));
        let holder = Holder { phone, chat, ..pending.holder.clone() };
        let reachable = Ticket::from(&stampede_model::Ticket { holder, ..pending });
        let told = serde_json::to_value(&reachable).unwrap();
        assert_eq!(
            (&told["phoneNumber"], &told["chatId"]),
            (&json!("8 999 123-45-67"), &json!("42"))
        );
    }
}
