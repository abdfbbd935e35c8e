//! Errors of the SQL driver, translated by what a caller can do about them.

use sqlx::migrate::MigrateError;

use crate::Error;

/// Meaning of a failure of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Lost against another transaction, which rolled this one back.
    Contention,
    /// Out of reach, overloaded, shutting down.
    Away,
    /// No room on the disk of the database.
    Full,
    /// The connection is in a state that its next user did not expect. Another connection is not.
    Connection,
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
        Cause::Full => full(&error),
        Cause::Contention | Cause::Away | Cause::Connection => Error::Unavailable(format!(
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
        Cause::Full => full(&error),
        Cause::Away | Cause::File | Cause::Connection => {
            Error::Unavailable(format!("the database does not answer: {error}"))
        }
        Cause::Value => Error::Corrupt(error.to_string()),
        Cause::Setup => Error::Unusable(format!(
            "the database does not let this program in any more: {error}; check the user, the password \
             and the rights"
        )),
        Cause::Statement => Error::Refused(Box::new(error)),
    }
}

fn full(error: &sqlx::Error) -> Error {
    Error::Unavailable(format!(
        "the disk of the database is full: {error}; make room, and work goes on by itself"
    ))
}

/// Returns whether a transaction only lost against another one, so that an immediate retry makes sense.
pub(crate) fn is_contention(error: &sqlx::Error) -> bool {
    cause(error) == Cause::Contention
}

/// Returns whether the connection is at fault, so that nobody should use it again.
pub(crate) fn is_of_connection(error: &sqlx::Error) -> bool {
    cause(error) == Cause::Connection
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
        // A connection that was given back inside a transaction, or whose BEGIN began none.
        E::InvalidSavePointStatement | E::BeginFailed => Cause::Connection,
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
            "53100" => Cause::Full,
            // Idle in a transaction for too long.
            "25P03" => Cause::Away,
            // Read-only because its server became a replica: the next connection may find the new primary.
            "25006" => Cause::Connection,
            // Inside a transaction, inside none, inside a failed one.
            "25001" | "25P01" | "25P02" => Cause::Connection,
            // A prepared statement that another session's migration or a proxy made useless.
            "0A000" | "26000" => Cause::Connection,
            // No such database, dropped database, no right.
            "3D000" | "57P04" | "42501" => Cause::Setup,
            "XX001" | "XX002" => Cause::Value,
            // The first two characters are the class. A code of another kind of server may be any text.
            _ => match code.get(..2) {
                // Connection lost; out of memory, of connections, of other resources; system error; statement
                // timeout (nobody else cancels ours), shutting down, crashed, starting up.
                Some("08" | "53" | "57" | "58") => Cause::Away,
                // Wrong password or role.
                Some("28") => Cause::Setup,
                _ => Cause::Statement,
            },
        };
    }
    // The low byte is the kind, the rest a detail of it.
    match code.parse::<u32>().map(|code| code & 0xff) {
        // BUSY, LOCKED.
        Ok(5 | 6) => Cause::Contention,
        // NOMEM, INTERRUPT, IOERR, PROTOCOL (locks of the write-ahead log), NOLFS (file too large).
        Ok(7 | 9 | 10 | 15 | 22) => Cause::Away,
        // FULL.
        Ok(13) => Cause::Full,
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
    fn a_connection_left_inside_a_transaction_is_an_outage_and_no_refusal() {
        for error in [sqlx::Error::InvalidSavePointStatement, sqlx::Error::BeginFailed] {
            assert!(driver(error).is_outage());
        }
    }

    #[test]
    fn codes_of_both_databases_are_told_apart() {
        for (code, expected) in [
            ("40P01", Cause::Contention),
            ("53100", Cause::Full),
            ("53200", Cause::Away),
            ("53300", Cause::Away),
            ("58030", Cause::Away),
            ("25P02", Cause::Connection),
            ("57P02", Cause::Away),
            ("57P03", Cause::Away),
            ("57P04", Cause::Setup),
            ("XX001", Cause::Value),
            ("abcéd", Cause::Statement),
            ("57014", Cause::Away),
            ("57P01", Cause::Away),
            ("28P01", Cause::Setup),
            ("23505", Cause::Statement),
            ("5", Cause::Contention),
            ("517", Cause::Contention),
            ("13", Cause::Full),
            // IOERR_WRITE, IOERR_FSYNC, IOERR_SHMSIZE.
            ("778", Cause::Away),
            ("1034", Cause::Away),
            ("4874", Cause::Away),
            ("15", Cause::Away),
            ("14", Cause::File),
            ("1032", Cause::File),
            ("26", Cause::Setup),
            ("1555", Cause::Statement),
        ] {
            assert_eq!(cause_of_code(code), expected, "{code}");
        }
    }
}
