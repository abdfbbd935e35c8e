//! Domain values of Stampede: what an event, a ticket, a batch and a job are, and the signed token
//! that proves a ticket.
//!
//! Everything here is plain data and pure functions. Nothing in this crate reads a clock, a file,
//! the environment or the network; whoever needs the time passes it in.

mod access;
mod batch;
mod diagnostic;
mod document;
mod event;
mod id;
mod job;
mod lang;
mod money;
mod template;
mod text;
mod ticket;
mod token;

pub use access::{KeyHash, Principal, Role};
pub use batch::{Batch, BatchStatus};
pub use diagnostic::{Diagnostic, Severity};
pub use document::{Fingerprint, TicketDocument};
pub use event::{Branding, Event, EventDetails, HexColor, time_zone};
pub use id::{BatchId, ErrorId, EventId, KeyId, ParseIdError, TemplateId, TicketId};
pub use job::{Backoff, Deduplication, JobSpec, Keep, Which};
pub use lang::Lang;
pub use money::{Currency, Money, MoneyError};
pub use template::{
    FilesError, MAIN_FILE, Template, TemplateChoice, TemplateFiles, TemplateRevision,
};
pub use text::{Limit, TextError, check_email, check_text};
pub use ticket::{Holder, Idempotency, Order, Pdf, Ticket, TicketStatus};
pub use token::{Claims, KeyRing, KeyRingError, PublicKey, Refusal, Signer, Token};

/// A moment in time; stored and sent with millisecond precision.
pub use jiff::Timestamp;
