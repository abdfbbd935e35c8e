//! The manifest: which files make up the journal.
//!
//! ```text
//! stampede-journal 2         format version (frame.rs)
//! snapshot 5 1000            file number, last sequence contained; the line is absent at first
//! segment 4 1000 40960       file number, base (sequence before its first record), sealed length
//! segment 6 2200 open        the last one, and only it, is open
//! crc32c 1a2b3c4d            of all bytes before this line
//! ```
//!
//! The manifest is text, so that a person can read it. It is replaced as a whole: written to
//! `manifest.tmp`, synced, renamed over `manifest`, and the directory synced. A reader therefore finds
//! the old manifest or the new one. Files that it does not name are not part of the journal.
//!
//! A failure *before* the rename is definite: the old manifest stands. A failure of the rename or of the
//! directory sync is not: a crash may leave either manifest. [`InstallError`] distinguishes the two, and
//! after the second kind the log does not go on until an install has succeeded.
//!
//! The manifest's version is that of the newest record any file may hold. A journal of an older version gets a new
//! manifest when it is opened, before the first record is appended: an older program refuses it from then on.

use std::{fmt::Write, io};

use super::{
    disk::Disk,
    error::{Damage, Error, io_error},
    frame::VERSION,
};

/// The name of the manifest.
pub(super) const MANIFEST: &str = "manifest";
/// The temporary name it is written under.
pub(super) const MANIFEST_TEMP: &str = "manifest.tmp";
/// The size limit of a manifest, far above the size of any real one.
const MAX_BYTES: usize = 1 << 20;

/// The list of files of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) snapshot: Option<SnapshotEntry>,
    /// The segments in order; never empty.
    pub(super) segments: Vec<SegmentEntry>,
}

/// A snapshot in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SnapshotEntry {
    pub(super) number: u64,
    /// The last sequence that the snapshot contains.
    pub(super) upto: u64,
}

/// A segment in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentEntry {
    pub(super) number: u64,
    /// The sequence before the first record.
    pub(super) base: u64,
    /// The number of valid bytes; `None` for the open segment.
    pub(super) sealed: Option<u64>,
}

/// Why the manifest could not be replaced.
#[derive(Debug)]
pub(super) enum InstallError {
    /// The old manifest is still in force.
    Unchanged(io::Error),
    /// The old or the new manifest is in force; only a successful install can tell.
    Unknown(io::Error),
}

