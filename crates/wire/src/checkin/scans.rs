//! Scans: the answer to each, and the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{
    BatchId, EventId, GateId, KeyId, ListId, ScanId, ScanKind, ScanResult, TicketId, Timestamp,
};

/// The ticket of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScannedTicket {
    /// The ticket's id.
    pub id: TicketId,
    /// Its number within the event.
    pub number: u32,
    /// The holder's name.
    pub name: String,
    /// The holder's seat.
    pub seat: Option<String>,
    /// Its order.
    pub batch_id: BatchId,
}

/// The event of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanEvent {
    /// The event's id.
    pub id: EventId,
    /// Its name.
    pub name: String,
}

/// The entry before, of a ticket that was redeemed already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// The moment of that scan.
    pub at: Timestamp,
    /// The gate.
    pub gate: Option<GateId>,
    /// The gate's name.
    pub gate_name: Option<String>,
    /// The key that scanned.
    pub device: Option<KeyId>,
    /// The scanner's name.
    pub device_name: String,
    /// The scan.
    pub scan: ScanId,
}

/// The answer to a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redeemed {
    /// `ok`, or the reason of the refusal.
    pub result: ScanResult,
    /// Whether the guest may pass.
    pub ok: bool,
    /// The direction.
    pub kind: ScanKind,
    /// The scan in the log; `null` if it was not recorded.
    pub scan: Option<ScanId>,
    /// Its place in the order of the event's changes.
    pub seq: Option<u64>,
    /// The moment of the scan by the server's clock.
    pub at: Timestamp,
    /// The ticket.
    pub ticket: Option<ScannedTicket>,
    /// The event.
    pub event: Option<ScanEvent>,
    /// The list.
    pub list: Option<ListId>,
    /// The list's name.
    pub list_name: Option<String>,
    /// The gate.
    pub gate: Option<GateId>,
    /// The gate's name.
    pub gate_name: Option<String>,
    /// Entries used, this one included.
    pub entries: Option<u32>,
    /// Entries that the list allows; 0: any number.
    pub entries_allowed: Option<u32>,
    /// Whether the guest is inside now.
    pub inside: Option<bool>,
    /// The entry before, of a ticket that was redeemed already.
    pub previous: Option<Previous>,
    /// A sentence for people.
    pub detail: String,
    /// Whether an offline scan let in a guest who should not have been let in.
    pub conflict: bool,
    /// Whether this nonce was answered before.
    pub replayed: bool,
    /// When the scan was undone, if this nonce was answered before: the guest may not pass with it.
    pub undone_at: Option<Timestamp>,
    /// Whether nothing was recorded.
    pub simulated: bool,
}

/// A scan in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scan {
    /// The scan's id.
    pub id: ScanId,
    /// Its place in the order of the event's changes.
    pub seq: u64,
    /// The event.
    pub target: EventId,
    /// The list.
    pub list: ListId,
    /// The gate.
    pub gate: Option<GateId>,
    /// The key that scanned.
    pub device: Option<KeyId>,
    /// The scanner's name.
    pub device_name: String,
    /// The ticket's id.
    pub ticket: Option<TicketId>,
    /// The ticket's number.
    pub number: Option<u32>,
    /// The holder's name at that time.
    pub name: Option<String>,
    /// The holder's seat at that time.
    pub seat: Option<String>,
    /// The direction.
    pub kind: ScanKind,
    /// `ok`, or the reason of the refusal.
    pub result: ScanResult,
    /// The moment of the scan by the server's clock.
    pub at: Timestamp,
    /// When the server learned of it.
    pub received_at: Timestamp,
    /// The moment by the device's clock.
    pub device_at: Option<Timestamp>,
    /// Whether the device decided without the server.
    pub offline: bool,
    /// Whether the guest passed.
    pub passed: bool,
    /// When it was undone.
    pub undone_at: Option<Timestamp>,
    /// The scan that it conflicts with.
    pub conflicts_with: Option<ScanId>,
    /// Why it was undone.
    pub note: Option<String>,
}

/// One page of the log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanPage {
    /// The scans.
    pub scans: Vec<Scan>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<u64>,
}

