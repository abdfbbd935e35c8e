//! A group of scans: everything that their decisions need is read at once.
//!
//! The counters of the events are locked, so what was read stays true until the group is decided (`decisions.rs`)
//! and written (`write.rs`).

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{
    Admission, CheckInList, EventId, Gate, GateId, KeyId, ListId, ScanId, Ticket, TicketId,
};

use super::rows;
use super::setup::built_in;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{TICKET, number, optional_parsed, parsed, ticket, time, value};
use crate::{NewScan, Scan, Shown};

/// Nonces are remembered by event and scanner.
pub(super) type NonceKey = (EventId, String, String);

/// The state of a ticket on a list.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) admission: Admission,
    pub(super) last_scan: Option<ScanId>,
    /// The number of the change, if this group changed it.
    pub(super) changed: Option<(EventId, u32, u64)>,
}

/// The device of a key.
pub(super) struct DeviceInfo {
    pub(super) name: String,
    pub(super) gate: Option<GateId>,
    pub(super) list: Option<ListId>,
}

/// What the decisions need, and what they change.
#[derive(Default)]
pub(super) struct Group {
    pub(super) counters: HashMap<EventId, u64>,
    pub(super) lists: HashMap<ListId, CheckInList>,
    pub(super) gates: HashMap<GateId, Gate>,
    pub(super) tickets: HashMap<TicketId, Ticket>,
    pub(super) by_serial: HashMap<(EventId, u32), TicketId>,
    pub(super) revoked_keys: HashSet<(EventId, u32)>,
    pub(super) blocked: HashSet<TicketId>,
    pub(super) devices: HashMap<KeyId, DeviceInfo>,
    pub(super) nonces: HashMap<NonceKey, ScanId>,
    pub(super) scans: HashMap<ScanId, Scan>,
    pub(super) states: HashMap<(ListId, TicketId), State>,
    /// Scans to be written.
    pub(super) new: Vec<ScanId>,
    /// Scans that were refused online and let a guest in offline.
    pub(super) amended: Vec<ScanId>,
    /// Scans that another scan conflicts with.
    pub(super) conflicts: Vec<(ScanId, ScanId)>,
}

#[derive(Serialize)]
struct Wanted<'a> {
    event: EventId,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

impl Group {
    /// Locks the events of the scans and reads what their decisions need.
    pub(super) async fn read(
        sql: &Sql,
        db: &mut AnyConnection,
        scans: &[NewScan],
    ) -> sqlx::Result<Self> {
        let events: HashSet<EventId> = scans.iter().map(|scan| scan.event_id).collect();
        let counters = sql.hold_counters(db, events.iter().copied()).await?;
        let mut group = Self { counters, ..Self::default() };
        let events = to_json(&events);
        group.read_places(sql, db, &events).await?;
        group.read_devices(sql, db, scans).await?;
        group.read_tickets(sql, db, scans).await?;
        group.read_blocks(sql, db).await?;
        group.read_nonces(sql, db, scans).await?;
        group.read_states(sql, db).await?;
        group.read_previous(sql, db).await?;
        Ok(group)
    }

    async fn read_places(
        &mut self,
        sql: &Sql,
        db: &mut AnyConnection,
        events: &str,
    ) -> sqlx::Result<()> {
        let each = sql.dialect.each_text("$1");
        let made =
            format!("SELECT id, created_at FROM events WHERE id IN (SELECT value FROM {each})");
        for row in fetch(db, made, events).await? {
            let list = built_in(parsed(&row, "id")?, time(&row, "created_at")?);
            self.lists.insert(list.id, list);
        }
        let lists = format!(
            "SELECT {} FROM check_in_lists WHERE event_id IN (SELECT value FROM {each})",
            rows::LIST
        );
        for row in fetch(db, lists, events).await? {
            let list = rows::list(&row)?;
            self.lists.insert(list.id, list);
        }
        let gates = format!(
            "SELECT {} FROM check_in_gates WHERE event_id IN (SELECT value FROM {each})",
            rows::GATE
        );
        for row in fetch(db, gates, events).await? {
            let gate = rows::gate(&row)?;
            self.gates.insert(gate.id, gate);
        }
        let revoked = format!(
            "SELECT event_id AS id, number FROM ticket_keys \
             WHERE event_id IN (SELECT value FROM {each}) AND revoked_at IS NOT NULL"
        );
        for row in fetch(db, revoked, events).await? {
            self.revoked_keys.insert((parsed(&row, "id")?, number(&row, "number")?));
        }
        Ok(())
    }

