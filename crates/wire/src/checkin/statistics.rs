//! Statistics of an event's check-in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{GateId, ScanResult, Timestamp};

use super::devices::Device;

/// The answer of `GET /api/events/{id}/checkin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// Tickets that are not void.
    pub sold: u64,
    /// Guests inside: the entries without exits of each ticket, on the list where they are most.
    pub inside: u64,
    /// Guests who came in.
    pub entries: u64,
    /// Guests who went out.
    pub exits: u64,
    /// Scans that were refused.
    pub refused: u64,
    /// Refused scans by reason.
    pub by_reason: BTreeMap<ScanResult, u64>,
    /// By gate; scans without a gate have the id `null`.
    pub gates: Vec<GateStatistics>,
    /// Minutes of the last hours in which guests passed: minute, entries, exits.
    pub per_minute: Vec<(Timestamp, u64, u64)>,
    /// The devices.
    pub devices: Vec<Device>,
    /// Conflicts that nobody has undone.
    pub conflicts: u64,
}

/// Statistics of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateStatistics {
    /// The gate.
    pub id: Option<GateId>,
    /// Its name.
    pub name: Option<String>,
    /// Guests who came in here less those who went out here.
    pub inside: i64,
    /// Guests who came in.
    pub entries: u64,
    /// Guests who went out.
    pub exits: u64,
    /// Scans that were refused.
    pub refused: u64,
    /// The last scan.
    pub last_scan_at: Option<Timestamp>,
    /// Minutes of the last hours in which guests passed: minute, guests.
    pub per_minute: Vec<(Timestamp, u64)>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn statistics_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let statistics = Statistics {
            sold: 10,
            inside: 4,
            entries: 5,
            exits: 1,
            refused: 2,
            by_reason: [(ScanResult::AlreadyRedeemed, 2)].into(),
            gates: vec![GateStatistics {
                id: None,
                name: None,
                inside: 4,
                entries: 5,
                exits: 1,
                refused: 2,
                last_scan_at: Some(at),
                per_minute: vec![(at, 6)],
            }],
            per_minute: vec![(at, 5, 1)],
            devices: Vec::new(),
            conflicts: 0,
        };
        assert_golden(
            &statistics,
            json!({
                "sold": 10, "inside": 4, "entries": 5, "exits": 1, "refused": 2,
                "byReason": { "already_redeemed": 2 },
                "gates": [{
                    "id": null, "name": null, "inside": 4, "entries": 5, "exits": 1, "refused": 2,
                    "lastScanAt": "2027-01-15T08:00:00Z", "perMinute": [["2027-01-15T08:00:00Z", 6]],
                }],
                "perMinute": [["2027-01-15T08:00:00Z", 5, 1]],
                "devices": [], "conflicts": 0,
            }),
        );
    }
}
