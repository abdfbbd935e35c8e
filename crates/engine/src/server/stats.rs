//! Counters for `INFO`.

use std::hash::BuildHasher;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Counters since the server started.
#[derive(Debug)]
pub(super) struct Stats {
    pub(super) started: Instant,
    /// A random id of this run, 40 hexadecimal digits.
    pub(super) run_id: String,
    pub(super) commands: u64,
    pub(super) connections: u64,
    pub(super) expired: u64,
    /// Commands per second, over the last half second or more.
    pub(super) rate: u64,
    /// The completion time of the last snapshot, in seconds since 1970.
    pub(super) last_save: i64,
    /// Commands, transactions and scripts that have written since then.
    pub(super) changes: u64,
    sampled: (Instant, u64),
}

impl Stats {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            run_id: run_id(),
            commands: 0,
            connections: 0,
            expired: 0,
            rate: 0,
            last_save: unix_seconds(),
            changes: 0,
            sampled: (now, 0),
        }
    }

    /// Updates the rate if the last sample is at least half a second old.
    pub(super) fn sample(&mut self) {
        let (at, commands) = self.sampled;
        let spent = at.elapsed().as_secs_f64();
        if spent >= 0.5 {
            self.rate = (self.commands.saturating_sub(commands) as f64 / spent) as u64;
            self.sampled = (Instant::now(), self.commands);
        }
    }

    /// Notes that a snapshot is complete.
    pub(super) fn saved(&mut self) {
        self.last_save = unix_seconds();
        self.changes = 0;
    }
}

fn run_id() -> String {
    let random = std::collections::hash_map::RandomState::new();
    let digits: String = (0..3_u8).map(|part| format!("{:016x}", random.hash_one(part))).collect();
    digits[..40].to_owned()
}

fn unix_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}
