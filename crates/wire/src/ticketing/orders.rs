//! Orders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, TicketId};

/// The answer to an accepted order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderAccepted {
    /// Always true; clients of older software read it.
    pub success: bool,
    /// The batch of the order's tickets.
    pub batch_id: BatchId,
    /// The tickets, in the order of the request.
    pub tickets: Vec<TicketId>,
    /// What a person should look at; absent if there is nothing.
    #[serde(flatten)]
    pub warnings: TicketWarnings,
}

/// Warnings about tickets that are ordered or edited, and how many tickets they are about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketWarnings {
    /// The warnings; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Tickets with warnings, also those that are not listed; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets_with_warnings: Option<usize>,
}

/// One warning about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The kind, for programs: `missing_glyphs`, `does_not_fit`, `unknown_field`, …
    pub kind: String,
    /// The field of the template or of the request.
    pub field: String,
    /// The problem and its remedy, for people.
    pub message: String,
    /// The ticket's place in the request, from 1; absent if the warning is about no ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The line of an uploaded file that it is about; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The ticket; absent if it was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<TicketId>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn an_accepted_order_has_the_names_that_clients_read() {
        let ticket = TicketId::from_bytes([2; 16]);
        let accepted = OrderAccepted {
            success: true,
            batch_id: BatchId::from_bytes([1; 16]),
            tickets: vec![ticket],
            warnings: TicketWarnings::default(),
        };
        assert_golden(
            &accepted,
            json!({
                "success": true,
                "batchId": "01010101-0101-0101-0101-010101010101",
                "tickets": [ticket],
            }),
        );
        let unknown = Warning {
            kind: "unknown_field".into(),
            field: "seats".into(),
            message: "seats was ignored".into(),
            index: None,
            line: None,
            ticket: None,
        };
        let narrow = Warning {
            kind: "does_not_fit".into(),
            field: "name".into(),
            message: "too long".into(),
            index: Some(1),
            line: None,
            ticket: Some(ticket),
        };
        let warnings =
            TicketWarnings { warnings: vec![unknown, narrow], tickets_with_warnings: Some(1) };
        assert_golden(
            &warnings,
            json!({
                "warnings": [
                    { "kind": "unknown_field", "field": "seats", "message": "seats was ignored" },
                    { "kind": "does_not_fit", "field": "name", "message": "too long", "index": 1, "ticket": ticket },
                ],
                "ticketsWithWarnings": 1,
            }),
        );
    }
}
