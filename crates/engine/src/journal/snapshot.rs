//! The snapshot file: a stream of opaque items.
//!
//! ```text
//! snapshot = header block* end                    framed as in frame.rs; header.base = last sequence contained
//! block    = frame { sequence: 1, 2, 3 …, payload: item* }
//! item     = length u32, bytes
//! end      = mark  { sequence: number of blocks, payload: number of items u64, number of keys u64 }
//!            version 1 has no number of keys
//! ```
//!
//! Items are collected into blocks of about 128 KiB, so that checksum and frame are cheap even for small
//! items. A missing, duplicate or exchanged block breaks the numbering; a truncated file has no end. The
//! manifest names a snapshot only after the whole file was written and synced, so a snapshot cannot be
//! torn: anything wrong with it is damage.

use std::io;

use super::{
    disk::{Disk, DiskFile},
    error::{BoxError, Error},
    frame::{
        FILE_HEADER, FRAME_HEADER, FileHeader, Kind, MAX_RECORD, push_mark, push_record, seal,
        u64_at,
    },
    manifest::SnapshotEntry,
    reader::{FrameReader, Next},
};

/// The size at which a block is closed.
pub(super) const BLOCK: usize = 128 << 10;
/// The file is synced in steps of this size: one large fsync at the end would delay the log's.
const SYNC_STEP: u64 = 8 << 20;

/// Collects items into blocks.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    payload: Vec<u8>,
    pub(super) counts: Counts,
}

/// The number of items and keys of a snapshot. A large key has several items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) items: u64,
    pub(super) keys: u64,
}

impl Counts {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.items.to_le_bytes());
        bytes[8..].copy_from_slice(&self.keys.to_le_bytes());
        bytes
    }
}

/// Decodes the end of a snapshot: the number of items and, since version 2, of keys.
pub(super) fn decode_end(payload: &[u8]) -> Option<(u64, Option<u64>)> {
    match payload.len() {
        8 => Some((u64_at(payload, 0), None)),
        16 => Some((u64_at(payload, 0), Some(u64_at(payload, 8)))),
        _ => None,
    }
}

impl BlockBuilder {
    /// Adds an item; returns the payload of a block when one is full.
    pub(super) fn push(&mut self, item: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if item.len() > MAX_RECORD {
            return Err(Error::TooLarge(item.len()));
        }
        self.counts.items += 1;
        // A block of many items stays small and a large item gets its own block, so blocks obey
        // MAX_RECORD too.
        let full = if self.payload.len() + item.len() > BLOCK { self.take() } else { None };
        self.payload.extend_from_slice(&(item.len() as u32).to_le_bytes());
        self.payload.extend_from_slice(item);
        Ok(full)
    }

    /// Takes the last, incomplete block.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        (!self.payload.is_empty())
            .then(|| std::mem::replace(&mut self.payload, Vec::with_capacity(BLOCK + 64)))
    }
}

/// A snapshot file being written.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    file: Box<dyn DiskFile>,
    header: FileHeader,
    blocks: u64,
    end: u64,
    synced: u64,
    frame: Vec<u8>,
}

impl SnapshotFile {
    /// Creates the snapshot file of all records up to a sequence.
    pub(super) fn create(disk: &dyn Disk, entry: SnapshotEntry) -> io::Result<Self> {
        let header = FileHeader::new(Kind::Snapshot, entry.number, entry.upto);
        let file = disk.create(&Kind::Snapshot.file_name(entry.number))?;
        file.write_all_at(0, &header.encode())?;
        Ok(Self { file, header, blocks: 0, end: FILE_HEADER as u64, synced: 0, frame: Vec::new() })
    }

    /// Writes one block.
    pub(super) fn write_block(&mut self, payload: &[u8]) -> io::Result<()> {
        self.blocks += 1;
        self.frame.clear();
        push_record(&mut self.frame, self.blocks, payload);
        self.write_frame()?;
        if self.end - self.synced >= SYNC_STEP {
            self.file.sync()?;
            self.synced = self.end;
        }
        Ok(())
    }

    /// Writes the end, syncs the file and returns its length.
    pub(super) fn finish(&mut self, counts: Counts) -> io::Result<u64> {
        self.frame.clear();
        push_mark(&mut self.frame, self.blocks, &counts.encode());
        self.write_frame()?;
        self.file.sync()?;
        Ok(self.end)
    }

    fn write_frame(&mut self) -> io::Result<()> {
        seal(&mut self.frame, self.header.salt, 0);
        self.file.write_all_at(self.end, &self.frame)?;
        self.end += self.frame.len() as u64;
        Ok(())
    }
}

/// The size of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SnapshotStats {
    pub(super) items: u64,
    pub(super) bytes: u64,
}

/// Reads a snapshot; `visit` gets every item before the first damage.
pub(super) fn read(
    disk: &dyn Disk,
    entry: SnapshotEntry,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), BoxError>,
) -> Result<SnapshotStats, Error> {
    let mut reader = FrameReader::open(disk, Kind::Snapshot, entry.number, None)?;
    if reader.header().base != entry.upto {
        return Err(reader
            .damage(24, format!("it ends at record {}, not {}", reader.header().base, entry.upto))
            .into());
    }
    let (mut items, mut blocks) = (0, 0);
    loop {
        let (header, offset) = match reader.next()? {
            Next::Frame { header, offset } => (header, offset),
            Next::End => return Err(reader.damage(reader.end(), "its end is missing").into()),
            Next::Bad { offset, what } => return Err(reader.damage(offset, what).into()),
        };
        let mut rest = reader.payload(&header);
        if header.mark {
            let says = decode_end(rest).map(|(items, _)| items);
            let end = offset + (FRAME_HEADER + header.length) as u64;
            if says != Some(items) || header.sequence != blocks || end != reader.end() {
                return Err(reader.damage(offset, "its end does not match its blocks").into());
            }
            return Ok(SnapshotStats { items, bytes: reader.end() });
        }
        blocks += 1;
        if header.sequence != blocks {
            return Err(reader
                .damage(offset, format!("block {blocks} is missing, {} follows", header.sequence))
                .into());
        }
        while let Some((item, after)) = split_item(rest) {
            items += 1;
            visit(item).map_err(|source| Error::Replay {
                what: format!("snapshot item {items}"),
                source,
            })?;
            rest = after;
        }
        if !rest.is_empty() {
            return Err(reader.damage(offset, "an item is longer than its block").into());
        }
    }
}

/// Splits the first item off the payload of a block.
pub(super) fn split_item(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}
