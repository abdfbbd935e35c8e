//! The storages that the conformance suite runs on.
//!
//! Adding a storage? Implement [`Kind`] for it here and add a line to `on_every_storage!`.

use std::any::Any;
use std::sync::Arc;

use object_store::memory::InMemory;
use stampede_files::{Config, Durability, Files, PublicBase};

/// Makes a test a storage of each function named.
macro_rules! on_every_storage {
    ($($name:ident),+ $(,)?) => {
        on_storage!(folder, Folder, $($name),+);
        on_storage!(memory, Memory, $($name),+);
    };
}

/// Makes a test of each function named, on one storage.
macro_rules! on_storage {
    ($module:ident, $kind:ident, $($name:ident),+) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                use crate::storages::{$kind, Kind};
                let (files, _guard) = $kind::open().await;
                super::$name(files).await;
            })+
        }
    };
}

pub(crate) use {on_every_storage, on_storage};

/// A kind of storage that the suite runs on.
pub(crate) trait Kind {
    /// Opens an empty storage, with a guard that ends it when dropped.
    async fn open() -> (Files, Box<dyn Any + Send>);
}

/// A folder of this machine.
pub(crate) struct Folder;

impl Kind for Folder {
    async fn open() -> (Files, Box<dyn Any + Send>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("public");
        let files = Files::open(&Config { root, durability: Durability::Relaxed }).await.unwrap();
        (files, Box::new(folder))
    }
}

/// The memory of the test, in the place of a remote storage.
pub(crate) struct Memory;

impl Kind for Memory {
    async fn open() -> (Files, Box<dyn Any + Send>) {
        let base = PublicBase::Url("https://cdn.example.com/public".into());
        (Files::on(Arc::new(InMemory::new()), base), Box::new(()))
    }
}
