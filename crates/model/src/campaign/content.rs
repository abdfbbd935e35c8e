//! The message of a campaign.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[schemars(inline)]
pub enum Content {
    /// Every recipient has a message of its own.
    Own,
    /// One template for all, filled with the fields of each recipient.
    Template(Template),
}

/// A template in Liquid. Fields are escaped in `html` and raw elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(inline)]
pub struct Template {
    /// The subject of a mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The text. Channels with nothing but text send this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The text as HTML: mail, and Telegram's few tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// The name of a template that WhatsApp has approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whatsapp_template: Option<String>,
    /// The language of that template, such as `en_US`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whatsapp_language: Option<String>,
    /// The values of that template's `{{1}}`, `{{2}}` …, each in Liquid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whatsapp_values: Vec<String>,
    /// Whether the PDF of the recipient's ticket is attached (mail only; other channels have `{{ ticketUrl }}`).
    #[serde(skip_serializing_if = "is_false")]
    pub attach_ticket: bool,
    /// Values for fields that a recipient does not have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}
