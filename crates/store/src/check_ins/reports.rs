//! What scanners and organisers read.

use stampede_model::{
    Admission, BatchId, CheckInList, Gate, GateId, ListId, PublicKey, ScanKind, ScanResult,
    Timestamp,
};

/// A ticket that scanners must know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketMark {
    /// Its number within the event.
    pub serial: u32,
    /// The generation that admits; `None`: none does, because the ticket is void or deleted.
    pub generation: Option<u32>,
}

/// The state of a ticket on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionMark {
    /// The list.
    pub list: ListId,
    /// The ticket's number.
    pub serial: u32,
    /// The state.
    pub state: Admission,
}

/// What a scanner needs to work without a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Everything up to this change is in it.
    pub seq: u64,
    /// Whether it holds everything, not only what changed.
    pub full: bool,
    /// The largest number of a ticket.
    pub last_serial: u32,
    /// The keys that sign tickets.
    pub keys: Vec<PublicKey>,
    /// The lists, the built-in one first.
    pub lists: Vec<CheckInList>,
    /// The gates.
    pub gates: Vec<Gate>,
    /// Tickets that are not of the first generation, void or deleted; by number.
    pub tickets: Vec<TicketMark>,
    /// Numbers of all blocked tickets, also if only changes were asked for.
    pub blocked: Vec<u32>,
    /// Tickets that have been on a list; by list and number.
    pub admissions: Vec<AdmissionMark>,
    /// Number, order and seat of every ticket; only if a list is for some of them.
    pub seats: Vec<(u32, BatchId, Option<String>)>,
}

/// Scans in one minute at one gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// The gate.
    pub gate: Option<GateId>,
    /// The beginning of the minute.
    pub minute: Timestamp,
    /// Guests who came in.
    pub entries: u64,
    /// Guests who went out.
    pub exits: u64,
}

/// All scans at one gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateFigures {
    /// The gate; `None`: scans without a gate.
    pub gate: Option<GateId>,
    /// Guests who came in.
    pub entries: u64,
    /// Guests who went out.
    pub exits: u64,
    /// Scans that were refused.
    pub refused: u64,
    /// The last scan.
    pub last_scan_at: Option<Timestamp>,
}

/// The scans of an event, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Tickets that are not void.
    pub sold: u64,
    /// Guests inside.
    pub inside: u64,
    /// Conflicts that nobody has undone.
    pub conflicts: u64,
    /// Scans by direction and result that were not undone: let through, and refused.
    pub results: Vec<(ScanKind, ScanResult, bool, u64)>,
    /// By gate.
    pub gates: Vec<GateFigures>,
    /// By minute and gate.
    pub minutes: Vec<Minute>,
}
