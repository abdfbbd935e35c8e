//! Check-in: scans, offline scans, lists, gates, devices, snapshots.

mod blocks;
mod ledger;
mod offline;
mod reports;
mod scans;
mod setup;

use stampede_model::{
    Claims, Event, EventId, KeyHash, KeyId, Principal, Role, ScanId, ScanKind, ScanResult, Scope,
    Ticket, TicketId,
};
use stampede_store::{
    NewDevice, NewKey, NewScan, Offline, Recorded, ScanAnswer, Scanner, Shown, Store,
};

use crate::suite::samples::at;

/// A scanner without a key.
fn scanner(user: &str) -> Scanner {
    Scanner { key: None, user: user.into() }
}

/// An entry of a ticket by its token, ten seconds after the start.
fn entry(ticket: &Ticket, user: &str, nonce: &str) -> NewScan {
    let claims = Claims {
        event: ticket.event_id,
        key: ticket.signing_key.unwrap_or(1),
        serial: ticket.serial,
        generation: ticket.generation,
    };
    NewScan {
        id: ScanId::generate(),
        event_id: ticket.event_id,
        list: None,
        gate: None,
        scanner: scanner(user),
        nonce: Some(nonce.into()),
        shown: Shown::Token(claims),
        asked: ticket.id.to_string(),
        kind: ScanKind::Entry,
        at: at(10),
        device_at: None,
        offline: None,
    }
}

fn exit(ticket: &Ticket, user: &str, nonce: &str) -> NewScan {
    NewScan { kind: ScanKind::Exit, ..entry(ticket, user, nonce) }
}

/// A scan that the device decided by itself.
fn offline(scan: NewScan, second: u64, verdict: ScanResult) -> NewScan {
    NewScan { at: at(second), offline: Some(Offline { verdict }), ..scan }
}

async fn record(store: &Store, scan: NewScan) -> ScanAnswer {
    let mut answers = store.record_scans(&[scan], at(10)).await.unwrap();
    match answers.remove(0) {
        Recorded::Decided(answer) => *answer,
        other => panic!("{other:?}"),
    }
}

async fn result(store: &Store, scan: NewScan) -> ScanResult {
    record(store, scan).await.scan.result
}

async fn ticket(store: &Store, id: TicketId) -> Ticket {
    store.ticket(id).await.unwrap().unwrap()
}

/// A device of an event, with the key `secret` and the code `code`.
pub(crate) fn device(event: &Event, secret: &str, code: &str) -> NewDevice {
    let scope = Scope { event: Some(event.id), queues: None };
    let principal = Principal { scope, ..Principal::new(event.owner.clone(), Role::Scanner) };
    NewDevice {
        key: NewKey {
            id: KeyId::generate(),
            hash: KeyHash::of(secret),
            principal,
            name: "Phone 1".into(),
            expires_at: None,
        },
        event_id: event.id,
        gate: None,
        list: None,
        enrol_code: KeyHash::of(code),
        enrol_until: at(600),
    }
}

/// The number of the event's last change.
async fn seq(store: &Store, event: EventId) -> u64 {
    store.check_in_snapshot(event, None).await.unwrap().unwrap().seq
}
