//! An empty database of either kind, for one test.

use stampede_store::{Config, Durability, Store, TicketSecret};
use stampede_testkit::{Postgres, TempDir, temp_dir};

/// The secret of all handles.
pub(crate) fn secret() -> TicketSecret {
    TicketSecret::new("the secret of this test")
}

/// An empty database that goes away with the test.
pub(crate) struct Database {
    pub(crate) url: String,
    _place: Place,
}

/// Kept only to be dropped.
#[allow(dead_code)]
enum Place {
    Folder(TempDir),
    Server(Postgres),
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let folder = temp_dir();
        let url = format!("sqlite:{}/data/stampede.db", folder.path().display());
        Self { url, _place: Place::Folder(folder) }
    }

    pub(crate) async fn postgres() -> Self {
        let server = Postgres::start().await;
        Self { url: server.url(), _place: Place::Server(server) }
    }

    /// A handle with connections of its own, as another process would have.
    pub(crate) async fn handle(&self, durability: Durability) -> Store {
        let config = Config { url: self.url.clone(), durability, ..Config::default() };
        Store::connect(&config).await.unwrap().with_ticket_secret(&secret())
    }

    /// A handle to the database with its tables.
    pub(crate) async fn store(&self) -> Store {
        let store = self.handle(Durability::EveryCommit).await;
        store.migrate().await.unwrap();
        store
    }
}
