//! Rendered output: written whole or not at all, below one folder.
//!
//! A file is written under a temporary name and then renamed, so a reader sees the old content or
//! the new, never half of it. Files are not synced to disk one by one unless asked for: a PDF can be
//! made again byte for byte from the store, and whoever serves one checks its size and fingerprint.
//!
//! This crate must never know what is inside a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::{ObjectStoreExt, PutPayload, path::Path as Key};

/// Whether a file is forced to disk before it counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Every file is synced before its `put` returns.
    SyncEach,
    /// The operating system writes in its own time; a power cut may lose files that can be remade.
    Relaxed,
}

/// Where files are kept.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder; made if it does not exist.
    pub root: PathBuf,
    /// Whether to sync each file.
    pub durability: Durability,
}

/// What went wrong, with the place it happened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder cannot be used at all.
    #[error("cannot write to the folder {}: {reason}. Check PUBLIC_PATH (or DATA_DIR) and its permissions", .root.display())]
    Unusable {
        /// The folder.
        root: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// One operation failed.
    #[error("files: {0}")]
    Storage(#[from] object_store::Error),
    /// The name would lead out of the folder or is otherwise unfit.
    #[error("files: {0:?} is not a valid name")]
    Name(String),
}

/// A folder of files. Cheap to clone.
#[derive(Clone)]
pub struct Files {
    storage: Arc<LocalFileSystem>,
    root: Arc<Path>,
}

impl Files {
    /// Opens the folder and proves that it can be written to.
    pub async fn open(config: &Config) -> Result<Self, Error> {
        let unusable = |reason: &dyn std::fmt::Display| Error::Unusable {
            root: config.root.clone(),
            reason: reason.to_string(),
        };
        tokio::fs::create_dir_all(&config.root).await.map_err(|e| unusable(&e))?;
        let root = tokio::fs::canonicalize(&config.root).await.map_err(|e| unusable(&e))?;
        let storage = LocalFileSystem::new_with_prefix(&root)
            .map_err(|e| unusable(&e))?
            .with_fsync(config.durability == Durability::SyncEach);
        let files = Self { storage: Arc::new(storage), root: root.into() };
        let probe = format!(".probe-{}", std::process::id());
        files.put(&probe, Vec::new()).await.map_err(|e| unusable(&e))?;
        files.delete(&probe).await.map_err(|e| unusable(&e))?;
        Ok(files)
    }

    /// Writes a file; whoever reads it meanwhile sees what was there before.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), Error> {
        self.storage.put(&key(name)?, PutPayload::from(content)).await?;
        Ok(())
    }

    /// Reads a file; `None` if there is none.
    pub async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.storage.get(&key(name)?).await {
            Ok(found) => Ok(Some(found.bytes().await?.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Size of a file in bytes; `None` if there is none.
    pub async fn size(&self, name: &str) -> Result<Option<u64>, Error> {
        match self.storage.head(&key(name)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file; one that is not there is deleted already.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.storage.delete(&key(name)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Where a file is, for people and for programs on the same machine.
    pub fn location(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

fn key(name: &str) -> Result<Key, Error> {
    Key::parse(name).map_err(|_| Error::Name(name.chars().take(100).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn files() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("public");
        let files = Files::open(&Config { root, durability: Durability::Relaxed }).await.unwrap();
        (folder, files)
    }

    #[tokio::test]
    async fn a_file_is_replaced_as_a_whole() {
        let (_folder, files) = files().await;
        assert_eq!(files.get("tickets/a.pdf").await.unwrap(), None);
        files.put("tickets/a.pdf", b"first".to_vec()).await.unwrap();
        files.put("tickets/a.pdf", b"second!".to_vec()).await.unwrap();
        assert_eq!(files.get("tickets/a.pdf").await.unwrap().unwrap(), b"second!");
        assert_eq!(files.size("tickets/a.pdf").await.unwrap(), Some(7));
        let names = std::fs::read_dir(files.location("tickets")).unwrap().count();
        assert_eq!(names, 1, "no temporary file is left behind");
    }

    #[tokio::test]
    async fn deleting_twice_is_fine() {
        let (_folder, files) = files().await;
        files.put("a", vec![1]).await.unwrap();
        files.delete("a").await.unwrap();
        files.delete("a").await.unwrap();
        assert_eq!(files.size("a").await.unwrap(), None);
    }

    #[tokio::test]
    async fn names_cannot_lead_out_of_the_folder() {
        let (_folder, files) = files().await;
        for name in ["../evil", "a/../../evil", "tickets/..", "a//b"] {
            assert!(matches!(files.put(name, vec![]).await, Err(Error::Name(_))), "{name}");
        }
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_named() {
        let (folder, _files) = files().await;
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let root = file.join("public");
        let opened = Files::open(&Config { root, durability: Durability::Relaxed }).await;
        let message = opened.err().unwrap().to_string();
        assert!(message.contains("file/public") && message.contains("PUBLIC_PATH"), "{message}");
    }
}
