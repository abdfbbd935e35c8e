//! Opening a database, migrating it, and closing it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::migrate::MigrateError;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection};
use stampede_telemetry::Metrics;
use tokio::sync::{Mutex, Notify};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::Sql;
use super::address::Address;
use super::dialect::Dialect;
use super::error::{self, is_contention};
use super::file::{make_file, make_folder};
use super::last_write::LastWrite;
use super::migrations::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};
use super::rows::number;
use super::seconds::Seconds;
use crate::limits::Limits;
use crate::{Backend, Durability, Error, Result, Schema};

/// How long an operation waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long migrating may take, waiting for another process that migrates included.
const MIGRATE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

impl Sql {
    /// Opens the database; a SQLite file and its folder are created if they are missing.
    pub(crate) async fn connect(url: &str, max_connections: u32, limits: Limits) -> Result<Self> {
        install_default_drivers();
        let address = Address::parse(url)?;
        make_place(&address).await?;
        // The pool would answer every failure with "timed out"; the first connection tells why.
        let anchor = first_connection(&address.options, address.dialect)
            .await
            .map_err(|error| error::connecting(&address.shown, error))?;

        let settings: Arc<str> = address.dialect.session_settings(limits).into();
        let mut options = AnyPoolOptions::new()
            .max_connections(max_connections.max(1))
            .acquire_timeout(CONNECT_TIMEOUT)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let settings = settings.clone();
                Box::pin(async move {
                    sqlx::raw_sql(AssertSqlSafe(settings)).execute(connection).await?;
                    Ok(())
                })
            });
        options = match address.dialect {
            // A file does not go away like a server does.
            Dialect::Sqlite => options.idle_timeout(None).max_lifetime(None),
            // The pool's own test has no time limit: it would wait for a silent server for ever.
            Dialect::Postgres => options.before_acquire(move |connection, _| {
                Box::pin(async move {
                    match timeout(limits.ping, connection.ping()).await {
                        Ok(answer) => answer.map(|()| true),
                        Err(_) => Err(silent(limits.ping)),
                    }
                })
            }),
        };
        Ok(Self {
            pool: options.connect_lazy_with(address.options),
            dialect: address.dialect,
            writer_turn: (address.dialect == Dialect::Sqlite).then(Arc::default),
            limits,
            writes: Arc::default(),
            pending: Notify::new(),
            last_write: LastWrite::default(),
            anchor: Mutex::new(anchor),
            shown: address.shown.into(),
            seconds: Seconds::of(&Metrics::default()),
        })
    }
}

#[async_trait]
impl Backend for Sql {
    async fn migrate(&self) -> Result<()> {
        // A connection of its own, closed afterwards: a failed migration keeps its lock otherwise.
        let mut connection = self.pool.acquire().await.map_err(error::driver)?.detach();
        let work = async {
            match self.dialect {
                Dialect::Sqlite => migrate_sqlite(&mut connection).await,
                Dialect::Postgres => migrate_postgres(&mut connection).await,
            }
        };
        let result = timeout(MIGRATE_TIMEOUT, work).await;
        let result = result.map_err(|_| Error::no_answer(MIGRATE_TIMEOUT))?;
        connection.close().await.ok();
        result.map_err(|error| error::migrating(&self.shown, error))
    }

    async fn schema(&self) -> Result<Schema> {
        let query = sqlx::query("SELECT version FROM _sqlx_migrations WHERE success");
        let applied: Vec<i64> = match self.fetch_all(query, |row| number(row, "version")).await {
            // No such table: nothing was migrated yet.
            Err(Error::Refused(_)) => return Ok(Schema::Empty),
            applied => applied?,
        };
        let migrator = match self.dialect {
            Dialect::Sqlite => &SQLITE_MIGRATIONS,
            Dialect::Postgres => &POSTGRES_MIGRATIONS,
        };
        let known: Vec<i64> = migrator.iter().map(|migration| migration.version).collect();
        Ok(Schema::compare(&applied, &known))
    }

    async fn ping(&self) -> Result<()> {
        self.probe(CONNECT_TIMEOUT.min(self.limits.read)).await
    }

    async fn close(&self) {
        self.pool.close().await;
        if let Some(anchor) = self.anchor.lock().await.take() {
            anchor.close().await.ok();
        }
    }
}

/// Creates the folder and the file of a SQLite database.
async fn make_place(address: &Address) -> Result<()> {
    let Some(path) = address.file.clone() else { return Ok(()) };
    let folder = address.folder().map(Path::to_owned);
    let make = move || -> Result<()> {
        if let Some(folder) = folder {
            make_folder(&folder).map_err(|error| {
                Error::unusable(format!(
                    "cannot create the folder {} for the database: {error}; choose a folder that \
                     this user may write to",
                    folder.display()
                ))
            })?;
        }
        make_file(&path).map_err(|error| {
            Error::unusable(format!(
                "cannot create the database {}: {error}; choose a folder that this user may write to",
                path.display()
            ))
        })
    };
    // The task is cancelled only when the process is shutting down.
    spawn_blocking(make).await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
}

