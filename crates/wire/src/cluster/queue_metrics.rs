//! A node's view of the queues its workers serve, in `queue:metrics`.

use crate::open::open_record;

open_record! {
    /// The queues together, as one node saw them.
    pub struct QueueMetrics {
        /// Jobs that could begin.
        waiting: u64 = "waiting",
        /// Jobs that run.
        active: u64 = "active",
        /// Jobs that are done and kept.
        completed: u64 = "completed",
        /// Jobs that failed and are kept.
        failed: u64 = "failed",
        /// Waiting jobs for each that runs.
        queue_pressure: f64 = "queuePressure",
        /// Waiting jobs more than at the announcement before.
        queue_growth: i64 = "queueGrowth",
        /// Workers of the node that take jobs.
        workers: u64 = "workers",
        /// The machine's load average.
        load: f64 = "load",
        /// Memory of the node and its workers in megabytes.
        mem_usage: f64 = "memUsage",
        /// Unique for every start of a node.
        incarnation: String = "incarnation",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_older_software_reads() {
        let entry = json!({
            "waiting": 5, "active": 2, "completed": 9, "failed": 1, "queuePressure": 1.5, "queueGrowth": -3,
            "workers": 2, "load": 0.5, "memUsage": 80.5, "incarnation": "i", "timestamp": 7,
        });
        let read: QueueMetrics = serde_json::from_value(entry.clone()).unwrap();
        assert!(read.other.is_empty());
        assert_eq!(serde_json::to_value(&read).unwrap(), entry);
    }
}
