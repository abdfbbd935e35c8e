//! The completions of the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::queue::scripts::FinishRequest;

/// For how long completions are remembered: Redis syncs its file after two seconds at the latest, and after one on a
/// disk that is not busy.
pub(super) const REMEMBERED: Duration = Duration::from_secs(3);
/// Most completions that are remembered.
const MOST: usize = 10_000;
/// Most bytes of completions that are remembered.
const MOST_BYTES: usize = 32 << 20;

#[derive(Default)]
pub(super) struct Recent {
    requests: VecDeque<(Instant, FinishRequest)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn remember(&mut self, requests: Vec<FinishRequest>) {
        let now = Instant::now();
        for request in requests {
            self.bytes += request.size();
            self.requests.push_back((now, request));
        }
        while self.requests.len() > MOST || self.bytes > MOST_BYTES {
            self.forget_first();
        }
    }

    /// Forgets old completions.
    pub(super) fn forget(&mut self) {
        while self.requests.front().is_some_and(|(then, _)| then.elapsed() > REMEMBERED) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, request)) = self.requests.pop_front() {
            self.bytes -= request.size();
        }
    }

    /// All completions, to be written again; they are remembered as if they were new.
    pub(super) fn again(&mut self) -> Vec<FinishRequest> {
        let now = Instant::now();
        let again = self.requests.iter_mut().map(|(then, request)| {
            *then = now;
            request.leave_next();
            request.clone()
        });
        again.collect()
    }
}
