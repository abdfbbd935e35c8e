//! Outages, as the log tells them: when one begins, once a minute while it lasts, and when it ends.
//!
//! Hundreds of jobs meet the same full disk every two seconds. A line for each of them would bury the log,
//! and fill the disk of the log too.
//!
//! Each dependency is watched by the operation that uses it: a database on a full disk can still be read, so
//! a read that succeeds does not end the outage of writes.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two lines about one outage.
const REMINDER: Duration = Duration::from_secs(60);

/// The dependencies of a job that makes a ticket.
pub(crate) struct Outages {
    /// Reading from the database.
    pub(crate) reading: Outage,
    /// Recording completions in the database.
    pub(crate) recording: Outage,
    /// Writing PDFs.
    pub(crate) files: Outage,
    /// Compiling templates.
    pub(crate) compiler: Outage,
}

impl Default for Outages {
    fn default() -> Self {
        Self {
            reading: Outage::new("cannot read from the database"),
            recording: Outage::new("cannot write to the database"),
            files: Outage::new("cannot write PDFs"),
            compiler: Outage::new("cannot compile templates"),
        }
    }
}

/// One dependency: working, or in an outage.
pub(crate) struct Outage {
    what: &'static str,
    /// Whether there is an outage; lets a success pass without a lock.
    lasts: AtomicBool,
    state: Mutex<Option<Lasting>>,
}

/// An outage that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lasting {
    began: Instant,
    told: Instant,
    postponed: u64,
}

/// A line to be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Begins,
    Lasts { since: Duration, postponed: u64 },
    Ended { after: Duration, postponed: u64 },
}

/// The next state, and the line about it.
type Next = (Option<Lasting>, Option<Line>);

impl Outage {
    fn new(what: &'static str) -> Self {
        Self { what, lasts: AtomicBool::new(false), state: Mutex::new(None) }
    }

    /// A job was postponed for this cause.
    pub(crate) fn postponed(&self, cause: &dyn Display) {
        let what = self.what;
        match self.step(postponed) {
            None => {}
            Some(Line::Lasts { since, postponed }) => {
                tracing::error!(%cause, ?since, postponed, "still {what}: tickets wait");
            }
            Some(_) => {
                tracing::error!(
                    %cause,
                    "{what}: tickets wait and use up no attempt; work goes on by itself when it is possible"
                );
            }
        }
    }

    /// The dependency did its work.
    pub(crate) fn works(&self) {
        if !self.lasts.load(Ordering::Relaxed) {
            return;
        }
        if let Some(Line::Ended { after, postponed }) = self.step(works) {
            tracing::info!(?after, postponed, "over: {}; work goes on", self.what);
        }
    }

    fn step(&self, next: fn(Option<Lasting>, Instant) -> Next) -> Option<Line> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (after, line) = next(*state, Instant::now());
        *state = after;
        self.lasts.store(after.is_some(), Ordering::Relaxed);
        line
    }
}

/// The next state after a job was postponed.
fn postponed(state: Option<Lasting>, now: Instant) -> Next {
    let Some(lasting) = state else {
        return (Some(Lasting { began: now, told: now, postponed: 1 }), Some(Line::Begins));
    };
    let postponed = lasting.postponed + 1;
    if now.duration_since(lasting.told) < REMINDER {
        return (Some(Lasting { postponed, ..lasting }), None);
    }
    let line = Line::Lasts { since: now.duration_since(lasting.began), postponed };
    (Some(Lasting { told: now, postponed, ..lasting }), Some(line))
}

/// The next state after the dependency did its work.
fn works(state: Option<Lasting>, now: Instant) -> Next {
    let line = state.map(|lasting| Line::Ended {
        after: now.duration_since(lasting.began),
        postponed: lasting.postponed,
    });
    (None, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_when_it_begins_once_a_minute_and_when_it_ends() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (state, line) = postponed(None, start);
        assert_eq!(line, Some(Line::Begins));
        let mut lines = Vec::new();
        let state = (1..=130).fold(state, |state, second| {
            let (state, line) = postponed(state, at(second));
            lines.extend(line);
            state
        });
        let lasts =
            |seconds, postponed| Line::Lasts { since: Duration::from_secs(seconds), postponed };
        assert_eq!(lines, [lasts(60, 61), lasts(120, 121)]);
        let (state, line) = works(state, at(131));
        assert_eq!(line, Some(Line::Ended { after: Duration::from_secs(131), postponed: 131 }));
        assert_eq!(works(state, at(132)), (None, None));
    }
}
