//! Check-in: which ticket is let in, where, when and how often.
//!
//! A list says which tickets it is for and how often each may enter. The state of a ticket on a list is two
//! counters, so that it does not depend on the order in which offline scans arrive:
//!
//! ```text
//!   entry ──▶ entered + 1     exit ──▶ exited + 1     undo ──▶ the same counter − 1
//!
//!   used entries = entered            (a list without re-entry)
//!                = entered − exited   (a list with re-entry: an exit gives the entry back)
//!   inside       = entered − exited > 0
//! ```
//!
//! [`decide`] is the one place that says whether a scan admits. It knows no database and no clock.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BatchId, EventId, GateId, ListId, TicketStatus, Timestamp};

/// How long a device may undo its own scan.
pub const UNDO_PERIOD: Duration = Duration::from_secs(15 * 60);

/// Which tickets a list lets in, when and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRules {
    /// The list's name.
    pub name: String,
    /// From when it admits; `None`: always.
    pub opens_at: Option<Timestamp>,
    /// Until when it admits; `None`: for ever.
    pub closes_at: Option<Timestamp>,
    /// How many times a ticket may enter; 0: as often as it likes.
    pub entries: u32,
    /// Whether an exit gives the entry back.
    pub reentry: bool,
    /// Only tickets of these orders.
    pub batches: Option<Vec<BatchId>>,
    /// Only tickets whose seat matches one of these patterns; `*` stands for any text.
    pub seats: Option<Vec<String>>,
}

impl AdmissionRules {
    /// The rules of an event's built-in list: all tickets, at any time, once.
    pub fn main() -> Self {
        Self {
            name: "Main".to_owned(),
            opens_at: None,
            closes_at: None,
            entries: 1,
            reentry: false,
            batches: None,
            seats: None,
        }
    }

    /// Whether a ticket of this order and seat is on the list.
    pub fn includes(&self, batch: BatchId, seat: Option<&str>) -> bool {
        self.membership()(batch, seat)
    }

    /// Decides for many tickets: [`includes`](Self::includes) with the patterns read once.
    pub fn membership(&self) -> impl Fn(BatchId, Option<&str>) -> bool {
        let batches: Option<HashSet<BatchId>> =
            self.batches.as_ref().map(|batches| batches.iter().copied().collect());
        let patterns: Option<Vec<Vec<char>>> =
            self.seats.as_ref().map(|seats| seats.iter().map(|seat| lower(seat)).collect());
        move |batch, seat| {
            batches.as_ref().is_none_or(|batches| batches.contains(&batch))
                && patterns.as_ref().is_none_or(|patterns| {
                    let seat = lower(seat.unwrap_or_default());
                    patterns.iter().any(|pattern| matches(pattern, &seat))
                })
        }
    }

    /// Whether every ticket of the event is on the list.
    pub fn includes_all(&self) -> bool {
        self.batches.is_none() && self.seats.is_none()
    }

    /// How many entries the ticket has used.
    pub fn used(&self, state: Admission) -> u32 {
        match self.reentry {
            true => state.entered.saturating_sub(state.exited),
            false => state.entered,
        }
    }

    /// Whether the ticket has no entry left.
    pub fn is_used_up(&self, state: Admission) -> bool {
        self.entries > 0 && self.used(state) >= self.entries
    }
}

/// A check-in list of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckInList {
    /// Names the list.
    pub id: ListId,
    /// The event.
    pub event_id: EventId,
    /// What it admits.
    pub rules: AdmissionRules,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A gate of an event: an entrance that people know by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Names the gate.
    pub id: GateId,
    /// The event.
    pub event_id: EventId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; its version.
    pub updated_at: Timestamp,
}

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScanKind {
    /// A guest comes in.
    Entry,
    /// A guest goes out.
    Exit,
}

impl ScanKind {
    /// The word used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Exit => "exit",
        }
    }
}

impl FromStr for ScanKind {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "entry" => Ok(Self::Entry),
            "exit" => Ok(Self::Exit),
            _ => Err("must be entry or exit"),
        }
    }
}

/// The result of a scan. The words are part of the API.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ScanResult {
    /// The guest may pass.
    Ok,
    /// The ticket has no entry left.
    AlreadyRedeemed,
    /// The ticket was withdrawn.
    Void,
    /// A newer ticket was issued in its place.
    Superseded,
    /// The key that signed the ticket was revoked.
    RevokedKey,
    /// The signature is wrong.
    Forged,
    /// Not a ticket at all.
    Malformed,
    /// A ticket of another event.
    WrongEvent,
    /// The list is not for this ticket.
    NotOnList,
    /// The list is not open yet.
    NotYet,
    /// The list is closed.
    Expired,
    /// The organiser blocked the ticket.
    Blocked,
    /// No such ticket, event, key or version.
    Unknown,
    /// An exit of a ticket whose guest is not inside.
    NotInside,
}

