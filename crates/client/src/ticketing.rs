//! Events, orders, tickets, batches, templates.

use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, EventId, TemplateId, TicketId};
use stampede_wire::ticketing::batches::BatchStatus;
use stampede_wire::ticketing::events::Event;
use stampede_wire::ticketing::orders::OrderAccepted;
use stampede_wire::ticketing::templates::{
    Design, Files, PublishedTemplate, Template, TemplatePage,
};
use stampede_wire::ticketing::tickets::TicketPage;

use crate::{Client, Result, segment, with_query};

/// The body of `POST /api/events`, as far as our own commands use it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewEvent {
    /// The event's name.
    pub name: String,
    /// Where it happens.
    pub location: String,
    /// When it begins (RFC 3339).
    pub starts_at: String,
    /// IANA name of the zone its times are printed in.
    pub time_zone: String,
    /// Currency of its prices.
    pub currency: String,
}

/// The holder of a ticket to be ordered.
#[derive(Debug, Clone, Serialize)]
pub struct Guest {
    /// The holder's name.
    pub name: String,
    /// The holder's address.
    pub email: String,
    /// The seat.
    pub seat: String,
    /// The price, as a decimal number.
    pub price: String,
}

/// The body of `POST /api/tickets`, with a holder for each ticket.
#[derive(Debug, Clone, Serialize)]
pub struct NewOrder {
    /// The event.
    pub target: EventId,
    /// The number of tickets.
    pub quantity: usize,
    /// The holders.
    pub holders: Vec<Guest>,
}

/// The body of `POST /api/templates`.
#[derive(Debug, Clone, Serialize)]
pub struct NewTemplate {
    /// The template's name.
    pub name: String,
    /// Its files.
    pub files: Files,
    /// A note to the first revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The body of `PUT /api/templates/{id}`.
#[derive(Debug, Clone, Serialize)]
pub struct TemplateUpdate {
    /// Another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The files of the new revision.
    pub files: Files,
    /// A note to the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The template that an event is to use.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum TemplateChoice {
    /// The newest revision of a template, also later ones.
    Latest(TemplateId),
    /// One revision of a template.
    Pinned {
        /// The template.
        id: TemplateId,
        /// The revision.
        revision: u32,
    },
}

#[derive(Serialize)]
struct EventUpdate<'a> {
    template: &'a TemplateChoice,
}

/// A template of an organiser, or a design that ships.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum AnyTemplate {
    /// A template of an organiser.
    Own(Template),
    /// A design that ships.
    Design(Design),
}

impl Client {
    /// Creates an event.
    pub async fn create_event(&self, event: &NewEvent) -> Result<Event> {
        self.post("/api/events", event).await
    }

    /// An event, by the id that a person gave.
    pub async fn event(&self, id: &str) -> Result<Event> {
        self.get(&format!("/api/events/{}", segment(id))).await
    }

    /// Gives an event a template.
    pub async fn give_template(&self, event: &str, template: &TemplateChoice) -> Result<Event> {
        self.patch(&format!("/api/events/{}", segment(event)), &EventUpdate { template }).await
    }

    /// Orders tickets.
    pub async fn order(&self, order: &NewOrder) -> Result<OrderAccepted> {
        self.post("/api/tickets", order).await
    }

    /// The state of a batch.
    pub async fn batch(&self, id: BatchId) -> Result<BatchStatus> {
        self.get(&format!("/api/batches/{id}")).await
    }

    /// One page of a batch's tickets, after the given one.
    pub async fn batch_tickets(
        &self,
        batch: BatchId,
        after: Option<TicketId>,
    ) -> Result<TicketPage> {
        let (batch, after) = (batch.to_string(), after.map(|id| id.to_string()));
        let query =
            [("batch", Some(batch.as_str())), ("limit", Some("1000")), ("after", after.as_deref())];
        self.get(&with_query("/api/tickets", &query)).await
    }

    /// The PDF of a ticket.
    pub async fn ticket_pdf(&self, id: TicketId) -> Result<Vec<u8>> {
        self.bytes(&format!("/api/tickets/{id}/pdf")).await
    }

    /// One page of templates, after the given one.
    pub async fn templates(&self, after: Option<TemplateId>) -> Result<TemplatePage> {
        let after = after.map(|id| id.to_string());
        let query = [("limit", Some("1000")), ("after", after.as_deref())];
        self.get(&with_query("/api/templates", &query)).await
    }

    /// A template, by the id or the design's name that a person gave.
    pub async fn template(&self, id: &str) -> Result<AnyTemplate> {
        self.get(&format!("/api/templates/{}", segment(id))).await
    }

    /// Creates a template.
    pub async fn create_template(&self, template: &NewTemplate) -> Result<PublishedTemplate> {
        self.post("/api/templates", template).await
    }

    /// Writes a new revision of a template, unless its files are those of the latest.
    pub async fn update_template(
        &self,
        id: &str,
        update: &TemplateUpdate,
    ) -> Result<PublishedTemplate> {
        self.put(&format!("/api/templates/{}", segment(id)), update).await
    }
}
