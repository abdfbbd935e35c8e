//! Metrics: what the processes of a node count, and the text in which Prometheus reads it.
//!
//! ```text
//!   worker ── counts ──▶ Metrics ── Snapshot, every second ──▶ pipe ─┐
//!   worker ── counts ──▶ Metrics ── Snapshot ────────────────▶ pipe ─┤ Told: adds the difference
//!                                                                    ▼
//!   node ──── counts ──────────────────────────────────────────▶ Metrics ──▶ Registry ──▶ text of GET /metrics
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `table.rs` | THE TABLE: every metric, its labels and its help |
//! | `declare.rs` | the macro that reads the table |
//! | `jobs.rs`, `events.rs`, `levels.rs` | what other crates call: runs of jobs, what happens, what is so now |
//! | `values.rs` | counters, gauges and histograms: atomics, without a lock |
//! | `family.rs`, `labels.rs` | a metric with its label values; which values there may be |
//! | `told.rs` | what a worker tells its node, and how the node adds it up |
//! | `process.rs` | what the system knows about this process |
//!
//! The registry is passed in: nothing here is global. A label has a value of a closed set, or a name that an administrator or
//! a developer chose, of which there are limited numbers ([`labels`]). No label names a worker: a worker that dies leaves its
//! counts, and its successor adds to them.
//!
//! [`labels`]: crate::LabelValues

mod declare;
mod events;
mod family;
mod jobs;
mod labels;
mod levels;
mod process;
mod table;
#[cfg(test)]
mod tests;
mod told;
mod values;

use std::sync::Arc;

pub use prometheus::Registry;

pub use self::events::{Attempt, Part, Printed, RedisSeen, Restart, StoreWork};
pub use self::family::About;
pub use self::jobs::{JobEnd, JobMetrics};
pub use self::labels::LabelValues;
pub use self::levels::{CampaignLevels, ClusterLevels, PoolMetrics, PoolTotals, QueueLevels};
use self::table::Table;
pub use self::told::{Snapshot, TOLD, Told};
pub use self::values::Histogram;

/// The media type of [`text`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of a process. Cheap to clone; clones count together.
///
/// [`Metrics::default`] counts for nobody: in tests, and in commands that run for a moment.
#[derive(Clone, Default)]
pub struct Metrics {
    table: Arc<Table>,
}

/// Why metrics cannot be registered or written.
#[derive(Debug)]
pub struct Error(String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<prometheus::Error> for Error {
    fn from(error: prometheus::Error) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Metrics that this registry shows. A metric is shown as soon as its source has begun to count.
    pub fn register(registry: &Registry) -> Result<Self, Error> {
        let metrics = Self::default();
        metrics.table.register(registry)?;
        Ok(metrics)
    }

    /// The table, as the document shows it.
    pub fn about() -> Vec<&'static About> {
        Table::default().all().iter().map(|family| family.about()).collect()
    }
}

/// Everything that the registry knows, in the text format of Prometheus.
pub fn text(registry: &Registry) -> Result<String, Error> {
    Ok(prometheus::TextEncoder::new().encode_to_string(&registry.gather())?)
}
