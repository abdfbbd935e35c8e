//! Tickets and the orders they come from.
//!
//! ```text
//!              render + put + commit
//!   pending ───────────────────────────▶ completed
//!      │  ▲ ▲        PATCH, stale file ──────┘ │
//!      │  │ └──────── retried, PATCH ── failed  │
//!      └──┼──── attempts exhausted ────────▲    │
//!         └ (never left) void ◀── PATCH ────────┘ from any state
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{BatchId, EventId, Money, TicketId, Timestamp};

/// Where a ticket stands. The words are those of seed 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TicketStatus {
    /// Ordered, its PDF is not made yet (or has to be made anew).
    Pending,
    /// Its PDF is ready.
    Completed,
    /// Making its PDF failed for good; `error` says why.
    Failed,
    /// Withdrawn: no PDF is made or handed out any more.
    Void,
}

impl TicketStatus {
    /// The word used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Void => "void",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Pending, Self::Completed, Self::Failed, Self::Void]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// Who a ticket is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Holder {
    /// Printed on the ticket.
    pub name: String,
    /// Where it may be sent.
    pub email: Option<String>,
    /// The telephone number, as it was given: a campaign reads it with the country that it is for.
    pub phone: Option<String>,
    /// The chat of Telegram, as it was given.
    pub chat: Option<String>,
    /// Seat, row or class; `VIP` is made first.
    pub seat: Option<String>,
}

/// One ticket.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticket {
    /// Names the ticket and its job.
    pub id: TicketId,
    /// The event it admits to (`target` on the wire).
    pub event_id: EventId,
    /// The order it came with.
    pub batch_id: BatchId,
    /// The user it belongs to.
    pub owner: String,
    /// 1 for the first ticket of its order.
    pub index: u32,
    /// Its number within the event: 1, 2, 3, … without gaps. The store gives it out when the order is
    /// placed; 0 before.
    pub serial: u32,
    /// 1 at first, one more whenever older paper must not be accepted any more: when another name or
    /// seat is printed on it, and when it is issued anew because it was lost or stolen.
    pub generation: u32,
    /// Number of the event's key that signs its token; the store gives it out with the serial.
    pub signing_key: Option<u32>,
    /// Who it is for.
    pub holder: Holder,
    /// What it cost.
    pub price: Option<Money>,
    /// Where it stands.
    pub status: TicketStatus,
    /// Why making it failed.
    pub error: Option<String>,
    /// The PDF that was made last.
    pub pdf: Option<Pdf>,
    /// The worker that made it.
    pub processed_by: Option<String>,
    /// When it was made.
    pub processed_at: Option<Timestamp>,
    /// When it was ordered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What is known of a PDF in the files: enough to notice that it is stale, short or damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdf {
    /// [`crate::Fingerprint`] of what it was made from, as text.
    pub fingerprint: String,
    /// Its size in bytes.
    pub size: u64,
    /// The first 128 bits of the SHA-256 of its bytes, as hexadecimal text.
    pub checksum: String,
}

impl Pdf {
    /// Describes a PDF that was made from what the fingerprint says.
    pub fn of(fingerprint: String, bytes: &[u8]) -> Self {
        Self { fingerprint, size: bytes.len() as u64, checksum: checksum(bytes) }
    }

    /// Whether these are its bytes.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && self.checksum == checksum(bytes)
    }
}

fn checksum(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..16])
}

impl Ticket {
    /// Path of the PDF below the public folder, as seed 000 has it.
    pub fn pdf_path(id: TicketId) -> String {
        format!("tickets/ticket-{id}.pdf")
    }

    /// VIP tickets are made before all others.
    pub fn is_vip(&self) -> bool {
        self.holder.seat.as_deref().is_some_and(is_vip_seat)
    }
}

/// `VIP`, `vip 3`, `VIP-A1`, but not `VIPER`.
fn is_vip_seat(seat: &str) -> bool {
    let Some(word) = seat.trim().get(..3) else { return false };
    let rest = &seat.trim()[3..];
    word.eq_ignore_ascii_case("vip") && !rest.starts_with(char::is_alphabetic)
}

/// A checked order: everything needed to write its batch and tickets.
#[derive(Debug, Clone)]
pub struct Order {
    /// The batch to be made.
    pub batch_id: BatchId,
    /// The event.
    pub event_id: EventId,
    /// Who orders.
    pub owner: String,
    /// The tickets, in order.
    pub tickets: Vec<Ticket>,
    /// A second order of the same owner with the same key is the same order.
    pub idempotency: Option<Idempotency>,
    /// When it was placed.
    pub created_at: Timestamp,
}

impl AsRef<[Ticket]> for Order {
    fn as_ref(&self) -> &[Ticket] {
        &self.tickets
    }
}

/// How a client marks an order that it may send twice, and how a different one is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// Chosen by the client; unique among the orders of one owner.
    pub key: String,
    /// Hash of what was asked: the same key with another request is a mistake of the client.
    pub request: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pdf_knows_its_own_bytes() {
        let pdf = Pdf::of("f".into(), b"%PDF-1.7");
        assert_eq!((pdf.size, pdf.checksum.len()), (8, 32));
        assert!(pdf.matches(b"%PDF-1.7"));
        for other in [b"%PDF-1.6".as_slice(), b"%PDF-1.", b""] {
            assert!(!pdf.matches(other), "{other:?}");
        }
    }

    #[test]
    fn vip_is_a_word_of_its_own() {
        for (seat, vip) in [
            ("VIP", true),
            (" vip ", true),
            ("VIP-3", true),
            ("Vip 12", true),
            ("VIPER", false),
            ("A-12", false),
            ("", false),
            ("ВИП", false),
        ] {
            assert_eq!(is_vip_seat(seat), vip, "{seat}");
        }
    }

    #[test]
    fn status_words_survive_a_round_trip() {
        for word in ["pending", "completed", "failed", "void"] {
            assert_eq!(TicketStatus::from_word(word).unwrap().as_str(), word);
        }
        assert_eq!(TicketStatus::from_word("ready"), None);
    }
}
