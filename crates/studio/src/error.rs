//! Why there is no sticker, by what the caller can do about it.

use std::time::Duration;

use stampede_pool::{NoAnswer, Refused};

use crate::artist::NotDrawn;
use crate::order::Mistake;

/// Why there is no sticker.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Too many stickers are being drawn. The caller tries again later.
    #[error("{queued} stickers wait already; try again in {} s", retry_after.as_secs())]
    Full {
        /// How many wait.
        queued: usize,
        /// When to try again.
        retry_after: Duration,
    },
    /// The order cannot be drawn. The person who wrote it changes it.
    #[error("{}", told(.0))]
    Invalid(Vec<Mistake>),
    /// Redis or the storage is away, or this process ends. The same call may succeed later.
    #[error("{what} is not available: {cause}")]
    Unavailable {
        /// What is away.
        what: &'static str,
        /// Why, for the log.
        cause: String,
    },
    /// A defect: the drawer panicked. Only an operator can act.
    #[error("{0}")]
    Internal(String),
}

fn told(mistakes: &[Mistake]) -> String {
    let told = mistakes.iter().map(|mistake| format!("{} {}", mistake.field, mistake.message));
    told.collect::<Vec<_>>().join("; ")
}

impl Error {
    /// A storage that cannot be used.
    pub(crate) fn of_files(error: &stampede_files::Error) -> Self {
        Self::Unavailable { what: "the storage of stickers", cause: error.to_string() }
    }
}

impl From<stampede_broker::Error> for Error {
    fn from(error: stampede_broker::Error) -> Self {
        match error.is_outage() {
            true => Self::Unavailable { what: "Redis", cause: error.to_string() },
            false => Self::Internal(error.to_string()),
        }
    }
}

/// Why the desk has no sticker.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Trouble {
    /// This process does not draw.
    #[error("this process does not draw")]
    NoPool,
    /// The pool has no room.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The pool took the order, and did not draw it.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The order cannot be drawn.
    #[error(transparent)]
    NotDrawn(#[from] NotDrawn),
    /// No threads can be started.
    #[error("no threads can be started: {0}")]
    NoThreads(String),
}

impl From<&Trouble> for Error {
    fn from(trouble: &Trouble) -> Self {
        let closed = |what| Self::Unavailable { what, cause: trouble.to_string() };
        match trouble {
            Trouble::Refused(Refused::Full { queued, retry_after }) => {
                Self::Full { queued: *queued, retry_after: *retry_after }
            }
            Trouble::NotDrawn(NotDrawn::Impossible(message)) => {
                Self::Invalid(vec![Mistake::new("text", message)])
            }
            Trouble::NotDrawn(NotDrawn::Defect(_))
            | Trouble::NoAnswer(NoAnswer::Panicked(_) | NoAnswer::NotReady(_))
            | Trouble::Refused(Refused::TooMany { .. }) => Self::Internal(trouble.to_string()),
            Trouble::Refused(Refused::Closed) | Trouble::NoAnswer(NoAnswer::Closed) => {
                closed("the pool, which is being shut down,")
            }
            Trouble::NoPool | Trouble::NoThreads(_) => closed("the pool"),
        }
    }
}
