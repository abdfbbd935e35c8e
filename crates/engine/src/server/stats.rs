//! Counters for `INFO`.

use std::hash::BuildHasher;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What has happened since the start.
#[derive(Debug)]
pub(super) struct Stats {
    pub(super) started: Instant,
    /// Another one for every start, 40 hexadecimal digits.
    pub(super) run_id: String,
    pub(super) commands: u64,
    pub(super) connections: u64,
    pub(super) expired: u64,
    /// Commands a second, over the last moments.
    pub(super) rate: u64,
    /// When the last snapshot was complete, in seconds since 1970.
    pub(super) last_save: i64,
    /// Commands, transactions and scripts that changed something since then.
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

    /// Takes a sample of the rate, if the last one is old enough to say something.
    pub(super) fn sample(&mut self) {
        let (at, commands) = self.sampled;
        let spent = at.elapsed().as_secs_f64();
        if spent >= 0.5 {
            self.rate = (self.commands.saturating_sub(commands) as f64 / spent) as u64;
            self.sampled = (Instant::now(), self.commands);
        }
    }

    /// A snapshot is complete.
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
