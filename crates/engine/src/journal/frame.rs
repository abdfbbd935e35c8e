//! The framed file: the format of log segments and snapshots.
//!
//! ```text
//! file   = header frame*                                             all numbers little-endian
//!
//! header   0        8         12        16         24        32       36    40
//!          | magic  | version | crc32c  | number   | base    | salt   | 0   |
//!          crc32c covers bytes 0..12 and 16..40
//!
//! frame    0        4         8           16         24
//!          | crc32c | length  | sequence  | synced   | payload … |
//!          crc32c starts from the file's salt and covers bytes 4.. of the frame
//!          length: bit 31 set = a mark, not a record
//! ```
//!
//! - `number` is the number in the file's name; it detects a file copied over another.
//! - `base` is the sequence before the first record (log) or the last one contained (snapshot).
//! - `salt` is random per file. It prevents a value that contains bytes of another journal from being
//!   taken for a frame when the reader searches for good frames after a bad one.
//! - `sequence` counts records by one without gaps, over all segments. A mark repeats the last one.
//! - `synced` is the watermark: when the frame was written, a successful fsync had covered every record
//!   up to this sequence. It distinguishes a torn tail from a flipped bit, see `reader.rs`.
//!
//! The appender leaves crc32c and `synced` empty; [`seal`] fills them on the writer's thread. Frames may
//! be sealed again for another file: after a failed fsync, records move to a new segment that way.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The size of a file header.
pub(super) const FILE_HEADER: usize = 40;
/// The size of a frame header.
pub(super) const FRAME_HEADER: usize = 24;
/// The format version written, and the newest one read.
///
/// - 1: the first.
/// - 2: records of consumer groups, which a program that knows version 1 would drop; the end of a snapshot counts keys.
///
/// Adding a kind of record? Raise it, so that an older program refuses the journal instead of dropping records.
pub(super) const VERSION: u32 = 2;
/// The largest record or snapshot item: 1 GiB.
pub(crate) const MAX_RECORD: usize = 1 << 30;

const MARK: u32 = 1 << 31;

/// The kind of a framed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Records, one frame each.
    Log,
    /// Snapshot items, many to a frame.
    Snapshot,
}

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"STAMPLOG",
            Self::Snapshot => b"STAMPSNP",
        }
    }

    /// The name of a file of this kind.
    pub(super) fn file_name(self, number: u64) -> String {
        match self {
            Self::Log => format!("{number:010}.log"),
            Self::Snapshot => format!("{number:010}.snapshot"),
        }
    }

    /// The kind and number in a file name, if the file belongs to a journal.
    pub(super) fn of_file_name(name: &str) -> Option<(Self, u64)> {
        let (number, kind) = match name.split_once('.')? {
            (number, "log") => (number, Self::Log),
            (number, "snapshot") => (number, Self::Snapshot),
            _ => return None,
        };
        let number = number.parse().ok()?;
        (kind.file_name(number) == name).then_some((kind, number))
    }
}

/// The header of a framed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) kind: Kind,
    pub(super) number: u64,
    pub(super) base: u64,
    pub(super) salt: u32,
}

/// Why a file header is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    Bad(&'static str),
    TooNew(u32),
}

impl FileHeader {
    /// A header with a new salt.
    pub(super) fn new(kind: Kind, number: u64, base: u64) -> Self {
        // The standard library's random source; the salt must be unpredictable, not uniform.
        let salt = RandomState::new().build_hasher().finish() as u32;
        Self { kind, number, base, salt }
    }

    pub(super) fn encode(&self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[0..8].copy_from_slice(self.kind.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.base.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.salt.to_le_bytes());
        let crc = Self::crc(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(kind: Kind, bytes: &[u8; FILE_HEADER]) -> Result<Self, HeaderError> {
        if &bytes[0..8] != kind.magic() {
            return Err(HeaderError::Bad("it does not begin as a journal file"));
        }
        if Self::crc(bytes) != u32_at(bytes, 12) {
            return Err(HeaderError::Bad("the checksum of its header does not match"));
        }
        // Checked after the checksum: a flipped bit must not pass for a newer version.
        let version = u32_at(bytes, 8);
        if version == 0 || version > VERSION {
            return Err(HeaderError::TooNew(version));
        }
        Ok(Self::decode_unchecked(kind, bytes))
    }

    /// Decodes a header whose checksum may not match.
    pub(super) fn decode_unchecked(kind: Kind, bytes: &[u8; FILE_HEADER]) -> Self {
        Self { kind, number: u64_at(bytes, 16), base: u64_at(bytes, 24), salt: u32_at(bytes, 32) }
    }

    fn crc(bytes: &[u8; FILE_HEADER]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&bytes[0..12]), &bytes[16..])
    }
}

