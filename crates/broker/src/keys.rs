//! The keys of one BullMQ queue, built once.

/// Keys of a queue: `bull:{queue}:{part}`.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// `bull:{queue}:`, what BullMQ calls the key prefix.
    pub(crate) prefix: String,
}

impl Keys {
    /// Keys of `queue` under BullMQ's default prefix.
    pub(crate) fn new(queue: &str) -> Self {
        Self { prefix: format!("bull:{queue}:") }
    }

    /// A named part such as `wait`, or the hash of a job.
    pub(crate) fn part(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// The keys of another queue under the same prefix.
    pub(crate) fn sibling(&self, queue: &str) -> Self {
        Self::new(queue)
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
