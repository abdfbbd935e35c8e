//! How long reads and transactions take, for metrics.

use std::sync::Arc;

use stampede_telemetry::{Histogram, Metrics, StoreWork};

use super::Sql;

/// The durations of reads and of transactions that write, waiting for a connection and for the turn to write included.
#[derive(Debug)]
pub(super) struct Seconds {
    pub(super) read: Arc<Histogram>,
    pub(super) write: Arc<Histogram>,
}

impl Seconds {
    pub(super) fn of(metrics: &Metrics) -> Self {
        Self { read: metrics.store(StoreWork::Read), write: metrics.store(StoreWork::Write) }
    }
}

impl Sql {
    /// The same database, whose work is counted there.
    pub(crate) fn counted_by(self, metrics: &Metrics) -> Self {
        Self { seconds: Seconds::of(metrics), ..self }
    }
}
