//! A message to one recipient, filled in and ready to be sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use stampede_model::{CampaignId, RecipientId};

/// A message, filled in and ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The recipient: the provider's idempotency key where there is one, and the name that receipts bring back.
    pub recipient: RecipientId,
    /// The campaign.
    pub campaign: CampaignId,
    /// The address, normalised for the channel.
    pub address: String,
    /// The recipient's fields.
    pub fields: BTreeMap<String, String>,
    /// The subject of a mail.
    pub subject: Option<String>,
    /// The text.
    pub text: String,
    /// The text as HTML.
    pub html: Option<String>,
    /// WhatsApp's approved template with its values.
    pub whatsapp: Option<WhatsappTemplate>,
    /// Files; mail only.
    pub attachments: Vec<Attachment>,
    /// Where the recipient can end it: for mail's one-click headers.
    pub unsubscribe_url: Option<String>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// A template that WhatsApp has approved, with the values of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatsappTemplate {
    /// The template's name.
    pub name: String,
    /// The template's language, such as `en_US`.
    pub language: String,
    /// The values of `{{1}}`, `{{2}}` … in the template's body.
    pub values: Vec<String>,
}

/// A file that goes with a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The file's name, as the recipient sees it.
    pub name: String,
    /// The media type, such as `application/pdf`.
    pub content_type: String,
    /// The content.
    pub bytes: Bytes,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn message() -> Message {
        Message {
            recipient: RecipientId::from_bytes([1; 16]),
            campaign: CampaignId::from_bytes([2; 16]),
            address: "+491701234567".to_owned(),
            fields: BTreeMap::from([("name".to_owned(), "Ann".to_owned())]),
            subject: None,
            text: "Hello Ann".to_owned(),
            html: None,
            whatsapp: None,
            attachments: Vec::new(),
            unsubscribe_url: None,
            attempt: 1,
        }
    }
}