    async fn read_devices(
        &mut self,
        sql: &Sql,
        db: &mut AnyConnection,
        scans: &[NewScan],
    ) -> sqlx::Result<()> {
        let keys: HashSet<KeyId> = scans.iter().filter_map(|scan| scan.scanner.key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let query = format!(
            "SELECT keys.id AS id, label, gate_id, list_id FROM keys \
             LEFT JOIN check_in_devices ON key_id = keys.id WHERE keys.id IN (SELECT value FROM {})",
            sql.dialect.each_text("$1")
        );
        for row in fetch(db, query, &to_json(&keys)).await? {
            let info = DeviceInfo {
                name: value(&row, "label")?,
                gate: optional_parsed(&row, "gate_id")?,
                list: optional_parsed(&row, "list_id")?,
            };
            self.devices.insert(parsed(&row, "id")?, info);
        }
        Ok(())
    }

    async fn read_tickets(
        &mut self,
        sql: &Sql,
        db: &mut AnyConnection,
        scans: &[NewScan],
    ) -> sqlx::Result<()> {
        let (mut by_serial, mut by_id) = (Vec::new(), Vec::new());
        for scan in scans {
            match scan.shown {
                Shown::Token(claims) => by_serial.push(Wanted {
                    event: claims.event,
                    serial: Some(claims.serial),
                    actor: None,
                    nonce: None,
                }),
                Shown::Ticket(id) => by_id.push(id),
                Shown::Refused(_) => {}
            }
        }
        let mut found = Vec::new();
        if !by_serial.is_empty() {
            // A cross join keeps SQLite from going through all tickets.
            let query = format!(
                "SELECT {} FROM (SELECT value ->> 'event' AS wanted_event, \
                 CAST(value ->> 'serial' AS BIGINT) AS wanted_serial FROM {}) AS wanted \
                 CROSS JOIN tickets WHERE event_id = wanted_event AND serial = wanted_serial",
                TICKET,
                sql.dialect.each_object("$1")
            );
            found.extend(fetch(db, query, &to_json(&by_serial)).await?);
        }
        if !by_id.is_empty() {
            let query = format!(
                "SELECT {TICKET} FROM tickets WHERE id IN (SELECT value FROM {})",
                sql.dialect.each_text("$1")
            );
            found.extend(fetch(db, query, &to_json(&by_id)).await?);
        }
        for row in found {
            let ticket = ticket(&row)?;
            self.by_serial.insert((ticket.event_id, ticket.serial), ticket.id);
            self.tickets.insert(ticket.id, ticket);
        }
        Ok(())
    }

    async fn read_blocks(&mut self, sql: &Sql, db: &mut AnyConnection) -> sqlx::Result<()> {
        let query = format!(
            "SELECT ticket_id AS id FROM check_in_blocks WHERE ticket_id IN (SELECT value FROM {})",
            sql.dialect.each_text("$1")
        );
        let tickets: Vec<TicketId> = self.tickets.keys().copied().collect();
        for row in fetch(db, query, &to_json(&tickets)).await? {
            self.blocked.insert(parsed(&row, "id")?);
        }
        Ok(())
    }

    async fn read_nonces(
        &mut self,
        sql: &Sql,
        db: &mut AnyConnection,
        scans: &[NewScan],
    ) -> sqlx::Result<()> {
        let wanted: Vec<Wanted<'_>> = scans
            .iter()
            .filter_map(|scan| {
                let (event, nonce) = (scan.event_id, Some(scan.nonce.as_deref()?));
                Some(Wanted { event, serial: None, actor: Some(scan.scanner.actor()), nonce })
            })
            .collect();
        let query = format!(
            "SELECT {} FROM (SELECT value ->> 'event' AS wanted_event, value ->> 'actor' AS wanted_actor, \
             value ->> 'nonce' AS wanted_nonce FROM {}) AS wanted CROSS JOIN check_in_scans \
             WHERE actor = wanted_actor AND nonce = wanted_nonce AND event_id = wanted_event",
            rows::SCAN,
            sql.dialect.each_object("$1")
        );
        for row in fetch(db, query, &to_json(&wanted)).await? {
            let scan = rows::scan(&row)?;
            self.nonces.insert(nonce_key(&scan), scan.id);
            self.scans.insert(scan.id, scan);
        }
        Ok(())
    }

    async fn read_states(&mut self, sql: &Sql, db: &mut AnyConnection) -> sqlx::Result<()> {
        let query = format!(
            "SELECT list_id, ticket_id AS id, entered, exited, last_scan FROM check_in_admissions \
             WHERE ticket_id IN (SELECT value FROM {})",
            sql.dialect.each_text("$1")
        );
        let tickets: Vec<TicketId> = self.tickets.keys().copied().collect();
        for row in fetch(db, query, &to_json(&tickets)).await? {
            let admission =
                Admission { entered: number(&row, "entered")?, exited: number(&row, "exited")? };
            let last_scan = optional_parsed(&row, "last_scan")?;
            let state = State { admission, last_scan, changed: None };
            self.states.insert((parsed(&row, "list_id")?, parsed(&row, "id")?), state);
        }
        Ok(())
    }

    /// Reads the entries that refused scans point at.
    async fn read_previous(&mut self, sql: &Sql, db: &mut AnyConnection) -> sqlx::Result<()> {
        let of_states = self.states.values().filter_map(|state| state.last_scan);
        let of_scans = self.scans.values().filter_map(|scan| scan.previous);
        let ids: HashSet<ScanId> = of_states.chain(of_scans).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let query = format!(
            "SELECT {} FROM check_in_scans WHERE id IN (SELECT value FROM {})",
            rows::SCAN,
            sql.dialect.each_text("$1")
        );
        for row in fetch(db, query, &to_json(&ids)).await? {
            let scan = rows::scan(&row)?;
            self.scans.entry(scan.id).or_insert(scan);
        }
        Ok(())
    }
}

pub(super) fn nonce_key(scan: &Scan) -> NonceKey {
    (scan.event_id, scan.actor.clone(), scan.nonce.clone())
}

/// Reads all rows of a query with one value.
async fn fetch(db: &mut AnyConnection, sql: String, bound: &str) -> sqlx::Result<Vec<AnyRow>> {
    sqlx::query(AssertSqlSafe(sql)).bind(bound).fetch_all(db).await
}
