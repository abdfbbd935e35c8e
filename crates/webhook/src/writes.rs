//! Whether attempts can be recorded: one that cannot is not made.
//!
//! A record that was written a moment ago proves it; otherwise the database is asked first. While it cannot be written, pauses grow
//! with the time that this has lasted.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A record proves for so long that the next one can be written.
const PROVEN_FOR: Duration = Duration::from_secs(1);
/// The shortest and the longest pause while the database is away.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(120);

/// What the last records of this process have shown.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    proven_at: Option<Instant>,
    /// When records began to fail, and when the last one did.
    failing: Option<(Instant, Instant)>,
}

impl Writes {
    /// Whether the database accepted a write a moment ago.
    pub(crate) fn are_proven(&self) -> bool {
        self.0.lock().proven_at.is_some_and(|at| at.elapsed() < PROVEN_FOR)
    }

    /// Notes that the database says it accepts writes. A full disk may have room for that and for no record.
    pub(crate) fn proven(&self) {
        self.0.lock().proven_at = Some(Instant::now());
    }

    /// Notes that a record was written.
    pub(crate) fn succeeded(&self) {
        *self.0.lock() = Known { proven_at: Some(Instant::now()), failing: None };
    }

    /// Notes that the database is away, or cannot be written; returns the pause before the next try.
    pub(crate) fn failed(&self) -> Duration {
        let (mut known, now) = (self.0.lock(), Instant::now());
        known.proven_at = None;
        // An outage that nobody met for long is over.
        let since = known.failing.filter(|(_, last)| now.duration_since(*last) < LONGEST * 2);
        let since = since.map_or(now, |(since, _)| since);
        known.failing = Some((since, now));
        if since == now {
            tracing::warn!("the database accepts no writes: webhooks wait, and use up no attempt");
        }
        pause(now.duration_since(since))
    }
}

/// The pause after an outage has lasted for some time.
fn pause(lasted: Duration) -> Duration {
    lasted.clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_nothing_can_be_recorded() {
        let seconds = Duration::from_secs;
        for (lasted, wanted) in [(0, 5), (5, 5), (10, 10), (20, 20), (100, 100), (9_000, 120)] {
            assert_eq!(pause(seconds(lasted)), seconds(wanted), "{lasted}");
        }
        let writes = Writes::default();
        assert!(!writes.are_proven(), "nothing is known yet");
        writes.proven();
        assert!(writes.are_proven());
        writes.succeeded();
        assert!(writes.are_proven());
        assert_eq!(writes.failed(), SHORTEST);
        assert!(!writes.are_proven());
    }
}
