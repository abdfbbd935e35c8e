//! Opening a database, bringing it up to date, and letting it go.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::migrate::MigrateError;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions, Connection};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use crate::address::Address;
use crate::dialect::Dialect;
use crate::error::is_contention;
use crate::file::{make_file, make_folder};
use crate::lease::Limits;
use crate::migrations::{POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};
use crate::ticket_keys::Vault;
use crate::{Error, Result};

/// How long anything waits for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long bringing the tables up to date may take, waiting for another process that does so included.
const MIGRATE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Which database, and how it is used.
#[derive(Debug, Clone)]
pub struct Config {
    /// `sqlite:/path/stampede.db` or `postgres://user:password@host:5432/stampede`.
    pub url: String,
    /// What a commit promises.
    pub durability: Durability,
    /// Connections of this process; at least one.
    pub max_connections: u32,
    /// How long a read may take before the caller gets `Unavailable`; a write transaction gets three
    /// times as long, an order six times.
    pub statement_timeout: Duration,
}

impl Default for Config {
    /// Everything but the address, which has to be given.
    fn default() -> Self {
        Self {
            url: String::new(),
            durability: Durability::EveryCommit,
            max_connections: 4,
            statement_timeout: Duration::from_secs(10),
        }
    }
}

/// What a commit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power failure: for orders, which nobody else remembers.
    EveryCommit,
    /// The last moments may be lost in a power failure, never a consistent state: for workers, whose
    /// completions can be redone.
    Relaxed,
}

/// The records. Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: AnyPool,
    pub(crate) dialect: Dialect,
    /// SQLite has one writer at a time. Writers of this process queue here, in order and without
    /// polling the file's lock, which only other processes then compete for.
    pub(crate) turn: Option<Arc<Mutex<()>>>,
    pub(crate) limits: Limits,
    /// Opens the private keys of events, for those who may.
    pub(crate) vault: Option<Arc<Vault>>,
    shown: Arc<str>,
}

impl Store {
    /// Opens the database; a SQLite file and its folder are created when missing.
    pub async fn connect(config: &Config) -> Result<Self> {
        install_default_drivers();
        let address = Address::parse(&config.url)?;
        make_place(&address).await?;
        // The pool would answer every failure with "timed out"; the first connection tells why.
        first_connection(&address.options, address.dialect)
            .await
            .map_err(|error| Error::connecting(&address.shown, error))?;

        let limits = Limits::new(config.statement_timeout);
        let settings: Arc<str> = address.dialect.session_settings(config.durability, limits).into();
        let mut options = AnyPoolOptions::new()
            .max_connections(config.max_connections.max(1))
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
            // The pool's own test would wait for a silent server as long as it takes.
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
            turn: (address.dialect == Dialect::Sqlite).then(Arc::default),
            limits,
            vault: None,
            shown: address.shown.into(),
        })
    }

    /// Brings the tables up to date; any number of processes may do so at the same moment.
    pub async fn migrate(&self) -> Result<()> {
        // A connection of its own, closed afterwards: a failed migration keeps its lock otherwise.
        let mut connection = self.pool.acquire().await?.detach();
        let work = async {
            match self.dialect {
                Dialect::Sqlite => migrate_sqlite(&mut connection).await,
                Dialect::Postgres => migrate_postgres(&mut connection).await,
            }
        };
        let result = timeout(MIGRATE_TIMEOUT, work).await;
        let result = result.map_err(|_| Error::no_answer(MIGRATE_TIMEOUT))?;
        connection.close().await.ok();
        result.map_err(|error| Error::migrating(&self.shown, error))
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        let question = async {
            let mut lease = self.lease().await?;
            let answer = sqlx::query("SELECT 1").execute(&mut *lease).await;
            lease.give_back();
            answer.map(|_| ())
        };
        let limit = CONNECT_TIMEOUT.min(self.limits.read);
        let answer = timeout(limit, question).await.unwrap_or_else(|_| Err(silent(limit)));
        answer.map_err(|error| {
            Error::Unavailable(format!("the database {} does not answer: {error}", self.shown))
        })
    }

    /// Waits for running operations and closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Makes the folder and the file of the database, when it is one that has them.
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
    // It ends in no other way than by its own result, unless the process is shutting down.
    spawn_blocking(make).await.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
}

