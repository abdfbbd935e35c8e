//! The completions of the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::scripts::End;

/// For how long completions are remembered: Redis writes what it has heard after two seconds at the latest,
/// and after one on a disk that is not busy.
pub(super) const REMEMBERED: Duration = Duration::from_secs(3);
/// How many, and how many bytes of them.
const MOST: (usize, usize) = (10_000, 32 << 20);

#[derive(Default)]
pub(super) struct Recent {
    ends: VecDeque<(Instant, End)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn remember(&mut self, ends: Vec<End>) {
        let now = Instant::now();
        for end in ends {
            self.bytes += end.size();
            self.ends.push_back((now, end));
        }
        while self.ends.len() > MOST.0 || self.bytes > MOST.1 {
            self.forget_first();
        }
    }

    /// Forgets what is old.
    pub(super) fn forget(&mut self) {
        while self.ends.front().is_some_and(|(then, _)| then.elapsed() > REMEMBERED) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, end)) = self.ends.pop_front() {
            self.bytes -= end.size();
        }
    }

    /// All of them, to be told again; and to be remembered as if they were new.
    pub(super) fn again(&mut self) -> Vec<End> {
        let now = Instant::now();
        let again = self.ends.iter_mut().map(|(then, end)| {
            *then = now;
            end.leave_next();
            end.clone()
        });
        again.collect()
    }
}
