//! Counters of ended jobs by node, kept as long as Redis keeps its data.

use std::collections::BTreeMap;

use redis::cmd;

use super::decisions::fence;
use super::{Leadership, Registry};
use crate::Error;

script!(SETTLE);

const COMPLETED: &str = "stats:completed";
const FAILED: &str = "stats:failed";
const STALLED: &str = "stats:stalled";
/// One hash each; the coordinator writes to them too, so each has a fence.
pub(super) const COUNTERS: [&str; 3] = [COMPLETED, FAILED, STALLED];

/// Numbers of ended jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Completed.
    pub completed: u64,
    /// Failed permanently.
    pub failed: u64,
    /// Found stalled: without a worker.
    pub stalled: u64,
}

impl Registry {
    /// Adds jobs that ended to the counters of a node. `counted` is moved on as far as they were taken.
    pub async fn count(
        &self,
        node: &str,
        total: Tallies,
        counted: &mut Tallies,
    ) -> Result<(), Error> {
        let mut redis = self.broker.redis();
        for (key, total, counted) in [
            (COMPLETED, total.completed, &mut counted.completed),
            (FAILED, total.failed, &mut counted.failed),
            (STALLED, total.stalled, &mut counted.stalled),
        ] {
            let more = total.saturating_sub(*counted);
            let _: i64 =
                cmd("HINCRBY").arg(key).arg(node).arg(more).query_async(&mut redis).await?;
            *counted = total;
        }
        Ok(())
    }

    /// Adds up the counts of nodes that are gone under `(departed)`, if `leader` still coordinates: one
    /// that woke up late would take nodes for gone that it has never seen. `there` are those that are
    /// not; `false` if another coordinates.
    pub async fn settle_counters(
        &self,
        leader: &Leadership,
        there: &[String],
    ) -> Result<bool, Error> {
        for key in COUNTERS {
            let settled: bool = SETTLE
                .key(fence(key))
                .key(key)
                .arg(leader.token)
                .arg(there)
                .invoke_async(&mut self.broker.redis())
                .await?;
            if !settled {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Jobs that ended on each node; what nodes did that are gone stands under `(departed)`.
    pub async fn counters(&self) -> Result<BTreeMap<String, Tallies>, Error> {
        let mut all: BTreeMap<String, Tallies> = BTreeMap::new();
        for key in COUNTERS {
            let mut redis = self.broker.redis();
            let counts: BTreeMap<String, u64> =
                cmd("HGETALL").arg(key).query_async(&mut redis).await?;
            for (name, count) in counts {
                let tallies = all.entry(name).or_default();
                *match key {
                    COMPLETED => &mut tallies.completed,
                    FAILED => &mut tallies.failed,
                    _ => &mut tallies.stalled,
                } = count;
            }
        }
        Ok(all)
    }
}