impl Manifest {
    pub(super) fn encode(&self) -> String {
        let mut text = format!("stampede-journal {VERSION}\n");
        if let Some(snapshot) = self.snapshot {
            let _ = writeln!(text, "snapshot {} {}", snapshot.number, snapshot.upto);
        }
        for SegmentEntry { number, base, sealed } in &self.segments {
            let sealed = sealed.map_or("open".to_owned(), |length| length.to_string());
            let _ = writeln!(text, "segment {number} {base} {sealed}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "crc32c {crc:08x}");
        text
    }

    /// Decodes a manifest; also returns its format version.
    fn decode(bytes: &[u8]) -> Result<(Self, u32), DecodeError> {
        let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::Bad("it is not text"))?;
        let at = text
            .rfind("crc32c ")
            .ok_or(DecodeError::Bad("its last line, the checksum, is missing"))?;
        let (body, last) = text.split_at(at);
        if last != format!("crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())) {
            return Err(DecodeError::Bad("its checksum does not match"));
        }
        let mut lines = body.lines();
        let version = lines.next().and_then(|line| line.strip_prefix("stampede-journal "));
        let version = match version.and_then(|v| v.parse().ok()) {
            Some(version @ 1..=VERSION) => version,
            Some(version) => return Err(DecodeError::TooNew(version)),
            None => return Err(DecodeError::Bad("it does not begin as a manifest")),
        };
        let mut manifest = Self { snapshot: None, segments: Vec::new() };
        for line in lines {
            manifest.decode_line(line).ok_or(DecodeError::Bad("it has an unknown line"))?;
        }
        manifest
            .is_consistent()
            .then_some((manifest, version))
            .ok_or(DecodeError::Bad("its lines contradict each other"))
    }

    fn decode_line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["snapshot", number, upto] if self.snapshot.is_none() && self.segments.is_empty() => {
                self.snapshot =
                    Some(SnapshotEntry { number: number.parse().ok()?, upto: upto.parse().ok()? });
            }
            ["segment", number, base, sealed] => {
                let sealed = if sealed == "open" { None } else { Some(sealed.parse().ok()?) };
                self.segments.push(SegmentEntry {
                    number: number.parse().ok()?,
                    base: base.parse().ok()?,
                    sealed,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn is_consistent(&self) -> bool {
        let start = self.snapshot.map_or(0, |snapshot| snapshot.upto);
        self.segments.first().is_some_and(|first| first.base == start)
            && self.segments.windows(2).all(|w| w[0].base <= w[1].base && w[0].number < w[1].number)
            && self.segments.iter().rev().enumerate().all(|(i, s)| s.sealed.is_none() == (i == 0))
    }

    /// Reads the manifest; `None` if there is none.
    pub(super) fn load(disk: &dyn Disk) -> Result<Option<Self>, Error> {
        Ok(Self::load_with_version(disk)?.map(|(manifest, _)| manifest))
    }

    /// Reads the manifest and its format version; `None` if there is none.
    pub(super) fn load_with_version(disk: &dyn Disk) -> Result<Option<(Self, u32)>, Error> {
        let path = disk.path().join(MANIFEST);
        let file = match disk.open(MANIFEST) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("open", path)(error)),
        };
        let length = file.length().map_err(io_error("read", path.clone()))?;
        let mut bytes = vec![0; (length as usize).min(MAX_BYTES)];
        let got = file.read_full_at(0, &mut bytes).map_err(io_error("read", path.clone()))?;
        bytes.truncate(got);
        match Self::decode(&bytes) {
            Ok(found) => Ok(Some(found)),
            Err(DecodeError::TooNew(found)) => Err(Error::TooNew { path, found, known: VERSION }),
            Err(DecodeError::Bad(what)) => {
                let (dir, file, what) = (disk.path(), MANIFEST.to_owned(), what.to_owned());
                Err(Damage { dir, file, offset: 0, what }.into())
            }
        }
    }

    /// Makes this the manifest.
    pub(super) fn install(&self, disk: &dyn Disk) -> Result<(), InstallError> {
        let text = self.encode();
        let prepare = || {
            let file = disk.create(MANIFEST_TEMP)?;
            file.write_all_at(0, text.as_bytes())?;
            file.sync()
        };
        prepare().map_err(InstallError::Unchanged)?;
        disk.rename(MANIFEST_TEMP, MANIFEST).map_err(InstallError::Unknown)?;
        disk.sync_dir().map_err(InstallError::Unknown)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum DecodeError {
    Bad(&'static str),
    TooNew(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        Manifest {
            snapshot: Some(SnapshotEntry { number: 5, upto: 1000 }),
            segments: vec![
                SegmentEntry { number: 4, base: 1000, sealed: Some(40_960) },
                SegmentEntry { number: 6, base: 2200, sealed: None },
            ],
        }
    }

    #[test]
    fn a_manifest_reads_back_as_written() {
        let manifest = sample();
        assert_eq!(Manifest::decode(manifest.encode().as_bytes()), Ok((manifest, VERSION)));
    }

    /// A manifest of another version.
    fn of_version(version: u32) -> String {
        let text = sample().encode();
        let (_, rest) = text.split_once('\n').unwrap();
        let body = &rest[..rest.rfind("crc32c ").unwrap()];
        let body = format!("stampede-journal {version}\n{body}");
        format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_are_refused() {
        assert_eq!(of_version(VERSION), sample().encode());
        assert_eq!(Manifest::decode(of_version(1).as_bytes()), Ok((sample(), 1)));
        for version in [0, VERSION + 1, 99] {
            let refused = Err(DecodeError::TooNew(version));
            assert_eq!(Manifest::decode(of_version(version).as_bytes()), refused);
        }
    }

    #[test]
    fn any_changed_byte_or_cut_is_found() {
        let text = sample().encode().into_bytes();
        for at in 0..text.len() {
            assert!(Manifest::decode(&text[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                assert!(Manifest::decode(&changed).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn contradictions_are_found_behind_a_good_checksum() {
        let mut gap = sample();
        gap.segments[0].base = 1001;
        let mut two_open = sample();
        two_open.segments[0].sealed = None;
        let mut none = sample();
        none.segments.clear();
        for bad in [gap, two_open, none] {
            assert!(
                matches!(Manifest::decode(bad.encode().as_bytes()), Err(DecodeError::Bad(_))),
                "{bad:?}"
            );
        }
    }
}