/// The header of a frame, not yet verified by its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) crc: u32,
    pub(super) mark: bool,
    pub(super) length: usize,
    pub(super) sequence: u64,
    pub(super) synced: u64,
}

impl FrameHeader {
    /// Decodes the first [`FRAME_HEADER`] bytes of a slice; the slice must be long enough.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let length = u32_at(bytes, 4);
        Self {
            crc: u32_at(bytes, 0),
            mark: length & MARK != 0,
            length: (length & !MARK) as usize,
            sequence: u64_at(bytes, 8),
            synced: u64_at(bytes, 16),
        }
    }

    /// Whether the header could be valid, with at most `room` bytes of payload.
    pub(super) fn is_plausible(&self, room: u64) -> bool {
        self.length as u64 <= room && self.synced <= self.sequence
    }
}

/// Appends an unsealed record to a buffer.
pub(super) fn push_record(buffer: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    push(buffer, payload.len() as u32, sequence, payload);
}

/// Appends an unsealed mark to a buffer.
pub(super) fn push_mark(buffer: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    push(buffer, payload.len() as u32 | MARK, sequence, payload);
}

fn push(buffer: &mut Vec<u8>, length: u32, sequence: u64, payload: &[u8]) {
    let mut header = [0; FRAME_HEADER];
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..16].copy_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
}

/// Fills the watermark and the checksum of every frame in a buffer of whole frames.
pub(super) fn seal(frames: &mut [u8], salt: u32, synced: u64) {
    let mut rest = frames;
    while rest.len() >= FRAME_HEADER {
        let size = FRAME_HEADER + FrameHeader::decode(rest).length;
        let (frame, after) = rest.split_at_mut(size.min(rest.len()));
        frame[16..24].copy_from_slice(&synced.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &frame[4..]);
        frame[0..4].copy_from_slice(&crc.to_le_bytes());
        rest = after;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads a number at an offset that the caller knows to be inside the slice.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_way_to_disk_and_no_flipped_bit_does() {
        let header = FileHeader { kind: Kind::Log, number: 7, base: 99, salt: 0x1234_5678 };
        let bytes = header.encode();
        assert_eq!(FileHeader::decode(Kind::Log, &bytes), Ok(header));
        assert!(FileHeader::decode(Kind::Snapshot, &bytes).is_err());
        for bit in 0..FILE_HEADER * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(FileHeader::decode(Kind::Log, &flipped), Err(HeaderError::Bad(_))),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut bytes = FileHeader::new(Kind::Log, 1, 0).encode();
        bytes[8] = 9;
        let crc = FileHeader::crc(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::decode(Kind::Log, &bytes), Err(HeaderError::TooNew(9)));
    }

    #[test]
    fn sealing_again_for_another_file_changes_only_checksum_and_watermark() {
        let mut once = Vec::new();
        push_record(&mut once, 1, b"one");
        push_record(&mut once, 2, b"");
        push_mark(&mut once, 2, b"");
        seal(&mut once, 1, 0);
        let mut twice = once.clone();
        seal(&mut twice, 2, 5);
        assert_ne!(once, twice);
        seal(&mut twice, 1, 0);
        assert_eq!(once, twice);
    }

    #[test]
    fn only_our_own_file_names_are_recognised() {
        assert_eq!(Kind::of_file_name("0000000012.log"), Some((Kind::Log, 12)));
        assert_eq!(Kind::of_file_name("0000000012.snapshot"), Some((Kind::Snapshot, 12)));
        for other in ["12.log", "0000000012.log.aside", "manifest", "x.log", "+000000012.log"] {
            assert_eq!(Kind::of_file_name(other), None, "{other}");
        }
    }
}
