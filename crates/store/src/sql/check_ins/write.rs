//! What a group of scans writes: many rows in each statement.

use std::collections::HashSet;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::{Change, ScanData};
use stampede_model::{BatchId, EventId, GateId, KeyId, ListId, ScanId, TicketId, Timestamp};

use super::group::Group;
use super::set_counters;
use crate::sql::Sql;
use crate::sql::outbox::Told;
use crate::sql::page::to_json;
use crate::{NewScan, Scan};

#[derive(Serialize)]
struct ScanRow<'a> {
    id: ScanId,
    seq: u64,
    event: EventId,
    list: ListId,
    gate: Option<GateId>,
    key: Option<KeyId>,
    actor: &'a str,
    device: &'a str,
    nonce: &'a str,
    asked: &'a str,
    ticket: Option<TicketId>,
    batch: Option<BatchId>,
    serial: Option<u32>,
    name: Option<&'a str>,
    seat: Option<&'a str>,
    kind: &'static str,
    result: &'static str,
    at: i64,
    received: i64,
    device_at: Option<i64>,
    offline: u8,
    counted: u8,
    conflict: u8,
    conflicts_with: Option<ScanId>,
    previous: Option<ScanId>,
    entries: Option<u32>,
    allowed: Option<u32>,
    inside: Option<u8>,
}

#[derive(Serialize)]
struct StateRow {
    list: ListId,
    ticket: TicketId,
    event: EventId,
    serial: u32,
    entered: u32,
    exited: u32,
    last: Option<ScanId>,
    seq: u64,
}

#[derive(Serialize)]
struct ConflictRow {
    scan: ScanId,
    other: Option<ScanId>,
}

impl Group {
    /// Writes everything that the decisions changed.
    pub(super) async fn write(
        &self,
        sql: &Sql,
        db: &mut AnyConnection,
        scans: &[NewScan],
        now: Timestamp,
    ) -> sqlx::Result<()> {
        if !self.new.is_empty() {
            let new: Vec<ScanRow<'_>> =
                self.new.iter().filter_map(|id| self.scan(id)).map(scan_row).collect();
            run(db, insert_scans(sql), &to_json(&new)).await?;
        }
        if !self.amended.is_empty() {
            let amended: Vec<ConflictRow> = self
                .amended
                .iter()
                .filter_map(|id| self.scan(id))
                .map(|scan| ConflictRow { scan: scan.id, other: scan.conflicts_with })
                .collect();
            run(db, amend_scans(sql), &to_json(&amended)).await?;
        }
        if !self.conflicts.is_empty() {
            let row =
                |(scan, other): &(ScanId, ScanId)| ConflictRow { scan: *scan, other: Some(*other) };
            let conflicts: Vec<ConflictRow> = self.conflicts.iter().map(row).collect();
            run(db, mark_conflicts(sql), &to_json(&conflicts)).await?;
        }
        sql.tell(db, self.written_scans().map(told)).await?;
        let states: Vec<StateRow> = self.changed_states().collect();
        if !states.is_empty() {
            run(db, write_states(sql), &to_json(&states)).await?;
        }
        if !self.new.is_empty() || !self.amended.is_empty() {
            let counters = self.counters.iter().map(|(event, seq)| (*event, *seq));
            set_counters(sql, db, counters).await?;
        }
        note_devices(sql, db, scans, now).await
    }

    /// Every scan that this group writes, once: new ones, amended ones, and those that another one conflicts with.
    fn written_scans(&self) -> impl Iterator<Item = &Scan> {
        let mut known = HashSet::new();
        let marked = self.conflicts.iter().map(|(scan, _)| scan);
        let all = self.new.iter().chain(&self.amended).chain(marked);
        all.filter(move |id| known.insert(**id)).filter_map(|id| self.scan(id))
    }

    fn changed_states(&self) -> impl Iterator<Item = StateRow> {
        self.states.iter().filter_map(|((list, ticket), state)| {
            let (event, serial, seq) = state.changed?;
            Some(StateRow {
                list: *list,
                ticket: *ticket,
                event,
                serial,
                entered: state.admission.entered,
                exited: state.admission.exited,
                last: state.last_scan,
                seq,
            })
        })
    }
}

fn told(scan: &Scan) -> Told {
    let batch = scan.ticket.as_ref().map(|ticket| ticket.batch_id);
    Told::within(scan.event_id, batch, Change::ScanRecorded(scan_data(scan)))
}

/// A scan as the feed tells it: without the guest's name.
pub(super) fn scan_data(scan: &Scan) -> ScanData {
    ScanData {
        scan_id: scan.id,
        seq: scan.seq,
        result: scan.result,
        kind: scan.kind,
        ticket_id: scan.ticket.as_ref().map(|ticket| ticket.id),
        number: scan.ticket.as_ref().map(|ticket| ticket.serial),
        list: scan.list_id,
        gate: scan.gate_id,
        device: scan.device_name.clone(),
        at: scan.at,
        offline: scan.offline,
        conflict: scan.conflict,
    }
}