/// An offline scan that let in a guest who should not have been let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The scan.
    pub scan: Scan,
    /// The scan that it conflicts with.
    pub other: Option<Scan>,
}

/// The conflicts of an event, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    /// The conflicts.
    pub conflicts: Vec<Conflict>,
}

/// The answer of `POST /api/checkin/undo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// Always true.
    pub undone: bool,
    /// The scan.
    pub scan: Scan,
}

/// The answer to one scan of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadedScan {
    /// The client's name of the scan.
    pub nonce: String,
    /// The answer.
    #[serde(flatten)]
    pub redeemed: Redeemed,
}

/// The answer of `POST /api/checkin/scans`, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Uploaded {
    /// One answer for each scan.
    pub results: Vec<UploadedScan>,
    /// The server's clock.
    pub server_time: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn answers_and_log_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let event = EventId::from_bytes([1; 16]);
        let (list, scan, key) =
            (ListId::main_of(event), ScanId::from_bytes([2; 16]), KeyId::from_bytes([3; 16]));
        let (ticket, batch) = (TicketId::from_bytes([4; 16]), BatchId::from_bytes([5; 16]));
        let gate = GateId::from_bytes([6; 16]);
        let redeemed = Redeemed {
            result: ScanResult::AlreadyRedeemed,
            ok: false,
            kind: ScanKind::Entry,
            scan: Some(scan),
            seq: Some(7),
            at,
            ticket: Some(ScannedTicket {
                id: ticket,
                number: 42,
                name: "Ann".into(),
                seat: None,
                batch_id: batch,
            }),
            event: Some(ScanEvent { id: event, name: "Night".into() }),
            list: Some(list),
            list_name: Some("Main".into()),
            gate: Some(gate),
            gate_name: Some("North".into()),
            entries: Some(1),
            entries_allowed: Some(1),
            inside: Some(true),
            previous: Some(Previous {
                at,
                gate: None,
                gate_name: None,
                device: Some(key),
                device_name: "Phone".into(),
                scan,
            }),
            detail: "…".into(),
            conflict: false,
            replayed: false,
            undone_at: None,
            simulated: false,
        };
        let json = json!({
            "result": "already_redeemed", "ok": false, "kind": "entry", "scan": scan, "seq": 7,
            "at": "2027-01-15T08:00:00Z",
            "ticket": { "id": ticket, "number": 42, "name": "Ann", "seat": null, "batchId": batch },
            "event": { "id": event, "name": "Night" },
            "list": list, "listName": "Main", "gate": gate, "gateName": "North",
            "entries": 1, "entriesAllowed": 1, "inside": true,
            "previous": {
                "at": "2027-01-15T08:00:00Z", "gate": null, "gateName": null, "device": key,
                "deviceName": "Phone", "scan": scan,
            },
            "detail": "…", "conflict": false, "replayed": false, "undoneAt": null, "simulated": false,
        });
        assert_golden(&redeemed, json.clone());
        let mut uploaded = json;
        uploaded["nonce"] = json!("n1");
        assert_golden(&UploadedScan { nonce: "n1".into(), redeemed }, uploaded);
        let logged = Scan {
            id: scan,
            seq: 7,
            target: event,
            list,
            gate: None,
            device: Some(key),
            device_name: "Phone".into(),
            ticket: Some(ticket),
            number: Some(42),
            name: Some("Ann".into()),
            seat: None,
            kind: ScanKind::Exit,
            result: ScanResult::Ok,
            at,
            received_at: at,
            device_at: None,
            offline: true,
            passed: true,
            undone_at: None,
            conflicts_with: None,
            note: None,
        };
        assert_golden(
            &logged,
            json!({
                "id": scan, "seq": 7, "target": event, "list": list, "gate": null, "device": key,
                "deviceName": "Phone", "ticket": ticket, "number": 42, "name": "Ann", "seat": null,
                "kind": "exit", "result": "ok", "at": "2027-01-15T08:00:00Z",
                "receivedAt": "2027-01-15T08:00:00Z", "deviceAt": null, "offline": true, "passed": true,
                "undoneAt": null, "conflictsWith": null, "note": null,
            }),
        );
    }
}
