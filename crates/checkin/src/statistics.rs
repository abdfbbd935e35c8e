//! Statistics of an event's check-in.

use std::collections::BTreeMap;
use std::time::Duration;

use stampede_model::{EventId, Gate, GateId, ScanKind, Timestamp};
use stampede_store::{Figures, GateFigures};
use stampede_wire::checkin::statistics::{GateStatistics, Statistics};

use crate::{CheckIn, Error, answers, now};

/// How far back minutes are counted.
const MINUTES: Duration = Duration::from_secs(12 * 60 * 60);

impl CheckIn {
    /// Counts the scans of an event.
    pub async fn statistics(&self, event: EventId) -> Result<Statistics, Error> {
        let store = &self.shared.store;
        let since = now().checked_sub(MINUTES).unwrap_or(Timestamp::UNIX_EPOCH);
        let figures = store.check_in_figures(event, since).await?;
        let gates = store.gates(event).await?;
        let devices = store.devices(event).await?;
        let passed = |wanted: ScanKind| {
            let rows = figures.results.iter();
            rows.filter(|(kind, _, passed, _)| *kind == wanted && *passed).map(|row| row.3).sum()
        };
        let mut by_reason = BTreeMap::new();
        for (_, result, _, count) in figures.results.iter().filter(|(_, _, passed, _)| !passed) {
            *by_reason.entry(*result).or_default() += count;
        }
        Ok(Statistics {
            sold: figures.sold,
            inside: figures.inside,
            entries: passed(ScanKind::Entry),
            exits: passed(ScanKind::Exit),
            refused: by_reason.values().sum(),
            by_reason,
            gates: gate_statistics(&figures, &gates),
            per_minute: per_minute(&figures),
            devices: devices.into_iter().map(answers::device).collect(),
            conflicts: figures.conflicts,
        })
    }
}

/// Every gate of the event, and scans that belong to none of them.
fn gate_statistics(figures: &Figures, gates: &[Gate]) -> Vec<GateStatistics> {
    let empty = |gate| GateFigures { gate, entries: 0, exits: 0, refused: 0, last_scan_at: None };
    let known = gates.iter().map(|gate| (Some(gate.id), Some(gate.name.clone())));
    let is_known = |id: Option<GateId>| gates.iter().any(|gate| Some(gate.id) == id);
    let others = figures.gates.iter().map(|gate| gate.gate).filter(|id| !is_known(*id));
    let all = known.chain(others.map(|id| (id, None)));
    all.map(|(id, name)| {
        let found = figures.gates.iter().find(|gate| gate.gate == id).copied();
        let GateFigures { entries, exits, refused, last_scan_at, .. } =
            found.unwrap_or_else(|| empty(id));
        let minutes = figures.minutes.iter().filter(|minute| minute.gate == id);
        GateStatistics {
            id,
            name,
            inside: entries as i64 - exits as i64,
            entries,
            exits,
            refused,
            last_scan_at,
            per_minute: minutes.map(|row| (row.minute, row.entries + row.exits)).collect(),
        }
    })
    .collect()
}

fn per_minute(figures: &Figures) -> Vec<(Timestamp, u64, u64)> {
    let mut minutes: BTreeMap<Timestamp, (u64, u64)> = BTreeMap::new();
    for row in &figures.minutes {
        let (entries, exits) = minutes.entry(row.minute).or_default();
        *entries += row.entries;
        *exits += row.exits;
    }
    minutes.into_iter().map(|(minute, (entries, exits))| (minute, entries, exits)).collect()
}
