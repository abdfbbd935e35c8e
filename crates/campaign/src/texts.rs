//! What the crate `audience` knows of addresses and texts, in the words of this room.

use std::collections::BTreeMap;

use stampede_model::campaign::{AddressKind, Channel, Template};
use stampede_wire::campaigns::TemplateMistake;

/// The texts of one recipient.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) subject: Option<String>,
    pub(crate) text: String,
    pub(crate) html: Option<String>,
    pub(crate) whatsapp_values: Vec<String>,
}

/// The size of a message as its channel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) length: u64,
    pub(crate) most: u64,
    /// Parts of a text message.
    pub(crate) segments: u64,
    /// It has letters outside the GSM alphabet.
    pub(crate) is_unicode: bool,
}
