//! Files for what is too large for memory: uploads, and the guests that were read from them.
//!
//! The files have no name. The system deletes them when they are closed, also when the process is killed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncWriteExt, BufWriter};

/// Bytes that are collected before they are written: every write changes the thread.
const COLLECTED: usize = 64 << 10;

/// A folder for files without names. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: Arc<Path>,
}

impl Spool {
    /// A spool in this folder, which is made when it is first needed.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: folder.into() }
    }

    /// A new file.
    pub async fn file(&self) -> io::Result<SpoolFile> {
        let folder = Arc::clone(&self.folder);
        let made = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&folder)?;
            tempfile::tempfile_in(&folder)
        });
        let file = made.await.map_err(io::Error::other)??;
        let file = tokio::fs::File::from_std(file);
        Ok(SpoolFile { file: BufWriter::with_capacity(COLLECTED, file) })
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct SpoolFile {
    file: BufWriter<tokio::fs::File>,
}

impl SpoolFile {
    /// Adds bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// The file, to be read from its beginning.
    pub async fn finish(mut self) -> io::Result<File> {
        self.file.flush().await?;
        Ok(self.file.into_inner().into_std().await)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    #[tokio::test]
    async fn a_file_has_no_name_and_is_gone_when_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().join("uploads"));
        let mut written = spool.file().await.unwrap();
        written.write(b"name\n").await.unwrap();
        written.write(b"Ann\n").await.unwrap();
        let mut file = written.finish().await.unwrap();
        let (mut text, listed) = (String::new(), folder.path().join("uploads"));
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "name\nAnn\n");
        assert_eq!(std::fs::read_dir(listed).unwrap().count(), 0);
    }
}