/// Connects once, to report why if that fails, and turns on SQLite's write-ahead log. The connection to SQLite
/// is kept as the anchor.
async fn first_connection(
    options: &AnyConnectOptions,
    dialect: Dialect,
) -> sqlx::Result<Option<AnyConnection>> {
    let give_up = Instant::now() + CONNECT_TIMEOUT;
    let attempt = || async {
        let mut connection = options.connect().await?;
        if dialect == Dialect::Sqlite {
            // The file keeps this setting. With it, readers never wait for a writer.
            sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await?;
            // Of a new file, only a statement after this setting opens the log: before, the connection holds nothing,
            // and the next one that is closed would delete the log and its index.
            sqlx::raw_sql("SELECT count(*) FROM sqlite_schema").execute(&mut connection).await?;
            return Ok(Some(connection));
        }
        connection.close().await.map(|()| None)
    };
    loop {
        match timeout(CONNECT_TIMEOUT, attempt()).await {
            // Several processes that open a new file at once compete here, and SQLite does not wait by
            // itself when it changes the journal.
            Ok(Err(error)) if is_contention(&error) && Instant::now() < give_up => {
                sleep(Duration::from_millis(20)).await;
            }
            Ok(result) => return result,
            Err(_) => return Err(silent(CONNECT_TIMEOUT)),
        }
    }
}

/// The error for a database that does not answer.
pub(super) fn silent(limit: Duration) -> sqlx::Error {
    let reason = format!("no answer within {limit:?}");
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, reason))
}

// Both call `run_direct`, as `run` does: the future of `run` is not `Send` for a borrowed connection.

/// One transaction around all migrations is the lock: the driver has none for SQLite.
async fn migrate_sqlite(connection: &mut AnyConnection) -> std::result::Result<(), MigrateError> {
    sqlx::raw_sql("PRAGMA busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with(Dialect::Sqlite.begin(Durability::Synced)).await?;
    SQLITE_MIGRATIONS.run_direct(None, &mut *transaction, false).await?;
    transaction.commit().await?;
    Ok(())
}

/// The driver takes an advisory lock. The limits are lifted: another process may migrate for long.
async fn migrate_postgres(connection: &mut AnyConnection) -> std::result::Result<(), MigrateError> {
    sqlx::raw_sql(
        "SET lock_timeout = 0; SET statement_timeout = 0; \
         SET idle_in_transaction_session_timeout = 0",
    )
    .execute(&mut *connection)
    .await?;
    POSTGRES_MIGRATIONS.run_direct(None, &mut *connection, false).await
}

#[cfg(test)]
mod tests {
    use sqlx::Row;
    use stampede_testkit::{Postgres, temp_dir};

    use super::*;

    async fn setting(url: &str, question: &'static str) -> String {
        let limits = Limits::new(Duration::from_secs(10));
        let sql = Sql::connect(url, 4, limits).await.unwrap();
        let row = sqlx::query(question).fetch_one(&sql.pool).await.unwrap();
        row.try_get::<String, _>(0)
            .or_else(|_| row.try_get::<i64, _>(0).map(|number| number.to_string()))
            .unwrap()
    }

    #[tokio::test]
    async fn every_sqlite_connection_has_its_settings() {
        let folder = temp_dir();
        let url = format!("sqlite:{}/x.db", folder.path().display());
        for (question, answer) in [
            ("PRAGMA synchronous", "2"),
            ("PRAGMA journal_mode", "wal"),
            ("PRAGMA foreign_keys", "1"),
            ("PRAGMA busy_timeout", "10000"),
        ] {
            assert_eq!(setting(&url, question).await, answer, "{question}");
        }
    }

    #[tokio::test]
    async fn the_log_of_a_new_sqlite_file_stays_when_all_other_connections_are_closed() {
        let folder = temp_dir();
        let url = format!("sqlite:{}/x.db", folder.path().display());
        let sql = Sql::connect(&url, 4, Limits::new(Duration::from_secs(10))).await.unwrap();
        let mut connection = sql.pool.acquire().await.unwrap().detach();
        sqlx::raw_sql("CREATE TABLE t (x)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        for name in ["x.db-wal", "x.db-shm"] {
            assert!(folder.path().join(name).exists(), "{name} could not be made on a full disk");
        }
        sql.close().await;
    }

    #[tokio::test]
    async fn every_postgres_connection_has_its_settings() {
        let server = Postgres::start().await;
        for (question, answer) in [
            ("SHOW synchronous_commit", "on"),
            ("SHOW lock_timeout", "10s"),
            ("SHOW statement_timeout", "65s"),
        ] {
            assert_eq!(setting(&server.url(), question).await, answer, "{question}");
        }
    }
}
