//! Errors of the SQL driver, translated by what a caller can do about them.

use sqlx::migrate::MigrateError;

use crate::Error;

/// Meaning of a failure of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Lost against another transaction, which rolled this one back.
    Contention,
    /// Out of reach, overloaded, shutting down, disk full.
    Away,
    /// A file that cannot be opened or written: a wrong path at the first connection; later a disk that
    /// went away or became read-only.
    File,
    /// Password, rights, missing database.
    Setup,
    /// A value that does not decode.
    Value,
    /// Anything else.
    Statement,
}

/// Describes the failure of the first connection, for the operator.
pub(crate) fn connecting(shown: &str, error: sqlx::Error) -> Error {
    match cause(&error) {
        Cause::Contention | Cause::Away => Error::Unavailable(format!(
            "cannot reach the database {shown}: {error}; check that it runs, that this machine \
                 may connect to it, and that the address is right"
        )),
        Cause::File | Cause::Setup | Cause::Value | Cause::Statement => Error::Unusable(format!(
            "cannot open the database {shown}: {error}; check that it exists, the user and \
                 password, and that this user may write there"
        )),
    }
}

/// Describes the failure of a migration, for the operator.
pub(crate) fn migrating(shown: &str, error: MigrateError) -> Error {
    match error {
        MigrateError::VersionMissing(version) => Error::Unusable(format!(
            "the database {shown} is newer than this program: it has migration {version}, which \
                 this version does not know; start the newer version, or restore a backup from before \
                 the upgrade"
        )),
        MigrateError::VersionMismatch(version) => Error::Unusable(format!(
            "the database {shown} was set up by a different build: its migration {version} is not \
                 this program's; use the build that made it, or a new database"
        )),
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => driver(error),
        other => Error::Refused(Box::new(other)),
    }
}
/// Translates a failure of the driver.
pub(crate) fn driver(error: sqlx::Error) -> Error {
    if let sqlx::Error::Configuration(reason) = &error {
        return Error::Unusable(reason.to_string());
    }
    match cause(&error) {
        Cause::Contention => Error::Unavailable(format!(
            "the database is busy with other writers: {error}; try again"
        )),
        Cause::Away | Cause::File => {
            Error::Unavailable(format!("the database does not answer: {error}"))
        }
        Cause::Value => Error::Corrupt(error.to_string()),
        Cause::Setup | Cause::Statement => Error::Refused(Box::new(error)),
    }
}

/// Returns whether a transaction only lost against another one, so that an immediate retry makes sense.
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
