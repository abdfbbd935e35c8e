//! What happens: requests, tickets, messages, receipts, waits, restarts. Each is counted once, where it happens.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::Metrics;
use crate::values::{Histogram, Seen};

/// A part that a node needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Redis.
    Redis,
    /// The database.
    Store,
    /// The folder of files.
    Files,
}

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Store => "store",
            Self::Files => "files",
        }
    }
}

/// How a ticket was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// Its values were stamped into a page that was ready.
    Stamped,
    /// It was typeset.
    Typeset,
}

/// What became of an attempt to send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The provider accepted it.
    Sent,
    /// It will not be sent.
    Failed,
    /// It will be tried again.
    Retried,
    /// Nobody knows.
    Unknown,
    /// It was not to be sent.
    Skipped,
}

/// Why a worker process was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It died.
    Died,
    /// It used too much memory.
    Memory,
    /// It could not be started.
    CannotStart,
    /// All workers are replaced, one after the other.
    Rolling,
}

/// Something that the database was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreWork {
    /// A read.
    Read,
    /// A transaction that writes.
    Write,
}

/// How much of what a connection to Redis tells of itself was counted already.
#[derive(Debug, Default)]
pub struct RedisSeen {
    reconnects: Seen,
    waits: HashMap<String, Seen>,
}

impl Metrics {
    /// A request was answered. `method` has capital letters; `route` is the pattern of its route, never its path; `None`: there is no such route.
    pub fn http(&self, method: &str, route: Option<&str>, status: u16, took: Duration) {
        let (route, status) = (route.unwrap_or(crate::labels::OTHER), status.to_string());
        self.table.http.with(&[method, route, &status]).observe(took);
    }

    /// So many tickets were made.
    pub fn tickets_completed(&self, count: usize) {
        self.table.tickets.with(&["completed"]).add(count as u64);
    }

    /// So many tickets will not be made.
    pub fn tickets_failed(&self, count: usize) {
        self.table.tickets.with(&["failed"]).add(count as u64);
    }

    /// The durations of printing tickets, looked up once.
    pub fn renders(&self, printed: Printed) -> Arc<Histogram> {
        self.table.renders.with(&[match printed {
            Printed::Stamped => "stamped",
            Printed::Typeset => "typeset",
        }])
    }

    /// The durations of work of the database, looked up once.
    pub fn store(&self, work: StoreWork) -> Arc<Histogram> {
        self.table.store.with(&[match work {
            StoreWork::Read => "read",
            StoreWork::Write => "write",
        }])
    }

    /// An attempt to send a message ended.
    pub fn message(&self, channel: &str, attempt: Attempt) {
        let outcome = match attempt {
            Attempt::Sent => "sent",
            Attempt::Failed => "failed",
            Attempt::Retried => "retried",
            Attempt::Unknown => "unknown",
            Attempt::Skipped => "skipped",
        };
        self.table.messages.with(&[channel, outcome]).add(1);
    }

    /// A provider told what became of a message.
    pub fn receipt(&self, channel: &str, status: &str) {
        self.table.receipts.with(&[channel, status]).add(1);
    }

    /// So many addresses were suppressed.
    pub fn suppressed(&self, reason: &str, count: u64) {
        if count > 0 {
            self.table.suppressions.with(&[reason]).add(count);
        }
    }

    /// A worker process was replaced.
    pub fn worker_restarted(&self, restart: Restart) {
        let reason = match restart {
            Restart::Died => "died",
            Restart::Memory => "memory",
            Restart::CannotStart => "cannot-start",
            Restart::Rolling => "rolling",
        };
        self.table.restarts.with(&[reason]).add(1);
    }

    /// Redis was back so often since this process began, and so often something had to wait for limits of each kind: the part of
    /// their names before the first colon.
    pub fn redis(&self, seen: &mut RedisSeen, reconnects: u64, waits: &BTreeMap<String, u64>) {
        self.table.redis_reconnects.with(&[]).add(seen.reconnects.growth(reconnects));
        for (kind, total) in waits {
            let growth = seen.waits.entry(kind.clone()).or_default().growth(*total);
            if growth > 0 {
                self.table.limit_waits.with(&[kind]).add(growth);
            }
        }
    }
}
