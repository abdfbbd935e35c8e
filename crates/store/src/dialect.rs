//! The few things the two databases say differently.

use crate::Durability;
use crate::lease::Limits;

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
    pub(crate) fn session_settings(self, durability: Durability, limits: Limits) -> String {
        match self {
            Self::Sqlite => format!(
                "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA synchronous = {}",
                match durability {
                    Durability::EveryCommit => "FULL",
                    Durability::Relaxed => "NORMAL",
                }
            ),
            // A process that was frozen or cut off must not hold its locks for ever. The driver
            // cannot keep a connection alive by itself, so the server does it.
            Self::Postgres => format!(
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET statement_timeout = {}; SET tcp_keepalives_idle = 30; \
                 SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3{}",
                limits.on_server().as_millis(),
                match durability {
                    // As the server has it: it may be stricter than `on`.
                    Durability::EveryCommit => "",
                    Durability::Relaxed => "; SET synchronous_commit = off",
                }
            ),
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

    /// The next `updated_at` of a row: now, but later than the last one in any case. So it is a
    /// version too, even for two changes within one millisecond or by clocks that differ.
    pub(crate) fn later(self, now: &str, last: &str) -> String {
        format!(
            "{}({now}, {last} + 1)",
            match self {
                Self::Sqlite => "MAX",
                Self::Postgres => "GREATEST",
            }
        )
    }

    /// Ends a `SELECT` whose rows the transaction is going to change or remove.
    pub(crate) fn to_change(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }

    /// Ends a `SELECT` of a row with a counter that the transaction is going to take numbers from. Others
    /// may refer to the row meanwhile.
    pub(crate) fn to_count_on(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR NO KEY UPDATE",
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