fn scan_row(scan: &Scan) -> ScanRow<'_> {
    let ticket = scan.ticket.as_ref();
    ScanRow {
        id: scan.id,
        seq: scan.seq,
        event: scan.event_id,
        list: scan.list_id,
        gate: scan.gate_id,
        key: scan.key_id,
        actor: &scan.actor,
        device: &scan.device_name,
        nonce: &scan.nonce,
        asked: &scan.asked,
        ticket: ticket.map(|ticket| ticket.id),
        batch: ticket.map(|ticket| ticket.batch_id),
        serial: ticket.map(|ticket| ticket.serial),
        name: ticket.map(|ticket| ticket.name.as_str()),
        seat: ticket.and_then(|ticket| ticket.seat.as_deref()),
        kind: scan.kind.as_str(),
        result: scan.result.as_str(),
        at: scan.at.as_millisecond(),
        received: scan.received_at.as_millisecond(),
        device_at: scan.device_at.map(Timestamp::as_millisecond),
        offline: scan.offline.into(),
        counted: scan.counted.into(),
        conflict: scan.conflict.into(),
        conflicts_with: scan.conflicts_with,
        previous: scan.previous,
        entries: scan.entries,
        allowed: scan.entries_allowed,
        inside: scan.inside.map(u8::from),
    }
}

fn insert_scans(sql: &Sql) -> String {
    let text = |name: &str| format!("value ->> '{name}'");
    let number = |name: &str| format!("CAST(value ->> '{name}' AS BIGINT)");
    let values = [
        text("id"),
        number("seq"),
        text("event"),
        text("list"),
        text("gate"),
        text("key"),
        text("actor"),
        text("device"),
        text("nonce"),
        text("asked"),
        text("ticket"),
        text("batch"),
        number("serial"),
        text("name"),
        text("seat"),
        text("kind"),
        text("result"),
        number("at"),
        number("received"),
        number("device_at"),
        number("offline"),
        number("counted"),
        number("conflict"),
        text("conflicts_with"),
        text("previous"),
        number("entries"),
        number("allowed"),
        number("inside"),
    ];
    format!(
        "INSERT INTO check_in_scans (id, seq, event_id, list_id, gate_id, key_id, actor, device_name, nonce, \
         asked, ticket_id, batch_id, serial, name, seat, kind, result, at, received_at, device_at, offline, \
         counted, conflict, conflicts_with, previous, entries, entries_allowed, inside) \
         SELECT {} FROM {}",
        values.join(", "),
        sql.dialect.each_object("$1")
    )
}

fn amend_scans(sql: &Sql) -> String {
    format!(
        "UPDATE check_in_scans SET counted = 1, offline = 1, conflict = 1, \
         conflicts_with = change.other FROM (SELECT value ->> 'scan' AS scan, \
         value ->> 'other' AS other FROM {}) AS change WHERE check_in_scans.id = change.scan",
        sql.dialect.each_object("$1")
    )
}

/// A scan that several others conflict with points at the first of them.
fn mark_conflicts(sql: &Sql) -> String {
    format!(
        "UPDATE check_in_scans SET conflict = 1, \
         conflicts_with = COALESCE(conflicts_with, change.other) \
         FROM (SELECT value ->> 'scan' AS scan, MIN(value ->> 'other') AS other FROM {} \
         GROUP BY value ->> 'scan') AS change WHERE check_in_scans.id = change.scan",
        sql.dialect.each_object("$1")
    )
}

fn write_states(sql: &Sql) -> String {
    format!(
        "INSERT INTO check_in_admissions (list_id, ticket_id, event_id, serial, entered, exited, last_scan, seq) \
         SELECT value ->> 'list', value ->> 'ticket', value ->> 'event', \
         CAST(value ->> 'serial' AS BIGINT), CAST(value ->> 'entered' AS BIGINT), \
         CAST(value ->> 'exited' AS BIGINT), value ->> 'last', CAST(value ->> 'seq' AS BIGINT) \
         FROM {} WHERE TRUE ON CONFLICT (list_id, ticket_id) DO UPDATE SET entered = excluded.entered, \
         exited = excluded.exited, last_scan = excluded.last_scan, seq = excluded.seq",
        sql.dialect.each_object("$1")
    )
}

/// Notes that the devices of a group were seen, at most once a second.
async fn note_devices(
    sql: &Sql,
    db: &mut AnyConnection,
    scans: &[NewScan],
    now: Timestamp,
) -> sqlx::Result<()> {
    let mut keys: Vec<KeyId> = scans.iter().filter_map(|scan| scan.scanner.key).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Ok(());
    }
    let update = format!(
        "UPDATE check_in_devices SET last_seen_at = $2 WHERE key_id IN (SELECT value FROM {}) \
         AND (last_seen_at IS NULL OR last_seen_at < $2 - 1000)",
        sql.dialect.each_text("$1")
    );
    sqlx::query(AssertSqlSafe(update))
        .bind(to_json(&keys))
        .bind(now.as_millisecond())
        .execute(db)
        .await?;
    Ok(())
}

async fn run(db: &mut AnyConnection, sql: String, bound: &str) -> sqlx::Result<()> {
    sqlx::query(AssertSqlSafe(sql)).bind(bound).execute(db).await?;
    Ok(())
}
