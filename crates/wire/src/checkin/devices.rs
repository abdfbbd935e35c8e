//! Devices: keys of scanners that belong to one event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{EventId, GateId, KeyId, ListId, Role, Timestamp};

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// The id of its key.
    pub id: KeyId,
    /// The event.
    pub target: EventId,
    /// The device's name.
    pub name: String,
    /// The gate where it stands.
    pub gate: Option<GateId>,
    /// The list that it scans for; `null`: the built-in one.
    pub list: Option<ListId>,
    /// When its key ends.
    pub expires_at: Option<Timestamp>,
    /// When it was last seen.
    pub last_seen_at: Option<Timestamp>,
    /// How many scans it had not sent then.
    pub unsent: Option<u32>,
    /// When its key was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its key last changed.
    pub updated_at: Timestamp,
}

/// The devices of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// The devices.
    pub devices: Vec<Device>,
}

/// A new device with its secrets, which are shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewDevice {
    /// The device.
    pub device: Device,
    /// Its key.
    pub key: String,
    /// A code that gives the device another key, once.
    pub enrol_code: String,
    /// The address that a phone opens to enrol itself.
    pub enrol_url: String,
    /// Until when the code works.
    pub enrol_until: Timestamp,
}

/// The answer of `POST /api/checkin/enrol`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enrolled {
    /// The device's key, shown once.
    pub key: String,
    /// The device.
    pub device: Device,
}

/// An event that a key may scan at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoorEvent {
    /// The event's id.
    pub id: EventId,
    /// Its name.
    pub name: String,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
    /// The zone of its times.
    pub time_zone: String,
}

/// The answer of `GET /api/checkin/me`: what a key may do at the door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The device of the key, if it is one.
    pub device: Option<Device>,
    /// The user.
    pub user: String,
    /// The key's role.
    pub role: Role,
    /// The events, newest first.
    pub events: Vec<DoorEvent>,
    /// The server's clock.
    pub server_time: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn devices_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let (id, target) = (KeyId::from_bytes([1; 16]), EventId::from_bytes([2; 16]));
        let device = Device {
            id,
            target,
            name: "Phone 1".into(),
            gate: None,
            list: Some(ListId::main_of(target)),
            expires_at: None,
            last_seen_at: Some(at),
            unsent: Some(3),
            revoked_at: None,
            created_at: at,
            updated_at: at,
        };
        let json = json!({
            "id": id, "target": target, "name": "Phone 1", "gate": null, "list": target,
            "expiresAt": null, "lastSeenAt": "2027-01-15T08:00:00Z", "unsent": 3, "revokedAt": null,
            "createdAt": "2027-01-15T08:00:00Z", "updatedAt": "2027-01-15T08:00:00Z",
        });
        assert_golden(&device, json.clone());
        let new = NewDevice {
            device: device.clone(),
            key: "stp_x".into(),
            enrol_code: "ABCD".into(),
            enrol_url: "/gate#enrol=ABCD".into(),
            enrol_until: at,
        };
        assert_golden(
            &new,
            json!({
                "device": json, "key": "stp_x", "enrolCode": "ABCD", "enrolUrl": "/gate#enrol=ABCD",
                "enrolUntil": "2027-01-15T08:00:00Z",
            }),
        );
        let event = DoorEvent {
            id: target,
            name: "Night".into(),
            starts_at: None,
            time_zone: "UTC".into(),
        };
        assert_golden(
            &Me {
                device: None,
                user: "ann".into(),
                role: Role::Scanner,
                events: vec![event],
                server_time: at,
            },
            json!({
                "device": null, "user": "ann", "role": "scanner", "serverTime": "2027-01-15T08:00:00Z",
                "events": [{ "id": target, "name": "Night", "startsAt": null, "timeZone": "UTC" }],
            }),
        );
    }
}
