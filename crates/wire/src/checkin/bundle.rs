//! The bundle: everything that a scanner needs to decide without a network.
//!
//! A bundle with `full: false` holds changes: void and admitted tickets are added to what the scanner has,
//! readmitted ones are removed, generations are replaced; blocked tickets, keys, lists, gates and members replace the former ones.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stampede_model::{EventId, ListId, Timestamp};

use super::devices::Device;
use super::setup::{Gate, List};

/// The answer of `GET /api/checkin/bundle`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// The event.
    pub target: EventId,
    /// The event's name.
    pub name: String,
    /// Everything up to this change is in it: the `since` of the next request.
    pub seq: u64,
    /// The `since` of this request, if only changes are in it.
    pub since: Option<u64>,
    /// Whether it holds everything.
    pub full: bool,
    /// The server's clock.
    pub server_time: Timestamp,
    /// The keys that sign tickets.
    pub keys: Vec<BundleKey>,
    /// The lists, the built-in one first.
    pub lists: Vec<BundleList>,
    /// The gates.
    pub gates: Vec<Gate>,
    /// The device that asked, if it is one.
    pub device: Option<Device>,
    /// The largest serial.
    pub capacity: u32,
    /// Serials of tickets that are void or deleted ([`super::packed`]).
    pub voided: String,
    /// Serials of tickets whose generation is not 1, each with its generation.
    pub generations: String,
    /// Serials of all tickets that the organiser has blocked, in changes too.
    #[serde(default)]
    pub blocked: String,
    /// By list: serials of tickets that have no entry left.
    pub admitted: BTreeMap<ListId, String>,
    /// By list: serials of tickets that have an entry again; only changes have them.
    pub readmitted: BTreeMap<ListId, String>,
    /// SHA-256 of [`Bundle::canonical`], as hexadecimal text.
    pub checksum: String,
}

/// A key of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleKey {
    /// Its number within the event.
    pub kid: u32,
    /// The 32 bytes of the key in base64url without padding.
    pub public_key: String,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// A list of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleList {
    /// The list.
    #[serde(flatten)]
    pub list: List,
    /// A bitmap of the serials on the list; `null`: all.
    pub members: Option<String>,
}

impl Bundle {
    /// The lines that the checksum is made of, so that a bundle that was cut or altered is noticed.
    pub fn canonical(&self) -> String {
        let mut text = String::from("stampede bundle 1\n");
        let since = self.since.map(|since| since.to_string()).unwrap_or_default();
        let extent = if self.full { "full" } else { "changes" };
        // Writing to a text never fails.
        let _ =
            writeln!(text, "{}\n{}\n{since}\n{extent}\n{}", self.target, self.seq, self.capacity);
        for key in &self.keys {
            let state = if key.revoked { "revoked" } else { "valid" };
            let _ = writeln!(text, "key {} {} {state}", key.kid, key.public_key);
        }
        for BundleList { list, members } in &self.lists {
            let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
            let members = members.as_deref().unwrap_or("all");
            let _ = writeln!(
                text,
                "list {} {} {} {} {} {members}",
                list.id,
                time(list.opens_at),
                time(list.closes_at),
                list.entries,
                list.reentry
            );
        }
        let _ = writeln!(text, "voided {}\ngenerations {}", self.voided, self.generations);
        for (list, serials) in &self.admitted {
            let _ = writeln!(text, "admitted {list} {serials}");
        }
        for (list, serials) in &self.readmitted {
            let _ = writeln!(text, "readmitted {list} {serials}");
        }
        // Bundles of earlier versions have no such line.
        if !self.blocked.is_empty() {
            let _ = writeln!(text, "blocked {}", self.blocked);
        }
        text
    }

    /// The bundle with its checksum.
    pub fn sealed(mut self) -> Self {
        self.checksum = self.computed_checksum();
        self
    }

    /// Whether nothing of the bundle is missing or altered.
    pub fn is_whole(&self) -> bool {
        self.checksum == self.computed_checksum()
    }

    fn computed_checksum(&self) -> String {
        Sha256::digest(self.canonical()).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_model::{AdmissionRules, CheckInList};

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn a_bundle_has_the_names_that_scanners_read_and_notices_what_is_missing() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let target = EventId::from_bytes([1; 16]);
        let list = CheckInList {
            id: ListId::main_of(target),
            event_id: target,
            rules: AdmissionRules::main(),
            created_at: at,
            updated_at: at,
        };
        let bundle = Bundle {
            target,
            name: "Night".into(),
            seq: 9,
            since: None,
            full: true,
            server_time: at,
            keys: vec![BundleKey { kid: 1, public_key: "AAEC".into(), revoked: false }],
            lists: vec![BundleList { list: list.into(), members: None }],
            gates: Vec::new(),
            device: None,
            capacity: 3,
            voided: "AQ==".into(),
            generations: String::new(),
            blocked: String::new(),
            admitted: [(ListId::main_of(target), "Ag==".into())].into(),
            readmitted: BTreeMap::new(),
            checksum: String::new(),
        }
        .sealed();
        assert!(bundle.is_whole());
        assert_eq!(
            bundle.canonical(),
            format!(
                "stampede bundle 1\n{target}\n9\n\nfull\n3\nkey 1 AAEC valid\nlist {target}   1 false all\n\
                 voided AQ==\ngenerations \nadmitted {target} Ag==\n"
            )
        );
        assert_golden(
            &bundle,
            json!({
                "target": target, "name": "Night", "seq": 9, "since": null, "full": true,
                "serverTime": "2027-01-15T08:00:00Z",
                "keys": [{ "kid": 1, "publicKey": "AAEC", "revoked": false }],
                "lists": [{
                    "id": target, "target": target, "name": "Main", "opensAt": null, "closesAt": null,
                    "entries": 1, "reentry": false, "batches": null, "seats": null, "members": null,
                    "createdAt": "2027-01-15T08:00:00Z", "updatedAt": "2027-01-15T08:00:00Z",
                }],
                "gates": [], "device": null, "capacity": 3, "voided": "AQ==", "generations": "", "blocked": "",
                "admitted": { target.to_string(): "Ag==" }, "readmitted": {},
                "checksum": bundle.checksum,
            }),
        );
        let cut = Bundle { voided: String::new(), ..bundle.clone() };
        assert!(!cut.is_whole());
        let blocked = Bundle { blocked: "Aw==".into(), ..bundle };
        assert!(!blocked.is_whole() && blocked.clone().sealed().is_whole());
        assert!(blocked.canonical().ends_with("\nblocked Aw==\n"), "{}", blocked.canonical());
    }
}
