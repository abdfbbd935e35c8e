//! Making written records durable: copies until then, the two halves of a sync, and the rewrite after a failed one.
//! The header of `log.rs` has the drawing.

use std::{io, sync::Arc};

use super::{Chunk, Copies, Log, LogError};
use crate::journal::{
    disk::DiskFile,
    frame::{FILE_HEADER, Kind, seal},
    manifest::InstallError,
};

/// A sync of the open segment between its two halves.
#[derive(Debug)]
pub(in crate::journal) struct Sync {
    pub(in crate::journal) file: Arc<dyn DiskFile>,
    end: u64,
    written: u64,
}

impl Log {
    /// Takes a chunk that [`Self::write`] has written; returns its buffer if it is no longer needed.
    ///
    /// Chunks of one round of an event loop are small: they are joined, so that a copy takes no more memory than
    /// its bytes.
    pub(in crate::journal) fn retain(&mut self, chunk: Chunk, copies: Copies) -> Option<Chunk> {
        if copies == Copies::Drop {
            self.uncopied = chunk.last;
            return Some(chunk);
        }
        self.unsynced_bytes += chunk.bytes.len();
        if self.unsynced.len() > self.syncing
            && let Some(open) = self.unsynced.last_mut()
            && open.bytes.len() + chunk.bytes.len() <= open.bytes.capacity()
        {
            open.bytes.extend_from_slice(&chunk.bytes);
            open.last = chunk.last;
            return Some(chunk);
        }
        self.unsynced.push(chunk);
        None
    }

    /// The first half of a sync; the caller syncs the file and calls [`Self::end_sync`]. `None`: nothing to sync.
    pub(in crate::journal) fn begin_sync(&mut self) -> Option<Sync> {
        // Not `is_dirty`: marks must be synced too, because a sealed segment must be complete.
        if self.suspect.is_some() || self.end == self.durable_end {
            return None;
        }
        self.syncing = self.unsynced.len();
        Some(Sync { file: self.file.clone(), end: self.end, written: self.written })
    }

    /// The second half of a sync; returns chunks whose copies are no longer needed.
    pub(in crate::journal) fn end_sync(
        &mut self,
        sync: &Sync,
        synced: io::Result<()>,
    ) -> Vec<Chunk> {
        let covered = std::mem::take(&mut self.syncing);
        if let Err(error) = synced {
            self.suspect = Some(self.sentence("sync", &error));
            return Vec::new();
        }
        self.durable = sync.written;
        self.durable_end = sync.end;
        let done: Vec<Chunk> = self.unsynced.drain(..covered).collect();
        self.unsynced_bytes -= done.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
        done
    }

    /// Makes all whole chunks durable, without a pause in which others could write; returns chunks whose copies
    /// are no longer needed.
    pub(in crate::journal) fn sync(&mut self) -> Result<Vec<Chunk>, LogError> {
        let mut done = Vec::new();
        if let Some(sync) = self.begin_sync() {
            let synced = sync.file.sync();
            done = self.end_sync(&sync, synced);
        }
        if self.is_suspect() {
            done.extend(self.rewrite_unsynced()?);
        }
        Ok(done)
    }

    /// Whether the last sync of the open segment failed, so that [`Self::sync`] must run before the
    /// next write.
    pub(in crate::journal) fn is_suspect(&self) -> bool {
        self.suspect.is_some()
    }

    /// Moves all records after the last successful sync to a new segment, after a failed one.
    pub(in crate::journal) fn rewrite_unsynced(&mut self) -> Result<Vec<Chunk>, LogError> {
        let reason = self.suspect.clone().unwrap_or_default();
        if self.uncopied > self.durable {
            return Err(LogError::Fatal(format!(
                "{reason}; records after {} may be lost, because fsync policy never keeps no copies",
                self.durable
            )));
        }
        let (file, header) = self
            .new_segment(self.durable)
            .map_err(|e| LogError::Retry(format!("{reason}; {e}")))?;
        let mut end = FILE_HEADER as u64;
        let mut rewrite = || {
            for chunk in &mut self.unsynced {
                seal(&mut chunk.bytes, header.salt, self.durable);
                file.write_all_at(end, &chunk.bytes)?;
                end += chunk.bytes.len() as u64;
            }
            file.sync()
        };
        if let Err(error) = rewrite() {
            let _ = self.disk.remove(&Kind::Log.file_name(header.number));
            return Err(LogError::Retry(format!("{reason}; the new segment failed too: {error}")));
        }
        match self.switch(file, header, self.durable_end) {
            Ok(()) => {}
            Err(InstallError::Unchanged(error) | InstallError::Unknown(error)) => {
                return Err(LogError::Retry(format!(
                    "{reason}; the new manifest failed too: {error}"
                )));
            }
        }
        tracing::warn!(%reason, segment = header.number, "unsynced records were rewritten to a new segment");
        self.suspect = None;
        self.end = end;
        self.durable_end = end;
        self.durable = self.written;
        self.unsynced_bytes = 0;
        Ok(std::mem::take(&mut self.unsynced))
    }
}
