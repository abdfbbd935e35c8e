//! Remembers whether the last write of this process failed because of an outage.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// A failure older than this says nothing about the present.
const FRESH: Duration = Duration::from_secs(10);

/// The outcome of the last write. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWrite(Arc<Mutex<Option<(Instant, String)>>>);

impl LastWrite {
    /// Notes the outcome of a write. An error that is no outage came from a database that accepts writes.
    pub(super) fn note<T>(&self, result: &Result<T>) {
        let failure = match result {
            Err(Error::Unavailable(reason)) => Some((Instant::now(), reason.clone())),
            _ => None,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Returns the reason if the last write failed a moment ago.
    pub(super) fn fresh_failure(&self) -> Option<String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, reason)| reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_outage_is_remembered_and_a_success_ends_it() {
        let last = LastWrite::default();
        last.note::<()>(&Err(Error::Corrupt("a date".to_owned())));
        assert_eq!(last.fresh_failure(), None);
        last.note::<()>(&Err(Error::Unavailable("disk full".to_owned())));
        assert_eq!(last.fresh_failure().as_deref(), Some("disk full"));
        last.note(&Ok(()));
        assert_eq!(last.fresh_failure(), None);
    }
}
