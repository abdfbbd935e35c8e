//! The differences between the two databases.

use crate::Durability;
use crate::limits::Limits;

/// The kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// One file, one writer at a time.
    Sqlite,
    /// A server, row locks.
    Postgres,
}

impl Dialect {
    /// Settings of every new connection. Without more, a commit is synced.
    pub(crate) fn session_settings(self, limits: Limits) -> String {
        match self {
            Self::Sqlite => "PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; \
                 PRAGMA synchronous = FULL"
                .to_owned(),
            // A process that was frozen or cut off must not hold its locks for ever. The driver cannot
            // keep a connection alive by itself, so the server does it. A server that is configured to
            // sync nothing is asked to sync here; one that is stricter than `on` stays so.
            Self::Postgres => format!(
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET statement_timeout = {}; SET tcp_keepalives_idle = 30; \
                 SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; \
                 SELECT set_config('synchronous_commit', 'on', false) \
                 WHERE current_setting('synchronous_commit') = 'off'",
                limits.on_server().as_millis(),
            ),
        }
    }

    /// Begins a transaction that writes, with its durability, in one round trip.
    ///
    /// SQLite sets the durability for a connection, and only outside of a transaction, so every
    /// transaction sets its own before it begins; that costs about a microsecond.
    pub(crate) fn begin(self, durability: Durability) -> &'static str {
        // A SQLite transaction that reads first and then writes can fail at once if another one wrote
        // meanwhile; `IMMEDIATE` waits for its turn instead.
        match (self, durability) {
            (Self::Sqlite, Durability::Synced) => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
            (Self::Sqlite, Durability::Relaxed) => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
            (Self::Postgres, Durability::Synced) => "BEGIN",
            (Self::Postgres, Durability::Relaxed) => "BEGIN; SET LOCAL synchronous_commit = off",
        }
    }

    /// Writes something that changes nothing, inside a transaction: its commit tells whether the database
    /// accepts writes.
    ///
    /// SQLite writes the page of the file's header again. PostgreSQL gives the transaction a number, whose
    /// commit it records.
    pub(crate) fn touch(self) -> &'static str {
        match self {
            Self::Sqlite => "PRAGMA user_version = 0",
            Self::Postgres => "SELECT txid_current()::text",
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

    /// Whether a text contains another one, letter by letter.
    pub(crate) fn contains(self, text: &str, part: &str) -> String {
        match self {
            Self::Sqlite => format!("INSTR({text}, {part}) > 0"),
            Self::Postgres => format!("STRPOS({text}, {part}) > 0"),
        }
    }

    /// The next `updated_at` of a row: [`rules::later`](crate::rules::later) in SQL.
    pub(crate) fn later(self, now: &str, last: &str) -> String {
        format!(
            "{}({now}, {last} + 1)",
            match self {
                Self::Sqlite => "MAX",
                Self::Postgres => "GREATEST",
            }
        )
    }

    /// Ends a `SELECT` whose rows the transaction changes or deletes.
    pub(crate) fn to_change(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR UPDATE",
        }
    }

    /// Ends a `SELECT` of a row with a counter that the transaction takes numbers from. Other transactions
    /// may refer to the row meanwhile.
    pub(crate) fn to_count_on(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR NO KEY UPDATE",
        }
    }

    /// Ends a `SELECT` whose rows must not be changed before the transaction ends.
    pub(crate) fn to_rely_on(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR SHARE",
        }
    }

    /// Ends a `SELECT` whose rows must not be deleted before the transaction ends.
    pub(crate) fn to_refer_to(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "FOR KEY SHARE",
        }
    }
}
