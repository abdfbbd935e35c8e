//! What can go wrong, by what a caller can do about it.

use std::time::Duration;

use sqlx::migrate::MigrateError;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database is away, overloaded or locked; the same call may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// A person has to act first: a wrong address, a folder that cannot be written, a newer database.
    #[error("{0}")]
    Unusable(String),
    /// A record holds what this program never writes; trying again does not help.
    #[error("a record in the database is damaged: {0}")]
    Corrupt(String),
    /// The database refused a statement.
    #[error("the database refused a statement: {0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a failure of the driver means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Lost against another transaction; nothing happened.
    Contention,
    /// Out of reach, overloaded, shutting down, disk full.
    Away,
    /// A file that cannot be opened or written: a wrong path when it never could, a disk that went
    /// away or turned read-only when it could before.
    File,
    /// Password, rights, missing database.
    Setup,
    /// A value that does not decode.
    Value,
    /// Anything else.
    Statement,
}

impl Error {
    /// The database is the problem, not what was asked; the same call may work later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self::Unusable(message.into())
    }

    /// Nothing came back in time; what was asked may have been done or not.
    pub(crate) fn no_answer(limit: Duration) -> Self {
        Self::Unavailable(format!("the database does not answer: nothing within {limit:?}"))
    }

    /// The failure of a first connection, told to the operator.
    pub(crate) fn connecting(shown: &str, error: sqlx::Error) -> Self {
        match cause(&error) {
            Cause::Contention | Cause::Away => Self::Unavailable(format!(
                "cannot reach the database {shown}: {error}; check that it runs, that this machine \
                 may connect to it, and that the address is right"
            )),
            Cause::File | Cause::Setup | Cause::Value | Cause::Statement => {
                Self::Unusable(format!(
                    "cannot open the database {shown}: {error}; check that it exists, the user and \
                 password, and that this user may write there"
                ))
            }
        }
    }

    /// The failure of a migration, told to the operator.
    pub(crate) fn migrating(shown: &str, error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) => Self::Unusable(format!(
                "the database {shown} is newer than this program: it has migration {version}, which \
                 this version does not know; start the newer version, or restore a backup from before \
                 the upgrade"
            )),
            MigrateError::VersionMismatch(version) => Self::Unusable(format!(
                "the database {shown} was set up by a different build: its migration {version} is not \
                 this program's; use the build that made it, or a new database"
            )),
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::Refused(Box::new(other)),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Configuration(reason) = &error {
            return Self::Unusable(reason.to_string());
        }
        match cause(&error) {
            Cause::Contention => Self::Unavailable(format!(
                "the database is busy with other writers: {error}; try again"
            )),
            Cause::Away | Cause::File => {
                Self::Unavailable(format!("the database does not answer: {error}"))
            }
            Cause::Value => Self::Corrupt(error.to_string()),
            Cause::Setup | Cause::Statement => Self::Refused(Box::new(error)),
        }
    }
}

/// Whether a transaction only lost against another one, so that it is worth a new try right away.
pub(crate) fn is_contention(error: &sqlx::Error) -> bool {
    cause(error) == Cause::Contention
}

fn cause(error: &sqlx::Error) -> Cause {
    use sqlx::Error as E;
    match error {
        E::Database(error) => match error.code() {
            Some(code) => cause_of_code(&code),
            None => Cause::Statement,
        },
        E::Io(_)
        | E::Tls(_)
        | E::PoolTimedOut
        | E::PoolClosed
        | E::WorkerCrashed
        | E::Protocol(_) => Cause::Away,
        E::ColumnDecode { .. } | E::Decode(_) | E::ColumnNotFound(_) | E::TypeNotFound { .. } => {
            Cause::Value
        }
        E::Configuration(_) => Cause::Setup,
        _ => Cause::Statement,
    }
}

/// PostgreSQL's codes have five characters, SQLite's are numbers of at most four digits.
fn cause_of_code(code: &str) -> Cause {
    if code.len() == 5 {
        return match code {
            // Serialization failure, deadlock, lock timeout.
            "40001" | "40P01" | "55P03" => Cause::Contention,
            // Statement timeout (nobody else cancels ours), shutting down, crashed, starting up;
            // read-only because it became a replica.
            "57014" | "57P01" | "57P02" | "57P03" | "25006" | "25P03" => Cause::Away,
            // Wrong password or role, no such database, no right.
            "3D000" | "42501" => Cause::Setup,
            _ => match &code[..2] {
                // Connection lost, out of resources, system error.
                "08" | "53" | "58" => Cause::Away,
                "28" => Cause::Setup,
                _ => Cause::Statement,
            },
        };
    }
    // The low byte is the kind, the rest a detail of it.
    match code.parse::<u32>().map(|code| code & 0xff) {
        // BUSY, LOCKED.
        Ok(5 | 6) => Cause::Contention,
        // IOERR, FULL.
        Ok(10 | 13) => Cause::Away,
        // READONLY, CANTOPEN.
        Ok(8 | 14) => Cause::File,
        // PERM, AUTH, NOTADB.
        Ok(3 | 23 | 26) => Cause::Setup,
        // CORRUPT.
        Ok(11) => Cause::Value,
        _ => Cause::Statement,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_told_apart() {
        for (code, expected) in [
            ("40P01", Cause::Contention),
            ("53300", Cause::Away),
            ("57014", Cause::Away),
            ("57P01", Cause::Away),
            ("28P01", Cause::Setup),
            ("23505", Cause::Statement),
            ("5", Cause::Contention),
            ("517", Cause::Contention),
            ("13", Cause::Away),
            ("14", Cause::File),
            ("1032", Cause::File),
            ("26", Cause::Setup),
            ("1555", Cause::Statement),
        ] {
            assert_eq!(cause_of_code(code), expected, "{code}");
        }
    }
}
