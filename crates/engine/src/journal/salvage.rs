//! Salvage of a damaged snapshot: every item of every block whose checksum matches.
//!
//! ```text
//!  header? block 1  block 2  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  block 5  block 6  end: 6 blocks, 900 items
//!          └─ kept ────────┘ └─ a gap, named ┘ └─ kept ────────┘  and 700 keys; 700 − kept = missing keys
//! ```
//!
//! A snapshot is not ordered by time, so a snapshot with a gap is the state of no moment. A damaged header
//! alone costs nothing: blocks and their end prove by their numbers that none is missing. Bytes of a gap are
//! never used as data; they only give the names of keys that are probably missing.

use std::ops::ControlFlow;

use super::{
    disk::Disk,
    error::Error,
    frame::{FRAME_HEADER, FrameHeader, Kind},
    manifest::SnapshotEntry,
    reader::{FrameReader, Next},
    snapshot::{Counts, decode_end, split_item},
};

/// The number of bytes of a gap that are searched for names.
const NAMED_BYTES: usize = 16 << 20;
/// The number of names that a report lists.
const MAX_NAMES: usize = 1000;

/// The name of an item, for a person; `None` if the bytes are not an item.
pub(crate) type NameOf<'a> = &'a dyn Fn(&[u8]) -> Option<String>;

/// A range of damaged bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The part of a snapshot that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// The number of keys of which nothing can be read; `None` if the end of the snapshot, which counts keys, is
    /// missing too, or was written before version 2 of the format.
    pub keys: Option<u64>,
    /// The damaged ranges of the snapshot file.
    pub gaps: Vec<Gap>,
    /// Names of keys that are missing, or of which a part is, as far as the damaged ranges show them; at most 1000.
    pub names: Vec<String>,
}

/// The readable part of a snapshot, in figures.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    /// A key whose items lie on both sides of a gap counts once.
    pub(super) counts: Counts,
    pub(super) missing: Missing,
    /// Whether every block and every item is there.
    pub(super) is_whole: bool,
}

/// Reads every item that a checksum covers; `visit` gets each. The snapshot should be `entry`.
pub(super) fn read(
    disk: &dyn Disk,
    (file, entry): (&str, SnapshotEntry),
    name_of: NameOf<'_>,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Salvaged, Error> {
    let mut found = Salvaged::default();
    let Some(mut reader) = FrameReader::open_damaged(disk, Kind::Snapshot, file)? else {
        let length = disk.open(file).and_then(|file| file.length()).unwrap_or_default();
        found.missing.gaps.push(Gap { offset: 0, bytes: length });
        return Ok(found);
    };
    let (mut last_block, mut blocks) = (0, 0);
    let mut last_name = None;
    loop {
        let bad = match reader.next()? {
            Next::Frame { header, .. } if header.mark => {
                let end = decode_end(reader.payload(&header));
                let (all, keys) = (end.map(|(items, _)| items), end.and_then(|(_, keys)| keys));
                found.missing.keys = keys.map(|keys| keys.saturating_sub(found.counts.keys));
                // A file that was copied over this one is whole, too, but another state.
                let is_this =
                    (reader.header().number, reader.header().base) == (entry.number, entry.upto);
                found.is_whole =
                    is_this && blocks == header.sequence && all == Some(found.counts.items);
                return Ok(found);
            }
            // A block that is there twice counts once.
            Next::Frame { header, .. } if header.sequence <= last_block => continue,
            Next::Frame { header, .. } => {
                (last_block, blocks) = (header.sequence, blocks + 1);
                let mut rest = reader.payload(&header);
                while let Some((item, after)) = split_item(rest) {
                    found.counts.items += 1;
                    // The items of a key follow each other. Bytes without a name count as a key.
                    let name = name_of(item);
                    found.counts.keys += u64::from(name.is_none() || name != last_name);
                    last_name = name;
                    visit(item)?;
                    rest = after;
                }
                continue;
            }
            Next::End => return Ok(found),
            Next::Bad { offset, .. } => offset,
        };
        let next = next_good(&reader, bad, last_block)?;
        let gap = Gap { offset: bad, bytes: next.unwrap_or(reader.end()) - bad };
        found.missing.gaps.push(gap);
        let bytes = reader.raw(gap.offset, gap.offset + gap.bytes, NAMED_BYTES)?;
        let room = MAX_NAMES - found.missing.names.len();
        found.missing.names.extend(names(&bytes, name_of).into_iter().take(room));
        match next {
            Some(offset) => reader.seek(offset),
            None => return Ok(found),
        }
    }
}

/// The offset of the first good frame after a bad one.
fn next_good(reader: &FrameReader, bad: u64, last_block: u64) -> Result<Option<u64>, Error> {
    let mut next = None;
    let most = last_block.saturating_add((reader.end() - bad) / FRAME_HEADER as u64 + 1);
    reader.search(bad + 1, last_block..=most, &mut |header, end| {
        next = Some(end - (FRAME_HEADER + header.length) as u64);
        ControlFlow::Break(())
    })?;
    Ok(next)
}

/// The names of items in bytes that no checksum covers.
fn names(bytes: &[u8], name_of: NameOf<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = bytes;
    while rest.len() >= FRAME_HEADER {
        let length = FrameHeader::decode(rest).length;
        let after_header = &rest[FRAME_HEADER..];
        let (mut items, after) = after_header.split_at(length.min(after_header.len()));
        while let Some((item, others)) = split_item(items) {
            let name = name_of(item);
            if names.last() != name.as_ref() {
                names.extend(name);
            }
            items = others;
        }
        rest = after;
    }
    names
}
