//! What is printed on a ticket, and the fingerprint that tells whether a PDF still says it.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{Event, Ticket, Token};

/// Everything a template sees of a ticket. Only values, already formatted; never code.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TicketDocument {
    /// The ticket's id.
    pub id: String,
    /// What its QR code says: the text of its [`crate::Token`].
    pub code: String,
    /// The number printed on it: its serial within the event.
    pub index: u32,
    /// Who it is for.
    pub name: String,
    /// Seat, if any.
    pub seat: Option<String>,
    /// Price as printed, if any.
    pub price: Option<String>,
    /// Name of the event.
    pub event: String,
    /// Where it happens.
    pub location: String,
    /// When it begins, as printed.
    pub starts: Option<String>,
    /// First colour of the gradient.
    pub primary: String,
    /// Second colour of the gradient.
    pub secondary: String,
}

impl TicketDocument {
    /// Brings event and ticket into the form that is printed, with the token that proves it.
    pub fn new(event: &Event, ticket: &Ticket, token: &Token) -> Self {
        let details = &event.details;
        Self {
            id: ticket.id.to_string(),
            code: token.to_string(),
            index: ticket.serial,
            name: ticket.holder.name.clone(),
            seat: ticket.holder.seat.clone(),
            price: ticket.price.map(|price| price.display()),
            event: details.name.clone(),
            location: details.location.clone(),
            starts: details.printed_start(),
            primary: details.branding.primary.to_string(),
            secondary: details.branding.secondary.to_string(),
        }
    }

    /// The texts typed by people, with the name of the field each came from.
    pub fn typed_texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("name", Some(self.name.as_str())),
            ("seat", self.seat.as_deref()),
            ("event.name", Some(self.event.as_str())),
            ("event.location", Some(self.location.as_str())),
        ]
        .into_iter()
        .filter_map(|(field, text)| Some((field, text?)))
    }

    /// Fingerprint of the PDF that the given revision of a template makes of this.
    pub fn fingerprint(&self, template_revision: &str) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update(template_revision);
        hash.update([0]);
        // Serialising a struct of strings cannot fail, and its field order is fixed.
        hash.update(serde_json::to_vec(self).unwrap_or_default());
        Fingerprint(hex::encode(&hash.finalize()[..16]))
    }
}

/// 128 bits over template revision and printed data. Equal fingerprints mean equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// As hexadecimal text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As hexadecimal text.
    pub fn into_string(self) -> String {
        self.0
    }
}
