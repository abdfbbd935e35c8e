//! Campaigns: the room.
//!
//! ```text
//!   start ──▶ job `campaign` ──feed──▶ jobs `message` ──permits──▶ claim ──▶ channel.send ──▶ record
//!   (running)  queue `contracts`       queue `messages`            (synced)                   (synced)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `accounts.rs`, `campaigns.rs` | the verbs of accounts and campaigns: make, read, list, change, delete |
//! | `moves.rs` | start, schedule, pause, resume, cancel; retry, settle |
//! | `import.rs` | recipients from files, lists and guests |
//! | `recipients.rs` | recipients and suppressed addresses |
//! | `trial.rs` | validate, preview, test messages |
//! | `report.rs` | the report, and `report.csv` |
//! | `receipts.rs`, `unsubscribe.rs` | what comes back: receipts of providers, clicks of people |
//!
//! [`Campaigns`] is the one type that callers hold. This crate must never name routes or statuses of our own API.

mod accounts;
mod campaigns;
mod error;
mod import;
mod moves;
mod receipts;
mod recipients;
mod report;
mod trial;
mod unsubscribe;

use std::sync::Arc;

use stampede_broker::Broker;
use stampede_channel::Channels;
use stampede_store::Store;
use stampede_ticketing::Ticketing;

pub use self::accounts::{
    AccountChange, AccountChanged, AccountDeleted, AccountMade, MOST_ACCOUNTS, NewAccount,
};
pub use self::campaigns::{
    CampaignEdit, Created, Deleted, Edited, MOST_ATTEMPTS, NewCampaign, RecipientRow,
};
pub use self::error::{Error, Mistake};
pub use self::import::{Guests, ImportFile, Imported, MOST_RECIPIENTS, Purpose};
pub use self::moves::{Moved, Paused, Settled, UnknownAction, Which};
pub use self::receipts::Received;
pub use self::recipients::{MOST_SUPPRESSIONS, NewSuppressions, Suppressed};
pub use self::report::CsvPieces;
pub use self::trial::{MOST_TESTS, Previewed, Tested};

/// What campaigns work with. Cheap to clone.
#[derive(Clone)]
pub struct Parts {
    /// Records.
    pub store: Store,
    /// Redis.
    pub broker: Broker,
    /// Tickets, whose PDFs are attached or linked.
    pub ticketing: Ticketing,
    /// Channels.
    pub channels: Channels,
    /// The address under which people reach this server, without a slash at its end: for links in messages.
    pub public_url: Option<String>,
}

/// Campaigns. Cheap to clone; all clones are the same.
///
/// [`Campaigns::start_up`] starts tasks in the background; [`Campaigns::stop`] returns when all of them have ended.
#[derive(Clone)]
pub struct Campaigns {
    shared: Arc<Shared>,
}

struct Shared {
    parts: Parts,
}
