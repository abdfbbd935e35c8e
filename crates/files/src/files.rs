//! [`Files`]: put, get, size, delete and address, on any storage.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::name::key;
use crate::{Address, Config, Durability, Error, PublicBase};

/// Size of the file that a probe writes: a storage with less room than for a PDF cannot be used.
const PROBE_BYTES: usize = 64 << 10;

/// Files in a storage. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Files {
    storage: Arc<dyn ObjectStore>,
    base: Arc<PublicBase>,
}

impl Files {
    /// Opens a folder and proves that it can be written to. A folder on a disk that is full or fails is opened
    /// too: its files can be read, and the disk may be well again before the first file is written.
    pub async fn open(config: &Config) -> Result<Self, Error> {
        let unusable = |reason: &dyn Display| Error::unusable_folder(&config.root, reason);
        tokio::fs::create_dir_all(&config.root).await.map_err(|e| unusable(&e))?;
        let root = tokio::fs::canonicalize(&config.root).await.map_err(|e| unusable(&e))?;
        let storage = LocalFileSystem::new_with_prefix(&root)
            .map_err(|e| unusable(&e))?
            .with_fsync(config.durability == Durability::SyncEach);
        let files = Self::on(Arc::new(storage), PublicBase::Folder(root));
        match files.probe().await {
            Err(error) if !error.is_of_disk() => Err(unusable(&error)),
            _ => Ok(files),
        }
    }

    /// Files in any storage, whose public addresses begin with `base`. The storage must replace objects
    /// whole, as all storages of `object_store` do.
    pub fn on(storage: Arc<dyn ObjectStore>, base: PublicBase) -> Self {
        Self { storage, base: Arc::new(base) }
    }

    /// Writes, reads and deletes a file, to prove that the storage can be used.
    pub async fn probe(&self) -> Result<(), Error> {
        // Other processes may probe the same storage, with the same process id in other containers.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!(".probe-{}-{now}", std::process::id());
        self.put(&name, vec![b'.'; PROBE_BYTES]).await?;
        let read = self.get(&name).await;
        self.delete(&name).await?;
        read.map(drop)
    }

    /// Writes a file; a concurrent reader sees the former content.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), Error> {
        self.storage.put(&key(name)?, PutPayload::from(content)).await?;
        Ok(())
    }

    /// Reads a file; `None` if there is none.
    pub async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.storage.get(&key(name)?).await {
            Ok(found) => Ok(Some(found.bytes().await?.into())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the size of a file in bytes; `None` if there is none.
    pub async fn size(&self, name: &str) -> Result<Option<u64>, Error> {
        match self.storage.head(&key(name)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file; idempotent.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.storage.delete(&key(name)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the public address of a file, for people and for other programs. It does not check whether
    /// the file exists.
    pub fn address(&self, name: &str) -> Address {
        self.base.join(name)
    }
}
