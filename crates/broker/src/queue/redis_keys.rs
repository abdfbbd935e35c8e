//! The keys of one BullMQ queue, built once.

use crate::queue::names::DEAD;

/// Keys of a queue: `{prefix}:{queue}:{part}`.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// `{prefix}:{queue}:`, what BullMQ calls the key prefix.
    pub(crate) prefix: String,
    /// Length of what is before the queue's name.
    base: usize,
}

impl Keys {
    /// Keys of `queue` under a prefix, by default `bull`.
    pub(crate) fn new(prefix: &str, queue: &str) -> Self {
        Self { prefix: format!("{prefix}:{queue}:"), base: prefix.len() }
    }

    /// A named part such as `wait`, or the hash of a job.
    pub(crate) fn part(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// The keys of another queue under the same prefix.
    pub(crate) fn sibling(&self, queue: &str) -> Self {
        Self::new(&self.prefix[..self.base], queue)
    }

    /// The keys of the queue's dead letters.
    pub(crate) fn dead(&self) -> Self {
        let queue = self.prefix[self.base + 1..].trim_end_matches(':');
        self.sibling(&format!("{queue}{DEAD}"))
    }

    /// The lock of a job.
    pub(crate) fn lock(&self, job_id: &str) -> String {
        format!("{}{job_id}:lock", self.prefix)
    }

    /// Several parts at once, in the order a script wants them.
    pub(crate) fn parts<const N: usize>(&self, parts: [&str; N]) -> [String; N] {
        parts.map(|part| self.part(part))
    }
}
