//! The few things the two databases say differently.

use crate::Durability;

/// Which database is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// One file, one writer at a time.
    Sqlite,
    /// A server, row locks.
    Postgres,
}

impl Dialect {
    /// Settings every new connection gets.
    pub(crate) fn session_settings(self, durability: Durability) -> &'static str {
        match (self, durability) {
            (Self::Sqlite, Durability::EveryCommit) => {
                "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL"
            }
            (Self::Sqlite, Durability::Relaxed) => {
                "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL"
            }
            // `synchronous_commit` stays as the server has it: it may be stricter than `on`. A
            // process that was frozen must not hold its locks for ever.
            (Self::Postgres, Durability::EveryCommit) => {
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'"
            }
            (Self::Postgres, Durability::Relaxed) => {
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET synchronous_commit = off"
            }
        }
    }

    /// Opens a transaction that is going to write.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            // A transaction that starts to read and then wants to write can fail at once when
            // another one wrote meanwhile; one that asks first waits for its turn.
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// A table with one row per object of a JSON array; its column is `value`.
    pub(crate) fn each_object(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("json_each({parameter})"),
            Self::Postgres => format!("jsonb_array_elements({parameter}::jsonb)"),
        }
    }

    /// A table with one row per text of a JSON array; its column is `value`.
    pub(crate) fn each_text(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("json_each({parameter})"),
            Self::Postgres => format!("jsonb_array_elements_text({parameter}::jsonb)"),
        }
    }

    /// Ends a `SELECT` whose rows the transaction is going to change or remove.
    pub(crate) fn to_change(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }

    /// Ends a `SELECT` whose rows must not be removed before the transaction ends.
    pub(crate) fn to_refer_to(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR KEY SHARE",
        }
    }
}
