//! The backends that the conformance suite runs on.
//!
//! Adding a backend? Implement [`Kind`] for it here and add a line to `on_every_backend!`.

use std::any::Any;

use stampede_store::{Config, Store, TicketSecret};
use stampede_testkit::temp_dir;

/// Makes a test a backend of each function named.
macro_rules! on_every_backend {
    ($($name:ident),+ $(,)?) => {
        on_every_sql_backend!($($name),+);
    };
}

/// Makes a test a SQL backend of each function named.
macro_rules! on_every_sql_backend {
    ($($name:ident),+ $(,)?) => {
        on_backend!(sqlite, Sqlite, $($name),+);
        on_backend!(postgres, Postgres, $($name),+);
    };
}

/// Makes a test of each function named, on one backend.
macro_rules! on_backend {
    ($module:ident, $kind:ident, $($name:ident),+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use crate::backends::{$kind, Database};
                super::$name(Database::fresh::<$kind>().await).await;
            })+
        }
    };
}

/// A kind of database that the suite runs on.
pub(crate) trait Kind {
    /// Starts an empty database and returns its address, with a guard that ends it when dropped.
    async fn start() -> (String, Box<dyn Any + Send + Sync>);
}

/// A SQLite file in a folder of its own.
pub(crate) struct Sqlite;

impl Kind for Sqlite {
    async fn start() -> (String, Box<dyn Any + Send + Sync>) {
        let folder = temp_dir();
        (format!("sqlite:{}/data/stampede.db", folder.path().display()), Box::new(folder))
    }
}

/// A PostgreSQL server of its own.
pub(crate) struct Postgres;

impl Kind for Postgres {
    async fn start() -> (String, Box<dyn Any + Send + Sync>) {
        let server = stampede_testkit::Postgres::start().await;
        (server.url(), Box::new(server))
    }
}

/// The ticket secret of all handles.
pub(crate) fn secret() -> TicketSecret {
    TicketSecret::new("the secret of this test")
}

/// An empty database that ends with the test.
pub(crate) struct Database {
    pub(crate) url: String,
    _guard: Box<dyn Any + Send + Sync>,
}

impl Database {
    /// Starts an empty database.
    pub(crate) async fn fresh<K: Kind>() -> Self {
        let (url, guard) = K::start().await;
        Self { url, _guard: guard }
    }

    /// Opens the database as another process would, with connections of its own, without a secret.
    pub(crate) async fn reader(&self) -> Store {
        let config = Config { url: self.url.clone(), ..Config::default() };
        Store::connect(&config).await.unwrap()
    }

    /// Opens the database as another process would, with connections of its own.
    pub(crate) async fn handle(&self) -> Store {
        self.reader().await.with_ticket_secret(&secret())
    }

    /// Opens the database and makes its tables.
    pub(crate) async fn store(&self) -> Store {
        let store = self.handle().await;
        store.migrate().await.unwrap();
        store
    }
}
