//! What a campaign would do: validation, preview, test messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{RecipientId, Timestamp};

/// What a campaign would do if it were started now. Nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// It can be started: there are no `problems`. Some recipients may fail nevertheless (`willFail`).
    pub ok: bool,
    /// Recipients that get a message: neither skipped, nor suppressed since the import, nor counted in `willFail`.
    pub to_send: u64,
    /// Recipients whose message cannot be made: `tooLong`, `empty` and `noMessage` together. They fail without an attempt, and all
    /// others get theirs.
    pub will_fail: u64,
    /// Recipients that get none, by reason: `opted_out`, `duplicate`, `invalid` …
    pub skipped: BTreeMap<String, u64>,
    /// Why it cannot be started, each in a sentence.
    pub problems: Vec<String>,
    /// Mistakes in the template.
    pub template_mistakes: Vec<TemplateMistake>,
    /// Fields of the template that some recipients do not have.
    pub empty_fields: Vec<EmptyField>,
    /// Messages that are too long for the channel: they fail.
    pub too_long: Option<TooLong>,
    /// Messages of which nothing is seen: they fail.
    pub empty: Option<Unsendable>,
    /// Recipients without a message of their own, in a campaign without a template: they fail.
    pub no_message: Option<Unsendable>,
    /// Parts of text messages; only for SMS.
    pub segments: Option<Segments>,
    /// When the last message leaves, if all goes well.
    pub eta_at: Option<Timestamp>,
    /// How many messages were filled in to find `tooLong`, `empty` and `segments`: all, or a sample of a large campaign.
    pub looked_at: u64,
}

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMistake {
    /// The part of the template: `subject`, `text`, `html`, `whatsappValues[0]` …
    pub part: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// A field that some recipients do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptyField {
    /// The field.
    pub field: String,
    /// How many recipients do not have it.
    pub recipients: u64,
    /// The positions of the first of them.
    pub positions: Vec<u64>,
}

/// Messages that are too long for the channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TooLong {
    /// How many of those that were looked at.
    pub recipients: u64,
    /// The positions of the first of them.
    pub positions: Vec<u64>,
    /// The length of the longest, as the channel counts.
    pub longest: u64,
    /// The most that the channel takes.
    pub most: u64,
}

/// Recipients whose messages fail before they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsendable {
    /// How many.
    pub recipients: u64,
    /// The positions of the first of them.
    pub positions: Vec<u64>,
}

/// Parts of text messages (SMS), as providers bill them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segments {
    /// The parts of all messages; of a sample, scaled up.
    pub total: u64,
    /// The parts of the longest message.
    pub most: u64,
    /// Messages with letters outside the GSM alphabet: their parts hold 70 letters instead of 160.
    pub unicode: u64,
}

/// The message of one recipient as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MessagePreview")]
pub struct Preview {
    /// The recipient.
    pub recipient_id: RecipientId,
    /// The position.
    pub position: u64,
    /// The address.
    pub address: String,
    /// The subject of a mail.
    pub subject: Option<String>,
    /// The text.
    pub text: String,
    /// The text as HTML.
    pub html: Option<String>,
    /// The name of WhatsApp's template, if one is sent.
    pub whatsapp_template: Option<String>,
    /// Its language.
    pub whatsapp_language: Option<String>,
    /// The values of WhatsApp's template.
    pub whatsapp_values: Vec<String>,
    /// The names of the attached files.
    pub attachments: Vec<String>,
    /// Fields of the template that the recipient does not have.
    pub empty_fields: Vec<String>,
    /// The length as the channel counts.
    pub length: u64,
    /// The most that the channel takes.
    pub most: u64,
    /// Parts of the message; only for SMS.
    pub segments: Option<u64>,
}

/// A test message and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestMessage {
    /// The address, normalised.
    pub address: String,
    /// How it ended: `sent`, `suppressed`, `waiting` for a limit, or the outcome of an attempt.
    pub outcome: String,
    /// The code of the failure.
    pub code: Option<String>,
    /// What was said about it.
    pub detail: Option<String>,
    /// The provider's id of the message.
    pub provider_id: Option<String>,
    /// How long the limits would let it wait, in milliseconds; nothing was sent.
    pub wait_ms: Option<u64>,
}
