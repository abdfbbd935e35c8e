//! Recipients that come, as they go into a statement: many of them as one JSON text.

use std::collections::BTreeMap;

use serde::Serialize;
use stampede_model::campaign::{RecipientState, SkipReason};
use stampede_model::{RecipientId, TicketId};

use crate::NewRecipient;

/// A recipient, as it goes into the statement.
#[derive(Serialize)]
pub(super) struct NewRow<'a> {
    id: RecipientId,
    position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    address: &'a str,
    fields: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<TicketId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl NewRow<'_> {
    /// The recipient is kept, and nothing is sent to it.
    pub(super) fn skip(&mut self, reason: SkipReason, detail: Option<String>) {
        self.state = RecipientState::Skipped.as_str();
        self.reason = Some(reason.as_str());
        self.detail = detail;
    }
}

/// The row of a recipient that is sent to.
pub(super) fn new_row(recipient: &NewRecipient, position: u64) -> NewRow<'_> {
    NewRow {
        id: recipient.id,
        position,
        key: recipient.key(),
        address: &recipient.address,
        fields: &recipient.fields,
        message: recipient.message.as_deref(),
        zone: recipient.time_zone.as_deref(),
        ticket: recipient.ticket,
        line: recipient.line,
        state: RecipientState::Pending.as_str(),
        reason: None,
        detail: None,
    }
}
