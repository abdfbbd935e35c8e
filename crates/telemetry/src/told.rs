//! What a worker tells its node: all that it has counted since it began. The node adds what is new. A line that is lost is made up
//! for by the next one, and what a dead worker has told stays.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Metrics;

/// The beginning of the line, on the pipe to the supervisor, that carries a [`Snapshot`].
pub const TOLD: &str = "metrics ";

/// What a process has counted since it began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot(Vec<Series>);

/// One metric with one combination of label values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    #[serde(rename = "n")]
    pub(crate) name: String,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    #[serde(rename = "v")]
    pub(crate) amount: Amount,
}

/// How much was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Amount {
    /// Of a counter.
    #[serde(rename = "c")]
    Count(u64),
    /// Of a gauge.
    #[serde(rename = "g")]
    Level(f64),
    /// Of a histogram.
    #[serde(rename = "h")]
    Times {
        /// How many durations in each bucket.
        #[serde(rename = "b")]
        counts: Vec<u64>,
        /// All of them together.
        #[serde(rename = "s")]
        nanos: u64,
    },
}

impl Snapshot {
    /// The line that a worker writes.
    pub fn line(&self) -> String {
        // Names and numbers always serialise.
        format!("{TOLD}{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// What a line says; `None`: it says nothing about metrics, or cannot be read.
    pub fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_prefix(TOLD)?).ok()
    }
}

impl Metrics {
    /// What this process has counted since it began. Metrics that only nodes count are not in it.
    pub fn snapshot(&self) -> Snapshot {
        let mut told = Vec::new();
        let of_workers = self.table.all().into_iter().filter(|family| family.about().is_told);
        of_workers.for_each(|family| family.tell(&mut told));
        told.sort_by(|one, other| (&one.name, &one.labels).cmp(&(&other.name, &other.labels)));
        Snapshot(told)
    }

    /// The beginning of what one process of a worker tells.
    pub fn listen(&self) -> Told {
        Told { metrics: self.clone(), last: HashMap::new() }
    }
}

/// What one process of a worker has told so far. Dropped when the process has ended: its counts stay, its levels do not.
#[derive(Debug)]
pub struct Told {
    metrics: Metrics,
    last: HashMap<(String, Vec<String>), Amount>,
}

impl Told {
    /// Adds what is new. Metrics that this program does not know are left out: the worker may be of another version.
    pub fn hear(&mut self, snapshot: Snapshot) {
        for Series { name, labels, amount } in snapshot.0 {
            let Some(family) = self.metrics.table.named(&name) else { continue };
            if !family.about().is_told {
                continue;
            }
            let key = (name, labels);
            family.add_since(&key.1, self.last.get(&key), &amount);
            self.last.insert(key, amount);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        for ((name, labels), amount) in &self.last {
            if let (Amount::Level(_), Some(family)) = (amount, self.metrics.table.named(name)) {
                family.add_since(labels, Some(amount), &Amount::Level(0.0));
            }
        }
    }
}
