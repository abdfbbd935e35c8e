//! Histories of limits: operations that somebody else remembers, for a limit whose log in Redis lacks them.
//!
//! ```text
//!   take ─▶ Forgotten: the window became longer, or Redis has lost its data ─▶ read the history ─▶ remember ─▶ take
//! ```
//!
//! Several callers may do so at once: operations have keys, so each counts once. Meanwhile nobody gets a permit of the limit.
//!
//! Ages become moments of Redis' clock by asking it for the time. It was told at some moment between question and answer: an
//! operation may have begun as much earlier or later, and the script takes the worse of both.

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

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 4)
}

impl Limits {
    /// Adds a history to the log of the limit `name`, which has answered [`crate::Taking::Forgotten`]; what the log has already is
    /// not counted again. Returns how many operations were added.
    pub async fn remember(&self, name: &str, history: &History) -> Result<u64, Error> {
        let [_, granted, _, _, window] = keys(name)?;
        let History { operations, complete_for, read, .. } = history;
        // An empty portion at the end says that all are there.
        let portions = operations.chunks(PORTION).chain([&[][..]]);
        let last = operations.len().div_ceil(PORTION);
        let call = || {
            let mut call = REMEMBER.prepare_invoke();
            call.key(&granted).key(&window).arg(micros(history.window));
            call
        };
        let asked = read.elapsed();
        // With no operations it only tells the time.
        let (_, now): (u64, i64) = call().arg("").invoke_async(&mut self.broker.redis()).await?;
        let answered = read.elapsed();
        let earliest = |age: Duration| now - micros(age + answered);
        let latest = |age: Duration| now - micros(age + asked);
        let mut added = 0;
        for (number, portion) in portions.enumerate() {
            let mut call = call();
            match number == last {
                true => call.arg(latest(*complete_for).max(0)),
                false => call.arg(""),
            };
            for PastOperation { key, most, least } in portion {
                call.arg(key).arg(earliest(*most)).arg(latest(*least));
            }
            let (more, _): (u64, i64) = call.invoke_async(&mut self.broker.redis()).await?;
            added += more;
        }
        Ok(added)
    }
}
