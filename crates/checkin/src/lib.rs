//! Check-in: a ticket is shown at a door, and a guest is let in or not.
//!
//! ```text
//!   redeem ──▶ present (signature) ──▶ commits (groups) ──▶ store: decide + record ──▶ answer
//!   upload ──▶ the same, for scans that a device decided without a network
//!   bundle ──▶ what such a device needs
//! ```
//!
//! | file | verb |
//! |---|---|
//! | `redeem.rs` | one scan, with the server's decision |
//! | `upload.rs` | scans that a device decided without a network |
//! | `undo.rs` | a scan is undone |
//! | `present.rs` | what was shown: its event, its signature |
//! | `commits.rs` | scans that arrive at the same time share one transaction |
//! | `bundle.rs` | everything that a scanner needs, or what has changed |
//! | `statistics.rs`, `log.rs` | questions of organisers |
//! | `setup.rs`, `devices.rs` | lists, gates, devices and their enrolment |
//! | `blocks.rs` | tickets that are refused until the organiser lifts the block |
//! | `answers.rs` | records as the API tells them |
//!
//! [`CheckIn`] is the one type that callers hold. Whether a ticket is let in is decided by
//! `stampede_model::decide`, inside the store's transaction. This crate must never name HTTP, and knows nothing of
//! PDFs.

mod answers;
mod blocks;
mod bundle;
mod commits;
mod devices;
mod error;
mod log;
mod present;
mod redeem;
mod setup;
mod statistics;
mod test_hooks;
mod undo;
mod upload;

pub use bundle::BundleRead;
pub use devices::{DeviceRequest, Enrolment, NewDeviceResult};
pub use error::Error;
pub use present::{Door, ShownTicket};
pub use redeem::{Refused, ScanRequest};
pub use setup::{ListChange, Written};
pub use undo::{UndoRequest, Undoing, WhichScan};
pub use upload::{MAX_UPLOAD, OfflineScan, Upload};

use std::sync::Arc;

use stampede_model::Timestamp;
use stampede_store::Store;

use commits::Commits;
use devices::WrongCodes;
use present::Doors;

/// Check-in. Cheap to clone; all clones are the same.
///
/// [`CheckIn::start`] starts a task that commits scans; [`CheckIn::stop`] returns when it has ended.
#[derive(Clone)]
pub struct CheckIn {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) commits: Commits,
    pub(crate) doors: Doors,
    pub(crate) wrong_codes: WrongCodes,
}

impl CheckIn {
    /// Starts the committing task.
    pub fn start(store: Store) -> Self {
        let commits = Commits::start(store.clone());
        let (doors, wrong_codes) = (Doors::default(), WrongCodes::default());
        Self { shared: Arc::new(Shared { store, commits, doors, wrong_codes }) }
    }

    /// Ends the committing task when all scans that wait are committed.
    pub async fn stop(&self) {
        self.shared.commits.stop().await;
    }
}

/// The present, as precise as the store keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
