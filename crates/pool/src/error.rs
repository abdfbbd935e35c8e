//! Why a task was not accepted, and why an accepted task has no answer.

use std::time::Duration;

/// Why a task was not accepted. Nothing of it has run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// All threads are busy and no more tasks may wait.
    #[error("{queued} tasks wait already; try again in {} s", retry_after.as_secs())]
    Full {
        /// How many tasks wait.
        queued: usize,
        /// When there is likely to be room: 1 to 30 s.
        retry_after: Duration,
    },
    /// A batch has more tasks than the pool ever has room for.
    #[error("a batch may have at most {most} tasks here")]
    TooMany {
        /// Most tasks of a batch.
        most: usize,
    },
    /// The pool is shut down.
    #[error("the pool is shut down")]
    Closed,
}

/// Why an accepted task has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The task panicked with this message.
    #[error("the task panicked: {0}")]
    Panicked(String),
    /// Its thread could not be warmed up: `init` panicked with this message.
    #[error("the thread of the task could not be warmed up: {0}")]
    NotReady(String),
    /// The pool was shut down while the task waited.
    #[error("the pool was shut down before the task began")]
    Closed,
}
