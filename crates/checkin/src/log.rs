//! The log of scans, and conflicts between offline scans.

use stampede_model::EventId;
use stampede_store::ScanFilter;
use stampede_wire::checkin::scans::{Conflict, Conflicts, ScanPage};

use crate::{CheckIn, Error, answers};

/// Most conflicts in one answer.
const MOST_CONFLICTS: u32 = 1_000;

impl CheckIn {
    /// A page of an event's log, newest first; `after` is the `next` of the page before.
    pub async fn scans(
        &self,
        event: EventId,
        filter: &ScanFilter,
        after: Option<u64>,
        limit: u32,
    ) -> Result<ScanPage, Error> {
        let scans = self.shared.store.scans(event, filter, after, limit).await?;
        let next = scans.last().filter(|_| scans.len() as u32 == limit).map(|scan| scan.seq);
        Ok(ScanPage { scans: scans.into_iter().map(answers::scan).collect(), next })
    }

    /// Offline scans that let in guests who should not have been let in.
    pub async fn conflicts(&self, event: EventId) -> Result<Conflicts, Error> {
        let pairs = self.shared.store.scan_conflicts(event, MOST_CONFLICTS).await?;
        let conflicts = pairs.into_iter().map(|(scan, other)| Conflict {
            scan: answers::scan(scan),
            other: other.map(answers::scan),
        });
        Ok(Conflicts { conflicts: conflicts.collect() })
    }
}
