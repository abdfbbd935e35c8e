//! What is printed on a ticket, and the fingerprint that tells whether a PDF still says it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Event, Ticket, Token};

/// Everything a template sees of a ticket. Only values, already formatted; never code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// BCP 47 language of its labels.
    pub lang: String,
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
            lang: details.lang.clone().unwrap_or_default().to_string(),
            primary: details.branding.primary.to_string(),
            secondary: details.branding.secondary.to_string(),
        }
    }

    /// Names of everything a field of a template can show.
    pub const FIELDS: &[&str] =
        &["id", "code", "index", "number", "name", "seat", "price", "event", "location", "starts"];

    /// What fields show: name and text, as they are printed. Absent values are left out.
    ///
    /// Adding one? Also touch [`TicketDocument::FIELDS`] and `docs/templates.md`.
    pub fn fields(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let optional = [
            ("seat", self.seat.as_deref()),
            ("price", self.price.as_deref()),
            ("starts", self.starts.as_deref()),
        ];
        let mut fields = vec![
            ("id", Cow::from(&self.id)),
            ("code", Cow::from(&self.code)),
            ("index", Cow::from(self.index.to_string())),
            // Four digits look like a ticket's number and sort well.
            ("number", Cow::from(format!("{:04}", self.index))),
            ("name", Cow::from(&self.name)),
            ("event", Cow::from(&self.event)),
            ("location", Cow::from(&self.location)),
        ];
        fields.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text?.into()))));
        fields.retain(|(_, text)| !text.is_empty());
        fields
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_that_are_listed_and_absent_ones_are_left_out() {
        let mut document = TicketDocument {
            id: "t".into(),
            code: "C".into(),
            index: 42,
            name: "Ada".into(),
            seat: Some("A-1".into()),
            price: Some("5".into()),
            event: "Night".into(),
            location: "Hall".into(),
            starts: Some("Monday".into()),
            lang: "en".into(),
            primary: "#000000".into(),
            secondary: "#000000".into(),
        };
        let names = |document: &TicketDocument| -> Vec<&str> {
            document.fields().into_iter().map(|(name, _)| name).collect()
        };
        let (mut all, mut listed) = (names(&document), TicketDocument::FIELDS.to_vec());
        all.sort_unstable();
        listed.sort_unstable();
        assert_eq!(all, listed);
        assert!(document.fields().contains(&("number", "0042".into())));
        (document.seat, document.price) = (None, Some(String::new()));
        assert!(!names(&document).iter().any(|name| ["seat", "price"].contains(name)));
    }
}
