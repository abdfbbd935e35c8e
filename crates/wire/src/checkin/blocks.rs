//! Blocked tickets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{EventId, TicketId, Timestamp};

/// A ticket that is refused at every door until its block is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    /// The ticket.
    pub ticket: TicketId,
    /// The event.
    pub target: EventId,
    /// The ticket's number within the event.
    pub number: u32,
    /// Why, for people.
    pub reason: Option<String>,
    /// Since when.
    pub blocked_at: Timestamp,
    /// When its reason last changed.
    pub updated_at: Timestamp,
}

/// The blocked tickets of an event, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blocks {
    /// The blocks.
    pub blocks: Vec<Block>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn blocks_have_the_names_that_clients_read() {
        let (ticket, target) = (TicketId::from_bytes([2; 16]), EventId::from_bytes([1; 16]));
        let blocked_at = Timestamp::from_second(1_800_000_000).unwrap();
        let block = Block {
            ticket,
            target,
            number: 7,
            reason: Some("stolen".into()),
            blocked_at,
            updated_at: blocked_at,
        };
        assert_golden(
            &Blocks { blocks: vec![block] },
            json!({ "blocks": [{ "ticket": ticket, "target": target, "number": 7, "reason": "stolen",
                "blockedAt": "2027-01-15T08:00:00Z", "updatedAt": "2027-01-15T08:00:00Z" }] }),
        );
    }
}
