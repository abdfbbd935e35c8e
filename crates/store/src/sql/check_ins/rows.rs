//! Reads check-in records from rows.

use sqlx::any::AnyRow;
use stampede_model::{AdmissionRules, CheckInList, Gate};

use crate::sql::rows::{damaged, number, optional_parsed, optional_time, parsed, time, value};
use crate::{Device, Scan, ScannedTicket};

/// The columns [`list`] reads.
pub(super) const LIST: &str = "id, event_id, name, opens_at, closes_at, entries, reentry, batches, seats, \
     created_at, updated_at";

/// The columns [`gate`] reads.
pub(super) const GATE: &str = "id, event_id, name, created_at, updated_at";

/// The columns [`scan`] reads.
pub(super) const SCAN: &str = "id, seq, event_id, list_id, gate_id, key_id, actor, device_name, nonce, asked, \
     ticket_id, batch_id, serial, name, seat, kind, result, at, received_at, device_at, offline, counted, \
     conflict, conflicts_with, previous, entries, entries_allowed, inside, undone_at, note";

/// A query of devices, to be ended with a condition; [`device`] reads it.
pub(super) const DEVICES: &str = "SELECT keys.id AS id, check_in_devices.event_id AS event_id, keys.owner AS owner, \
     keys.label AS label, gate_id, list_id, keys.expires_at AS expires_at, last_seen_at, unsent, \
     keys.revoked_at AS revoked_at, keys.created_at AS created_at, keys.updated_at AS updated_at \
     FROM check_in_devices JOIN keys ON keys.id = check_in_devices.key_id";

/// Reads the columns [`LIST`].
pub(super) fn list(row: &AnyRow) -> sqlx::Result<CheckInList> {
    Ok(CheckInList {
        id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        rules: AdmissionRules {
            name: value(row, "name")?,
            opens_at: optional_time(row, "opens_at")?,
            closes_at: optional_time(row, "closes_at")?,
            entries: number(row, "entries")?,
            reentry: flag(row, "reentry")?,
            batches: json(row, "batches")?,
            seats: json(row, "seats")?,
        },
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`GATE`].
pub(super) fn gate(row: &AnyRow) -> sqlx::Result<Gate> {
    Ok(Gate {
        id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        name: value(row, "name")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads a row of [`DEVICES`].
pub(super) fn device(row: &AnyRow) -> sqlx::Result<Device> {
    Ok(Device {
        id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        owner: value(row, "owner")?,
        name: value(row, "label")?,
        gate: optional_parsed(row, "gate_id")?,
        list: optional_parsed(row, "list_id")?,
        expires_at: optional_time(row, "expires_at")?,
        last_seen_at: optional_time(row, "last_seen_at")?,
        unsent: optional_number(row, "unsent")?,
        revoked_at: optional_time(row, "revoked_at")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`SCAN`].
pub(super) fn scan(row: &AnyRow) -> sqlx::Result<Scan> {
    Ok(Scan {
        id: parsed(row, "id")?,
        seq: number(row, "seq")?,
        event_id: parsed(row, "event_id")?,
        list_id: parsed(row, "list_id")?,
        gate_id: optional_parsed(row, "gate_id")?,
        key_id: optional_parsed(row, "key_id")?,
        actor: value(row, "actor")?,
        device_name: value(row, "device_name")?,
        nonce: value(row, "nonce")?,
        asked: value(row, "asked")?,
        ticket: ticket(row)?,
        kind: parsed(row, "kind")?,
        result: parsed(row, "result")?,
        at: time(row, "at")?,
        received_at: time(row, "received_at")?,
        device_at: optional_time(row, "device_at")?,
        offline: flag(row, "offline")?,
        counted: flag(row, "counted")?,
        conflict: flag(row, "conflict")?,
        conflicts_with: optional_parsed(row, "conflicts_with")?,
        previous: optional_parsed(row, "previous")?,
        entries: optional_number(row, "entries")?,
        entries_allowed: optional_number(row, "entries_allowed")?,
        inside: optional_number::<u8>(row, "inside")?.map(|inside| inside != 0),
        undone_at: optional_time(row, "undone_at")?,
        note: value(row, "note")?,
    })
}

fn ticket(row: &AnyRow) -> sqlx::Result<Option<ScannedTicket>> {
    let Some(id) = optional_parsed(row, "ticket_id")? else { return Ok(None) };
    Ok(Some(ScannedTicket {
        id,
        batch_id: parsed(row, "batch_id")?,
        serial: number(row, "serial")?,
        name: value(row, "name")?,
        seat: value(row, "seat")?,
    }))
}

/// Reads 0 or 1.
pub(super) fn flag(row: &AnyRow, column: &str) -> sqlx::Result<bool> {
    Ok(number::<u8>(row, column)? != 0)
}

/// Reads one whole number, if there is one.
pub(super) fn optional_number<T: TryFrom<i64, Error: std::fmt::Display>>(
    row: &AnyRow,
    column: &str,
) -> sqlx::Result<Option<T>> {
    match value::<Option<i64>>(row, column)? {
        Some(_) => number(row, column).map(Some),
        None => Ok(None),
    }
}

/// Reads a value that is kept as JSON, if there is one.
fn json<T: serde::de::DeserializeOwned>(row: &AnyRow, column: &str) -> sqlx::Result<Option<T>> {
    let text: Option<String> = value(row, column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| damaged(row, column, error)))
        .transpose()
}
