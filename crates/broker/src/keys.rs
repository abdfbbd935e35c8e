//! The keys of one BullMQ queue, built once.

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

    /// The lock of a job.
    pub(crate) fn lock(&self, job_id: &str) -> String {
        format!("{}{job_id}:lock", self.prefix)
    }

    /// Several parts at once, in the order a script wants them.
    pub(crate) fn parts<const N: usize>(&self, parts: [&str; N]) -> [String; N] {
        parts.map(|part| self.part(part))
    }
}
