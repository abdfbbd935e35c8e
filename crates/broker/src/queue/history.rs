//! Histories of limits: operations that somebody else remembers, for a limit whose log in Redis lacks them.
//!
//! ```text
//!   take ─▶ Forgotten: the window became longer, or Redis has lost its data ─▶ read the history ─▶ remember ─▶ take
//! ```
//!
//! Several callers may do so at once: operations have keys, so each counts once. Meanwhile nobody gets a permit of the limit.

use std::time::{Duration, Instant};

use super::limits::{Limits, keys};
use crate::Error;

script!(REMEMBER);

/// Most operations of one call of the script: other callers of Redis wait as long as it runs.
const PORTION: usize = 1_000;

/// The operations of a limit that began a while ago.
#[derive(Debug, Clone)]
pub struct History {
    /// The window that the limit is asked with.
    pub window: Duration,
    /// The operations.
    pub operations: Vec<PastOperation>,
    /// For how long these are all operations, unless they are in the log of the limit already.
    pub complete_for: Duration,
    /// The moment at which all ages were true.
    pub read: Instant,
}

/// An operation that began a while ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastOperation {
    /// The key under which it counts, the same whoever tells of it: see [`crate::Ask::counts_as`].
    pub key: String,
    /// How long ago it began, at most.
    pub most: Duration,
    /// How long ago it began, at least: from then on it counts.
    pub least: Duration,
}

impl Limits {
    /// Adds a history to the log of the limit `name`; what the log has already is not counted again. Returns how many operations
    /// were added.
    pub async fn remember(&self, name: &str, history: &History) -> Result<u64, Error> {
        let [_, granted, _, _, window] = keys(name)?;
        let History { operations, complete_for, read, .. } = history;
        // An empty portion at the end says that all are there.
        let portions = operations.chunks(PORTION).chain([&[][..]]);
        let last = operations.len().div_ceil(PORTION);
        let mut added = 0;
        for (number, portion) in portions.enumerate() {
            let since = read.elapsed();
            let age = |told: Duration| (told + since).as_micros() as u64;
            let mut call = REMEMBER.prepare_invoke();
            call.key(&granted).key(&window).arg(history.window.as_micros() as u64);
            match number == last {
                true => call.arg(age(*complete_for)),
                false => call.arg(""),
            };
            for operation in portion {
                call.arg(&operation.key).arg(age(operation.most)).arg(age(operation.least));
            }
            added += call.invoke_async::<u64>(&mut self.broker.redis()).await?;
        }
        Ok(added)
    }
}
