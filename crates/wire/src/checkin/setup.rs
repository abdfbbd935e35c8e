//! Lists and gates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, EventId, GateId, ListId, Timestamp};

/// A check-in list: which tickets may enter, when and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// The list's id; the built-in list has the event's id.
    pub id: ListId,
    /// The event.
    pub target: EventId,
    /// The list's name.
    pub name: String,
    /// From when it admits.
    pub opens_at: Option<Timestamp>,
    /// Until when it admits.
    pub closes_at: Option<Timestamp>,
    /// How often a ticket may enter; 0: any number of times.
    pub entries: u32,
    /// Whether an exit gives the entry back.
    pub reentry: bool,
    /// Only tickets of these orders.
    pub batches: Option<Vec<BatchId>>,
    /// Only tickets whose seat matches one of these patterns.
    pub seats: Option<Vec<String>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The lists of an event, the built-in one first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lists {
    /// The lists.
    pub lists: Vec<List>,
}

/// A gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// The gate's id.
    pub id: GateId,
    /// The event.
    pub target: EventId,
    /// The gate's name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The gates of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gates {
    /// The gates.
    pub gates: Vec<Gate>,
}

impl From<stampede_model::CheckInList> for List {
    fn from(list: stampede_model::CheckInList) -> Self {
        let rules = list.rules;
        Self {
            id: list.id,
            target: list.event_id,
            name: rules.name,
            opens_at: rules.opens_at,
            closes_at: rules.closes_at,
            entries: rules.entries,
            reentry: rules.reentry,
            batches: rules.batches,
            seats: rules.seats,
            created_at: list.created_at,
            updated_at: list.updated_at,
        }
    }
}

impl From<stampede_model::Gate> for Gate {
    fn from(gate: stampede_model::Gate) -> Self {
        Self {
            id: gate.id,
            target: gate.event_id,
            name: gate.name,
            created_at: gate.created_at,
            updated_at: gate.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_model::{AdmissionRules, CheckInList};

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn lists_and_gates_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let event = EventId::from_bytes([1; 16]);
        let rules = AdmissionRules { seats: Some(vec!["VIP*".into()]), ..AdmissionRules::main() };
        let list = CheckInList {
            id: ListId::main_of(event),
            event_id: event,
            rules,
            created_at: at,
            updated_at: at,
        };
        assert_golden(
            &List::from(list),
            json!({
                "id": event, "target": event, "name": "Main", "opensAt": null, "closesAt": null,
                "entries": 1, "reentry": false, "batches": null, "seats": ["VIP*"],
                "createdAt": "2027-01-15T08:00:00Z", "updatedAt": "2027-01-15T08:00:00Z",
            }),
        );
        let id = GateId::from_bytes([2; 16]);
        assert_golden(
            &Gate { id, target: event, name: "North".into(), created_at: at, updated_at: at },
            json!({
                "id": id, "target": event, "name": "North", "createdAt": "2027-01-15T08:00:00Z",
                "updatedAt": "2027-01-15T08:00:00Z",
            }),
        );
    }
}
