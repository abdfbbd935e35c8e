//! Scans: as they arrive, as they are recorded, and what is answered.

use stampede_model::{
    BatchId, CheckInList, Claims, EventId, Gate, GateId, KeyId, ListId, ScanId, ScanKind,
    ScanResult, TicketId, Timestamp,
};

/// Who scans: a key, or a person who signed in without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scanner {
    /// The key.
    pub key: Option<KeyId>,
    /// The user.
    pub user: String,
}

impl Scanner {
    /// The name under which nonces are remembered: unique among scanners.
    pub fn actor(&self) -> String {
        match self.key {
            Some(key) => format!("key:{key}"),
            None => format!("user:{}", self.user),
        }
    }
}

/// What was shown to a scanner.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// A token with a right signature. Whether its key is revoked is looked up when the scan is recorded.
    Token(Claims),
    /// A ticket by its id.
    Ticket(TicketId),
    /// Something that is refused without looking up a ticket.
    Refused(ScanResult),
}

/// A decision that a device made without the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// What the device decided.
    pub verdict: ScanResult,
}

/// A scan to be decided and recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct NewScan {
    /// Names the scan, if it is recorded.
    pub id: ScanId,
    /// The event at whose door it happens.
    pub event_id: EventId,
    /// The list; `None`: the device's, or else the built-in one.
    pub list: Option<ListId>,
    /// The gate; `None`: the device's.
    pub gate: Option<GateId>,
    /// Who scans.
    pub scanner: Scanner,
    /// Chosen by the client: the same nonce is the same scan. `None`: only a question, nothing is recorded.
    pub nonce: Option<String>,
    /// What was shown.
    pub shown: Shown,
    /// A hash of what was shown: the same nonce with something else is a mistake.
    pub asked: String,
    /// The direction.
    pub kind: ScanKind,
    /// The moment of the scan by the server's clock.
    pub at: Timestamp,
    /// The moment by the device's clock.
    pub device_at: Option<Timestamp>,
    /// The device's own decision, if it was made without the server.
    pub offline: Option<Offline>,
}

/// The ticket of a scan as it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedTicket {
    /// Names the ticket.
    pub id: TicketId,
    /// Its order.
    pub batch_id: BatchId,
    /// Its number within the event.
    pub serial: u32,
    /// The holder's name.
    pub name: String,
    /// The holder's seat.
    pub seat: Option<String>,
}

/// A scan in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Names the scan.
    pub id: ScanId,
    /// Its place in the order of the event's changes.
    pub seq: u64,
    /// The event.
    pub event_id: EventId,
    /// The list.
    pub list_id: ListId,
    /// The gate.
    pub gate_id: Option<GateId>,
    /// The key that scanned.
    pub key_id: Option<KeyId>,
    /// Whose nonce it is.
    pub actor: String,
    /// The scanner's name.
    pub device_name: String,
    /// The client's name of the scan.
    pub nonce: String,
    /// A hash of what was shown.
    pub asked: String,
    /// The ticket.
    pub ticket: Option<ScannedTicket>,
    /// The direction.
    pub kind: ScanKind,
    /// The result.
    pub result: ScanResult,
    /// The moment of the scan by the server's clock.
    pub at: Timestamp,
    /// When the server learned of it.
    pub received_at: Timestamp,
    /// The moment by the device's clock.
    pub device_at: Option<Timestamp>,
    /// Whether the device decided without the server.
    pub offline: bool,
    /// Whether the guest passed, so that the ticket's state counts it.
    pub counted: bool,
    /// Whether it let in a guest who should not have been let in, or whose entry another such scan repeated.
    pub conflict: bool,
    /// The scan that it conflicts with.
    pub conflicts_with: Option<ScanId>,
    /// The last entry before, if the ticket was redeemed already.
    pub previous: Option<ScanId>,
    /// Entries used, this one included.
    pub entries: Option<u32>,
    /// Entries that the list allows; 0: any number.
    pub entries_allowed: Option<u32>,
    /// Whether the guest is inside afterwards.
    pub inside: Option<bool>,
    /// When it was undone.
    pub undone_at: Option<Timestamp>,
    /// Why it was undone.
    pub note: Option<String>,
}

/// The answer to a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanAnswer {
    /// The scan.
    pub scan: Scan,
    /// The list, unless it was deleted since.
    pub list: Option<CheckInList>,
    /// The gate, unless it was deleted since.
    pub gate: Option<Gate>,
    /// The last entry before, with its gate.
    pub previous: Option<(Scan, Option<Gate>)>,
    /// Whether this nonce was answered before.
    pub replayed: bool,
    /// Whether nothing was recorded.
    pub simulated: bool,
}

/// What became of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// It is decided, by this call or by an earlier one.
    Decided(Box<ScanAnswer>),
    /// There is no such event any more.
    NoSuchEvent,
    /// The event has no such list.
    NoSuchList,
    /// The event has no such gate.
    NoSuchGate,
    /// The nonce was used for another ticket.
    NonceUsed,
}

/// Result of undoing a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// It is undone, by this call or by an earlier one.
    Done(Box<Scan>),
    /// There is no such scan.
    NotFound,
    /// The scan was refused: nobody passed.
    Refused,
    /// The guest has left since; the exit must be undone first.
    ExitFollows,
}

/// Which scans to list; an empty filter means all.
#[derive(Debug, Clone, Default)]
pub struct ScanFilter {
    /// Only scans with this result.
    pub result: Option<ScanResult>,
    /// Only scans at this gate.
    pub gate: Option<GateId>,
    /// Only scans of this key.
    pub device: Option<KeyId>,
    /// Only scans of this ticket.
    pub ticket: Option<TicketId>,
    /// Only scans at this moment or later.
    pub from: Option<Timestamp>,
    /// Only scans before this moment.
    pub to: Option<Timestamp>,
}
