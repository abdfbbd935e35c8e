//! Devices: keys of scanners that belong to one event.

use stampede_model::{EventId, GateId, KeyHash, KeyId, ListId, Timestamp};

use crate::NewKey;

/// A device to be written.
#[derive(Debug, Clone)]
pub struct NewDevice {
    /// Its key, with the role of a scanner and the scope of one event.
    pub key: NewKey,
    /// The event.
    pub event_id: EventId,
    /// The gate where it stands.
    pub gate: Option<GateId>,
    /// The list that it scans for; `None`: the built-in one.
    pub list: Option<ListId>,
    /// The hash of the code that gives the device a fresh key, once.
    pub enrol_code: KeyHash,
    /// Until when the code works.
    pub enrol_until: Timestamp,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The id of its key.
    pub id: KeyId,
    /// The event.
    pub event_id: EventId,
    /// The user whose events it scans at.
    pub owner: String,
    /// The name that people know it by.
    pub name: String,
    /// The gate where it stands.
    pub gate: Option<GateId>,
    /// The list that it scans for; `None`: the built-in one.
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
    /// When its key last changed; its version.
    pub updated_at: Timestamp,
}
