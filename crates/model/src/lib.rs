//! Domain values of Stampede: what an event, a ticket, a batch and a job are, and the signed token
//! that proves a ticket.
//!
//! Everything here is plain data and pure functions. Nothing in this crate reads a file, the environment or
//! the network. Times are passed in; only `generate()` of an id reads the clock and random numbers.

mod access;
mod batch;
pub mod campaign;
mod check_in;
mod diagnostic;
mod document;
mod event;
pub mod feed;
mod id;
mod lang;
mod money;
mod printable;
pub mod spreadsheet;
mod template;
mod text;
mod ticket;
mod token;

pub use access::{EVERYBODY, KeyHash, Principal, Role, Scope};
pub use batch::{Batch, BatchStatus};
pub use check_in::{
    Admission, AdmissionRules, CheckInList, Gate, Occasion, Presented, ScanKind, ScanResult,
    UNDO_PERIOD, decide,
};
pub use diagnostic::{Diagnostic, Severity};
pub use document::{Fingerprint, TicketDocument};
pub use event::{Branding, Event, EventDetails, HexColor, time_zone};
pub use id::{
    AuditId, BatchId, CampaignId, DeliveryId, ErrorId, EventId, FeedEventId, GateId, KeyId, ListId,
    ParseIdError, RecipientId, RunId, ScanId, TemplateId, TicketId, WebhookId,
};
pub use lang::Lang;
pub use money::{Currency, Money, MoneyError};
pub use printable::Printable;
pub use template::{
    FilesError, MAIN_FILE, Template, TemplateChoice, TemplateFiles, TemplateRevision,
};
pub use text::{Limit, TextError, check_email, check_text};
pub use ticket::{Holder, Idempotency, Order, Pdf, Ticket, TicketStatus};
pub use token::{Claims, KeyRing, KeyRingError, PublicKey, Refusal, Signed, Signer, Token};

/// A moment in time; stored and sent with millisecond precision.
pub use jiff::Timestamp;
