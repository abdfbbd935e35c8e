//! Records as the API tells them.

use stampede_model::{ScanKind, ScanResult, Timestamp};
use stampede_store::{Device, Scan, ScanAnswer};
use stampede_wire::checkin::devices::Device as ShownDevice;
use stampede_wire::checkin::scans::{
    Previous, Redeemed, Scan as ShownScan, ScanEvent, ScannedTicket,
};

/// The answer to a scan.
pub(crate) fn redeemed(answer: ScanAnswer, event: &str) -> Redeemed {
    let ScanAnswer { scan, list, gate, previous, replayed, simulated } = answer;
    let previous = previous.map(|(scan, gate)| Previous {
        at: scan.at,
        gate: scan.gate_id,
        gate_name: gate.map(|gate| gate.name),
        device: scan.key_id,
        device_name: scan.device_name,
        scan: scan.id,
    });
    Redeemed {
        detail: match scan.undone_at {
            Some(_) => "This scan was undone: scan the ticket again".to_owned(),
            None => detail(scan.result, scan.kind, previous.as_ref()),
        },
        result: scan.result,
        ok: scan.result == ScanResult::Ok && scan.undone_at.is_none(),
        kind: scan.kind,
        scan: (!simulated).then_some(scan.id),
        seq: (!simulated).then_some(scan.seq),
        at: scan.at,
        ticket: scan.ticket.map(|ticket| ScannedTicket {
            id: ticket.id,
            number: ticket.serial,
            name: ticket.name,
            seat: ticket.seat,
            batch_id: ticket.batch_id,
        }),
        event: Some(ScanEvent { id: scan.event_id, name: event.to_owned() }),
        list: Some(scan.list_id),
        list_name: list.map(|list| list.rules.name),
        gate: scan.gate_id,
        gate_name: gate.map(|gate| gate.name),
        entries: scan.entries,
        entries_allowed: scan.entries_allowed,
        inside: scan.inside,
        previous,
        conflict: scan.conflict,
        replayed,
        undone_at: scan.undone_at,
        simulated,
    }
}

/// The answer to a scan that belongs to no event that the caller may see.
pub(crate) fn unrecorded(
    result: ScanResult,
    kind: ScanKind,
    at: Timestamp,
    simulated: bool,
) -> Redeemed {
    Redeemed {
        result,
        ok: false,
        kind,
        scan: None,
        seq: None,
        at,
        ticket: None,
        event: None,
        list: None,
        list_name: None,
        gate: None,
        gate_name: None,
        entries: None,
        entries_allowed: None,
        inside: None,
        previous: None,
        detail: detail(result, kind, None),
        conflict: false,
        replayed: false,
        undone_at: None,
        simulated,
    }
}

/// A sentence for the person at the door.
fn detail(result: ScanResult, kind: ScanKind, previous: Option<&Previous>) -> String {
    let sentence = match result {
        ScanResult::Ok if kind == ScanKind::Exit => "The guest may leave",
        ScanResult::Ok => "The guest may enter",
        ScanResult::AlreadyRedeemed => return already_redeemed(previous),
        ScanResult::Void => "The ticket was withdrawn by the organiser",
        ScanResult::Superseded => {
            "The ticket was replaced by a newer one; only the newer one admits"
        }
        ScanResult::RevokedKey => "The ticket must be issued again: its key was revoked",
        ScanResult::Forged => "The signature is wrong: the ticket was forged or altered",
        ScanResult::Malformed => "This is not a ticket, or not all of it",
        ScanResult::WrongEvent => "The ticket is for another event",
        ScanResult::NotOnList => "The ticket does not admit here: it is not on this list",
        ScanResult::NotYet => "Too early: this list is not open yet",
        ScanResult::Expired => "Too late: this list is closed",
        ScanResult::Blocked => "The organiser blocked the ticket",
        ScanResult::Unknown => "There is no such ticket",
        ScanResult::NotInside => "Nobody is inside with this ticket",
    };
    sentence.to_owned()
}

fn already_redeemed(previous: Option<&Previous>) -> String {
    let Some(previous) = previous else { return "The ticket was used already".to_owned() };
    let place = previous.gate_name.as_ref().map(|gate| format!(" at {gate}")).unwrap_or_default();
    format!("The ticket was used already: {}{place} by {}", previous.at, previous.device_name)
}

/// A scan of the log.
pub(crate) fn scan(scan: Scan) -> ShownScan {
    let ticket = scan.ticket;
    ShownScan {
        id: scan.id,
        seq: scan.seq,
        target: scan.event_id,
        list: scan.list_id,
        gate: scan.gate_id,
        device: scan.key_id,
        device_name: scan.device_name,
        ticket: ticket.as_ref().map(|ticket| ticket.id),
        number: ticket.as_ref().map(|ticket| ticket.serial),
        seat: ticket.as_ref().and_then(|ticket| ticket.seat.clone()),
        name: ticket.map(|ticket| ticket.name),
        kind: scan.kind,
        result: scan.result,
        at: scan.at,
        received_at: scan.received_at,
        device_at: scan.device_at,
        offline: scan.offline,
        passed: scan.counted && scan.undone_at.is_none(),
        undone_at: scan.undone_at,
        conflicts_with: scan.conflicts_with,
        note: scan.note,
    }
}

/// A device.
pub(crate) fn device(device: Device) -> ShownDevice {
    ShownDevice {
        id: device.id,
        target: device.event_id,
        name: device.name,
        gate: device.gate,
        list: device.list,
        expires_at: device.expires_at,
        last_seen_at: device.last_seen_at,
        unsent: device.unsent,
        revoked_at: device.revoked_at,
        created_at: device.created_at,
        updated_at: device.updated_at,
    }
}
