//! A file of the faulty disk: short writes, a full disk, failing syncs.

use std::io;

use super::{Change, FaultyDisk, put};
use crate::journal::disk::DiskFile;

/// An open file.
#[derive(Debug)]
pub(super) struct FaultyFile {
    pub(super) disk: FaultyDisk,
    pub(super) file: u64,
}

impl DiskFile for FaultyFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.files[&self.file].current;
        let from = bytes.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut guard = self.disk.pass();
        let state = &mut *guard;
        let last = state.step()?;
        let mut n = bytes.len();
        if let Some(capacity) = state.capacity {
            let used: usize =
                state.names.values().map(|file| state.files[file].current.len()).sum();
            let inside = state.files[&self.file].current.len().saturating_sub(offset as usize);
            n = n.min(capacity.saturating_sub(used) + inside);
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        // Short writes are legal at any time.
        if state.rng.u8(..8) == 0 {
            n = state.rng.usize(1..=n);
        }
        let content = state.files.get_mut(&self.file).unwrap();
        put(&mut content.current, offset as usize, &bytes[..n]);
        content.pending.push(Change::Write(offset as usize, bytes[..n].to_vec()));
        if last { Err(io::Error::other("the power went off")) } else { Ok(n) }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.pass();
        let last = state.step()?;
        let content = state.files.get_mut(&self.file).unwrap();
        content.current.truncate(length as usize);
        content.pending.push(Change::Truncate(length as usize));
        if last { Err(io::Error::other("the power went off")) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut guard = self.disk.pass();
        guard.hanging_syncs += 1;
        let covered = guard.files[&self.file].pending.len();
        guard = self.disk.gate.wait_while(guard, |state| state.slow_syncs && !state.dead).unwrap();
        guard.hanging_syncs -= 1;
        let state = &mut *guard;
        let stepped = state.step();
        let content = state.files.get_mut(&self.file).unwrap();
        match stepped {
            Ok(false) if !state.sync_fails => {
                // What was written since the sync began is not covered by it.
                let later = content.pending.split_off(covered.min(content.pending.len()));
                content.sync();
                content.pending = later;
                Ok(())
            }
            Ok(true) => Err(io::Error::other("the power went off")),
            failed => {
                if !state.dead {
                    content.settle(&mut state.rng);
                }
                Err(failed.err().unwrap_or_else(|| io::Error::other("injected sync failure")))
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.file].current.len() as u64)
    }
}