/// Connects once, to learn whether that works, and turns on SQLite's write-ahead log.
async fn first_connection(options: &AnyConnectOptions, dialect: Dialect) -> sqlx::Result<()> {
    let give_up = Instant::now() + CONNECT_TIMEOUT;
    let attempt = || async {
        let mut connection = options.connect().await?;
        if dialect == Dialect::Sqlite {
            // Kept in the file, so once is enough. Readers then never wait for a writer.
            sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut connection).await?;
        }
        connection.close().await
    };
    loop {
        match timeout(CONNECT_TIMEOUT, attempt()).await {
            // Several processes that open a new file at once get in each other's way here, and
            // SQLite does not wait by itself when it changes the journal.
            Ok(Err(error)) if is_contention(&error) && Instant::now() < give_up => {
                sleep(Duration::from_millis(20)).await;
            }
            Ok(result) => return result,
            Err(_) => return Err(silent(CONNECT_TIMEOUT)),
        }
    }
}

/// What is told of a database that keeps silent.
fn silent(limit: Duration) -> sqlx::Error {
    let reason = format!("no answer within {limit:?}");
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, reason))
}

// Both use `run_direct`, what `run` calls: the future of `run` is not `Send` for a borrowed connection.

/// The driver has no lock for SQLite: one transaction around all migrations is the lock.
async fn migrate_sqlite(connection: &mut AnyConnection) -> std::result::Result<(), MigrateError> {
    sqlx::raw_sql("PRAGMA busy_timeout = 60000").execute(&mut *connection).await?;
    let mut transaction = connection.begin_with(Dialect::Sqlite.begin()).await?;
    SQLITE_MIGRATIONS.run_direct(None, &mut *transaction, false).await?;
    transaction.commit().await?;
    Ok(())
}

/// The driver takes an advisory lock, for which a long migration of another process may be waited.
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

    async fn setting(url: &str, durability: Durability, question: &'static str) -> String {
        let config = Config { url: url.to_owned(), durability, ..Config::default() };
        let store = Store::connect(&config).await.unwrap();
        let row = sqlx::query(question).fetch_one(&store.pool).await.unwrap();
        row.try_get::<String, _>(0)
            .or_else(|_| row.try_get::<i64, _>(0).map(|number| number.to_string()))
            .unwrap()
    }

    #[tokio::test]
    async fn every_sqlite_connection_has_its_settings() {
        let folder = temp_dir();
        let url = format!("sqlite:{}/x.db", folder.path().display());
        for (durability, question, answer) in [
            (Durability::EveryCommit, "PRAGMA synchronous", "2"),
            (Durability::Relaxed, "PRAGMA synchronous", "1"),
            (Durability::Relaxed, "PRAGMA journal_mode", "wal"),
            (Durability::Relaxed, "PRAGMA foreign_keys", "1"),
            (Durability::Relaxed, "PRAGMA busy_timeout", "10000"),
        ] {
            assert_eq!(setting(&url, durability, question).await, answer, "{question}");
        }
    }

    #[tokio::test]
    async fn every_postgres_connection_has_its_settings() {
        let server = Postgres::start().await;
        for (durability, question, answer) in [
            (Durability::EveryCommit, "SHOW synchronous_commit", "on"),
            (Durability::Relaxed, "SHOW synchronous_commit", "off"),
            (Durability::EveryCommit, "SHOW lock_timeout", "10s"),
            (Durability::EveryCommit, "SHOW statement_timeout", "65s"),
        ] {
            assert_eq!(setting(&server.url(), durability, question).await, answer, "{question}");
        }
    }
}