impl ScanResult {
    /// All results.
    pub const ALL: [Self; 14] = [
        Self::Ok,
        Self::AlreadyRedeemed,
        Self::Void,
        Self::Superseded,
        Self::RevokedKey,
        Self::Forged,
        Self::Malformed,
        Self::WrongEvent,
        Self::NotOnList,
        Self::NotYet,
        Self::Expired,
        Self::Blocked,
        Self::Unknown,
        Self::NotInside,
    ];

    /// The word used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::AlreadyRedeemed => "already_redeemed",
            Self::Void => "void",
            Self::Superseded => "superseded",
            Self::RevokedKey => "revoked_key",
            Self::Forged => "forged",
            Self::Malformed => "malformed",
            Self::WrongEvent => "wrong_event",
            Self::NotOnList => "not_on_list",
            Self::NotYet => "not_yet",
            Self::Expired => "expired",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
            Self::NotInside => "not_inside",
        }
    }
}

impl fmt::Display for ScanResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ScanResult {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|result| result.as_str() == word)
            .ok_or("must be ok or the reason of a refusal, such as already_redeemed")
    }
}

/// The state of one ticket on one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission {
    /// Entries that were not undone.
    pub entered: u32,
    /// Exits that were not undone. Offline exits may arrive before their entries.
    pub exited: u32,
}

impl Admission {
    /// Whether a guest with this ticket is inside.
    pub fn is_inside(self) -> bool {
        self.entered > self.exited
    }

    /// The state after a scan that let a guest pass.
    pub fn passed(self, kind: ScanKind) -> Self {
        match kind {
            ScanKind::Entry => Self { entered: self.entered.saturating_add(1), ..self },
            ScanKind::Exit => Self { exited: self.exited.saturating_add(1), ..self },
        }
    }

    /// The state without one such scan; `None` if an exit would be left without its entry.
    pub fn undone(self, kind: ScanKind) -> Option<Self> {
        match kind {
            ScanKind::Entry if self.entered <= self.exited => None,
            ScanKind::Entry => Some(Self { entered: self.entered.saturating_sub(1), ..self }),
            ScanKind::Exit => Some(Self { exited: self.exited.saturating_sub(1), ..self }),
        }
    }
}

/// A ticket as it was presented, and as its record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presented<'a> {
    /// The record's status.
    pub status: TicketStatus,
    /// The generation that admits.
    pub generation: u32,
    /// The generation that was shown; `None` if the ticket was named by its id.
    pub shown_generation: Option<u32>,
    /// Whether the key that signed what was shown is revoked.
    pub key_is_revoked: bool,
    /// Whether the organiser blocked the ticket.
    pub is_blocked: bool,
    /// The ticket's order.
    pub batch: BatchId,
    /// The ticket's seat.
    pub seat: Option<&'a str>,
}

/// When and in which direction a ticket is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion {
    /// The direction.
    pub kind: ScanKind,
    /// The moment of the scan.
    pub at: Timestamp,
}

/// Whether a genuine ticket may pass; `None`: the ticket was deleted.
///
/// A guest who is inside may leave, even if the ticket was withdrawn or the list is closed meanwhile.
pub fn decide(
    ticket: Option<Presented<'_>>,
    rules: &AdmissionRules,
    state: Admission,
    occasion: Occasion,
) -> ScanResult {
    let Some(ticket) = ticket else { return ScanResult::Unknown };
    if occasion.kind == ScanKind::Exit {
        return if state.is_inside() { ScanResult::Ok } else { ScanResult::NotInside };
    }
    if ticket.status == TicketStatus::Void {
        ScanResult::Void
    } else if ticket.key_is_revoked {
        ScanResult::RevokedKey
    } else if ticket.shown_generation.is_some_and(|shown| shown != ticket.generation) {
        ScanResult::Superseded
    } else if ticket.is_blocked {
        ScanResult::Blocked
    } else if !rules.includes(ticket.batch, ticket.seat) {
        ScanResult::NotOnList
    } else if rules.opens_at.is_some_and(|opens| occasion.at < opens) {
        ScanResult::NotYet
    } else if rules.closes_at.is_some_and(|closes| occasion.at >= closes) {
        ScanResult::Expired
    } else if rules.is_used_up(state) {
        ScanResult::AlreadyRedeemed
    } else {
        ScanResult::Ok
    }
}

fn lower(text: &str) -> Vec<char> {
    text.trim().chars().flat_map(char::to_lowercase).collect()
}

/// Whether the whole text matches the pattern; `*` stands for any text.
fn matches(pattern: &[char], text: &[char]) -> bool {
    // Where to go on if the text after the last `*` does not fit: one character later.
    let (mut p, mut t, mut last) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            last = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star, from)) = last {
            last = Some((star, from + 1));
            (p, t) = (star + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests;
