//! Why there is no whole copy, and what became of the target.

use super::MARKER;

/// Why there is no whole copy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One side cannot be used at all; nothing was changed.
    #[error(transparent)]
    Server(#[from] crate::Error),
    /// Too old to be copied from or to; nothing was changed.
    #[error("{url} has version {version}; a copy needs Redis or Valkey 7.0 or newer on both sides")]
    TooOld {
        /// Where, without the password.
        url: String,
        /// What it says.
        version: String,
    },
    /// Both URLs lead to one server; nothing was changed.
    #[error("{from} and {to} are the same server; there is nothing to copy")]
    SameServer {
        /// One address.
        from: String,
        /// The other.
        to: String,
    },
    /// Several databases cannot become one; nothing was changed.
    #[error(
        "{from} has keys in the databases {databases:?}, and all of them cannot go into the one that {to} \
         names. Name one of them in the source's URL too, or none in the target's"
    )]
    OneDatabase {
        /// The source.
        from: String,
        /// Its databases with keys.
        databases: Vec<i64>,
        /// The target.
        to: String,
    },
    /// The source is itself half a copy; nothing was changed.
    #[error(
        "{from} holds a copy that was never finished (key {MARKER}). Make that one whole first"
    )]
    UnfinishedSource {
        /// The source.
        from: String,
    },
    /// The target has keys; nothing was changed.
    #[error(
        "{to} is not empty: {keys} keys in database {database}{}. To delete them first, say --replace",
        unfinished.as_ref().map_or(String::new(), |from| format!(
            ", from a copy of {from} that was not finished"
        ))
    )]
    NotEmpty {
        /// The target.
        to: String,
        /// The first database with keys.
        database: i64,
        /// How many.
        keys: u64,
        /// The source of a copy that broke off.
        unfinished: Option<String>,
    },
    /// It broke off.
    #[error(
        "the copy broke off: {reason}. {to} holds a part of it and is marked as unfinished; run it again with \
         --replace"
    )]
    BrokenOff {
        /// The target.
        to: String,
        /// Why.
        reason: crate::Error,
    },
    /// Both sides are not the same in the end.
    #[error(
        "the copy is not the same as its source: {}. Most likely something wrote to {from} (or to {to}) \
         meanwhile: stop all workers and producers and run it again with --replace. The copy is marked as unfinished",
        differences.join("; ")
    )]
    Different {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// The first differences, in words.
        differences: Vec<String>,
    },
}
