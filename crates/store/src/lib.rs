//! Records: events with the keys that sign their tickets, batches, tickets, check-ins, templates, API keys, webhooks,
//! campaigns.
//!
//! The store is the source of truth: jobs on a queue can be lost and are made again from here.
//!
//! ```text
//!   Store ── derefs to ──▶ dyn Backend = Events + Orders + Tickets + Completions + Templates
//!     │                                  + CompiledTemplates + ApiKeys + TicketKeys
//!     │                                  + CheckInSetup + Blocks + Scans + CheckInReports + Outbox
//!     │                                  + IdempotentRequests + AuditLog + Webhooks + WebhookDeliveries
//!     │                                  + Accounts + Campaigns + Audiences + Ledger + Suppressions
//!     │  vault (ticket secret)               ▲
//!     │  verification, ticket_secret         │ implements
//!     └── connect ──────────────────────▶ sql/: SQLite and PostgreSQL
//! ```
//!
//! - One file a subject holds its trait, with what every operation promises, and its results.
//! - `rules.rs` says how tickets and counters change, as pure functions.
//! - `durability.rs` says which changes survive a power cut.
//! - `vault.rs` encrypts private keys.
//! - `sql/` holds everything about SQL. No type of `sqlx` leaves it.
//!
//! This crate knows no HTTP and no queues, reads no clock (times are passed in) and no environment.
//!
//! Adding a column? Write the next migration for both databases, then change `sql/rows.rs` and the
//! statements of its table. A migration that was released is never changed, not even a comment: the
//! database keeps its checksum.

mod api_keys;
mod audit;
mod backend;
mod batches;
mod campaigns;
mod check_ins;
mod compiled_templates;
mod completions;
mod durability;
mod error;
mod events;
mod idempotent_requests;
mod limits;
mod orders;
mod outbox;
pub mod rules;
mod slices;
mod sql;
mod store;
mod templates;
mod ticket_keys;
mod ticket_secret;
mod tickets;
mod vault;
mod verification;
mod versions;
mod webhooks;

pub use api_keys::{
    ApiKey, ApiKeys, KeyEdit, KeyFilter, KeyKind, KeyRotated, KeyState, KeyUse, KeyWritten, NewKey,
};
pub use audit::{AuditEntry, AuditFilter, AuditLog, AuditOrigin, AuditOutcome, AuditSettlement};
pub use backend::{Backend, Schema};
pub use batches::{BatchFilter, Batches, Cancelled, MadeTickets};
pub use campaigns::{
    Account, AccountAtWork, AccountDeleted, AccountFilter, AccountWritten, Accounts, Arrival,
    Attempt, AttemptEffect, Audiences, BOUNCED_LATER, Blocked, CODES_REPORTED, Campaign,
    CampaignCounts, CampaignFilter, CampaignMinute, CampaignTotal, Campaigns, Claim, Claimed,
    CodeCount, FAILED_LATER, FIELD_NAMES_KEPT, Fed, Import, Imported, Known, LastAttempts, Ledger,
    Move, Moved, NewRecipient, OTHER_CODES, PastSend, PastSends, QUIET_HOURS, Receipt,
    ReceiptEffect, ReceiptStatus, Recipient, RecipientFilter, Reports, RunResult, SendFilter,
    SendScope, Settlement, Stopped, Suppression, SuppressionFilter, Suppressions, TESTS_KEPT,
    TestAttempt, TestEnd, TestLog, Wishes,
};
pub use check_ins::{
    AdmissionMark, Block, Blocks, CheckInReports, CheckInSetup, Device, Figures, GateFigures,
    Minute, NewDevice, NewScan, Offline, Recorded, Scan, ScanAnswer, ScanFilter, ScannedTicket,
    Scanner, Scans, Shown, Snapshot, TicketMark, Undo,
};
pub use compiled_templates::CompiledTemplates;
pub use completions::{Completion, Completions, Failure, GroupCommit};
pub use durability::Durability;
pub use error::Error;
pub use events::{Deleted, Events};
pub use idempotent_requests::{IdempotentRequests, RequestClaim, RequestClaimed};
pub use orders::{Orders, Placed, TicketChunks};
pub use outbox::{Outbox, OutboxRow, OutboxSize};
pub use slices::{Slice, Sorted};
pub use store::{Config, Store};
pub use templates::{NewRevision, Revised, TemplateDeleted, Templates};
pub use ticket_keys::{Revoked, Rotated, TicketKeys};
pub use tickets::{Edited, TicketEdit, TicketFilter, Tickets};
pub use vault::{SealedKey, TicketSecret, Vault};
pub use verification::Verdict;
pub use versions::Versioned;
pub use webhooks::{
    AttemptResult, DeliveryFilter, DeliveryState, Disabled, DisabledReason, NewDelivery,
    OutgoingDelivery, PendingDelivery, Redelivered, SealedDelivery, Webhook, WebhookAttempt,
    WebhookDeliveries, WebhookDelivery, WebhookFilter, WebhookWritten, Webhooks,
};

/// Result of the operations of this crate.
pub type Result<T> = std::result::Result<T, Error>;
