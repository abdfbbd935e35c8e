//! Channels: one message to one recipient through one account, and what came of it.
//!
//! ```text
//!   Account (settings + credentials) ──open──▶ Sender ──send(Message)──▶ Outcome        (a closed set: model::campaign::Outcome)
//!   provider ──▶ receipts: signature verified, body read ──▶ Vec<Notice>
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `message.rs`, `account.rs` | what is sent, and by whom |
//! | `channels.rs` | the senders of all accounts, each kept as long as its account has the same version |
//! | `checked.rs` | what a check of an account found |
//! | `settings.rs` | settings and credentials read, all mistakes at once |
//! | `limits.rs` | how fast and how long messages of a channel may be |
//! | `notice.rs`, `receipts.rs` | what providers tell by themselves |
//! | `answers.rs` | which outcome follows if nobody answers, or somebody else than the provider |
//! | `holds.rs` | pauses that grow while a provider keeps asking for them |
//! | `proof.rs` | secrets and signatures compared in constant time |
//! | `secrets.rs` | texts of providers without the secrets that they say back |
//! | `words.rs` | messages that mean stop |
//! | `console.rs`, `webhook.rs`, `smtp.rs`, `telegram.rs`, `whatsapp.rs`, `sms.rs` | one channel each |
//!
//! A channel knows its provider: how a message looks, which answer means what, how receipts are signed. It knows nothing of
//! campaigns, ledgers and limits, keeps no records and retries nothing. Which outcome follows from an answer is a pure function
//! of each channel, tested row by row.
//!
//! Adding a channel? A file here, an arm wherever [`stampede_model::campaign::Channel`] is matched, and its fake in testkit.

mod account;
mod answers;
mod channels;
mod checked;
mod console;
mod holds;
mod limits;
mod message;
mod notice;
mod proof;
mod receipts;
mod secrets;
mod settings;
mod sms;
mod smtp;
mod telegram;
mod webhook;
mod whatsapp;
mod words;

pub use self::account::{Account, Config};
pub use self::channels::{Channels, TimeLimits};
pub use self::checked::Checked;
pub use self::limits::{
    Limits, Longest, Unit, is_idempotent, limits, longest, most_at_once, pair_limits,
};
pub use self::message::{Attachment, Message, WhatsappTemplate};
pub use self::notice::{Incoming, Notice, Received, Refused, Status};
pub use self::receipts::{challenge, receipts};
pub use self::settings::{Mistake, read_settings};
pub use self::smtp::is_mailbox_full;
pub use stampede_outbound::{Allowed, AtOnce, BeforeWrite};
