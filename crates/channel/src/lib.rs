//! Channels: one message to one recipient through one account, and what came of it.
//!
//! ```text
//!   Account (settings + credentials) ──open──▶ Sender ──send(Message)──▶ Outcome        (a closed set: model::campaign::Outcome)
//!   provider ──▶ receipts: signature verified, body read ──▶ Vec<Notice>
//! ```
//!
//! A channel knows its provider: how a message looks, which answer means what, how receipts are signed. It knows nothing of
//! campaigns, ledgers and limits, keeps no records and retries nothing.

mod account;
mod message;
mod notice;

pub use self::account::{Account, Config};
pub use self::message::{Attachment, Message, WhatsappTemplate};
pub use self::notice::{Incoming, Notice, Refused, Status};
