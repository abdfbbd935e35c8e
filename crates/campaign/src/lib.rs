//! Campaigns: the room.
//!
//! ```text
//!   start ──▶ job `campaign` ──feed──▶ jobs `message` ──permits──▶ claim ──▶ channel.send ──▶ record
//!   (running)  queue `contracts`       queue `messages`            (synced)                   (synced)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `accounts.rs`, `campaigns.rs`, `create.rs` | the verbs of accounts and campaigns: make, read, list, change, delete |
//! | `moves.rs` | start, schedule, pause, resume, cancel; retry, settle |
//! | `import.rs`, `import/` | recipients from files, lists and guests |
//! | `recipients.rs`, `suppressible.rs` | recipients and suppressed addresses |
//! | `trial.rs`, `trial/` | validate, preview, test messages |
//! | `report.rs` | the report, and `report.csv` |
//! | `receipts.rs`, `unsubscribe.rs` | what comes back: receipts of providers, clicks of people |
//! | `jobs/`, `feed.rs`, `send.rs` | the two jobs: feeding a campaign, sending one message |
//! | `share.rs` | the message slots of a worker, shared among accounts |
//! | `snapshot.rs`, `commits.rs` | campaigns as jobs read them; many claims and records in one transaction |
//! | `speed.rs` | how fast a campaign is, for its estimate |
//! | `asks.rs`, `hours.rs`, `pace/` | the permits of a message; quiet hours, warm-up and estimates: pure |
//! | `history.rs`, `last_check.rs` | the ledger as the history of limits; the check before the first byte leaves |
//! | `content.rs`, `content/`, `texts.rs` | the message of one recipient, and the ticket in it |
//! | `aftermath.rs`, `rules.rs` | what follows from an outcome; campaigns that pause by themselves |
//! | `reconcile.rs` | what processes that died have left behind |
//! | `counts.rs` | what metrics count |
//! | `provider.rs`, `values.rs`, `answers.rs`, `error.rs` | questions to channels, rules of values, records as the API tells them, errors |
//!
//! [`Campaigns`] is the one type that callers hold. This crate must never name routes or statuses of our own API.

mod accounts;
mod aftermath;
mod answers;
mod asks;
mod campaigns;
mod commits;
mod content;
mod counts;
mod create;
mod error;
mod feed;
mod history;
mod hours;
mod import;
mod jobs;
mod last_check;
mod moves;
pub mod pace;
mod provider;
mod receipts;
mod recipients;
mod reconcile;
mod report;
mod rules;
mod send;
mod share;
mod snapshot;
mod speed;
mod suppressible;
mod texts;
mod trial;
mod unsubscribe;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
pub use stampede_audience::{Charset, Delimiter, Format, RecipientRow};
use stampede_broker::{Broker, Queue, Work};
use stampede_channel::Channels;
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{Claim, Claimed, RunResult, Store};
use stampede_telemetry::Metrics;
use stampede_ticketing::Ticketing;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::accounts::{
    AccountChange, AccountChanged, AccountDeleted, AccountMade, MOST_ACCOUNTS, NewAccount,
};
pub use self::campaigns::{CampaignEdit, Deleted, Edited};
use self::commits::Commits;
pub use self::create::{Created, MOST_ATTEMPTS, NewCampaign, USUAL_ATTEMPTS, field_names};
pub use self::error::{Error, Mistake};
pub use self::import::{Guests, ImportFile, Imported, MOST_RECIPIENTS, Purpose};
pub use self::jobs::feed_campaign::FeedCampaign;
pub use self::jobs::send_message::SendMessage;
pub use self::moves::{Moved, Paused, Settled, UnknownAction, Which};
pub use self::receipts::{Hook, Received};
pub use self::recipients::{MOST_SUPPRESSIONS, NewSuppressions, Suppressed};
pub use self::reconcile::{Reconciled, Reconciler};
pub use self::report::CsvPieces;
use self::share::Shares;
use self::snapshot::Snapshots;
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
    /// The address under which people reach this server, without a slash at its end: for links in messages. `None`: messages
    /// have none.
    pub public_url: Option<String>,
    /// Where messages and receipts are counted.
    pub metrics: Metrics,
}

/// Campaigns. Cheap to clone; all clones are the same.
///
/// [`Campaigns::open`] starts tasks in the background; [`Campaigns::stop`] returns when all of them have ended.
#[derive(Clone)]
pub struct Campaigns {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    broker: Broker,
    ticketing: Ticketing,
    channels: Channels,
    public_url: Option<String>,
    metrics: Metrics,
    /// The queue of feeders.
    contracts: Queue,
    /// The queue of messages.
    messages: Queue,
    snapshots: Snapshots,
    shares: Shares,
    claims: Commits<Claim, Claimed>,
    results: Commits<RunResult, bool>,
    /// Messages that are being sent, and looks at failures.
    runs: TaskTracker,
    /// Campaigns whose failures are being looked at, and whether another look is asked for.
    looks: Mutex<HashMap<CampaignId, bool>>,
    /// Limits that were told which messages have left.
    told: history::Told,
    /// This process ends.
    stop: CancellationToken,
}

impl Campaigns {
    /// Opens the queues, and starts the tasks that commit.
    pub async fn open(parts: Parts) -> Result<Self, stampede_broker::Error> {
        let Parts { store, broker, ticketing, channels, public_url, metrics } = parts;
        let contracts = broker.queue(FeedCampaign::QUEUE).await?;
        let messages = broker.queue(SendMessage::QUEUE).await?;
        let claiming = store.clone();
        let claims = Commits::start(move |claims: Vec<Claim>| {
            let store = claiming.clone();
            async move { store.claim_recipients(&claims, now()).await }
        });
        let recording = store.clone();
        let results = Commits::start(move |results: Vec<RunResult>| {
            let store = recording.clone();
            async move { store.record_runs(&results, now()).await }
        });
        let shared = Shared {
            snapshots: Snapshots::new(store.clone()),
            shares: Shares::new(store.clone()),
            store,
            broker,
            ticketing,
            channels,
            public_url,
            metrics,
            contracts,
            messages,
            claims,
            results,
            runs: TaskTracker::new(),
            looks: Mutex::default(),
            told: history::Told::default(),
            stop: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Waits until every message that is being sent is recorded, and ends the background tasks. To be called when no job runs
    /// any more.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.runs.close();
        self.shared.runs.wait().await;
        self.shared.claims.stop().await;
        self.shared.results.stop().await;
    }
}

/// The present, as precise as the store keeps it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
