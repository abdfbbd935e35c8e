//! Reading framed files, and telling a torn tail from damage.
//!
//! ```text
//!                     ┌───────── good ────────┐
//!                     ▼                       │
//!  header ─good─▶ next frame ─────────────────┘
//!     │               │ not good, at byte X, where record n should be
//!    bad              ├── the file is sealed (not the last segment, or a snapshot) ──▶ damage
//!     │               ▼
//!     ▼           look for good frames behind X
//!   damage            ├── one of them says synced ≥ n ─────────▶ damage: n was on disk once
//!                     ├── more than `cut_limit` bytes behind X ─▶ damage: no crash leaves that much
//!                     └── otherwise ───────────────────────────▶ torn: the tail from X on is cut
//! ```
//!
//! "Bad, but good records follow" is not enough to call it damage: the operating system may write pages
//! of unsynced data in any order, so a power cut can leave a hole *before* good records. But a record
//! that was ever synced cannot become such a hole, and frames written after that sync say so in their
//! watermark. Between two watermarks a flipped bit cannot be told from a crash; the writer keeps that
//! window small by writing a mark when it is idle and when it closes.
//!
//! The reader trusts no length: a frame must fit in the file before memory is allocated for it, and a
//! large frame must have passed its checksum piece by piece. The search after a bad frame has a budget,
//! so a file that looks like overlapping frames costs linear time; an exceeded budget counts as damage.

use std::{
    io,
    ops::{ControlFlow, RangeInclusive},
    path::PathBuf,
};

use super::{
    disk::{Disk, DiskFile},
    error::{Damage, Error, io_error},
    frame::{FILE_HEADER, FRAME_HEADER, FileHeader, FrameHeader, HeaderError, Kind, VERSION},
};

const WINDOW: usize = 1 << 20;

/// A framed file, read frame by frame.
#[derive(Debug)]
pub(super) struct FrameReader {
    file: Box<dyn DiskFile>,
    dir: PathBuf,
    name: String,
    header: FileHeader,
    end: u64,
    offset: u64,
    window: Vec<u8>,
    window_at: u64,
}

/// The next thing in a framed file.
#[derive(Debug)]
pub(super) enum Next {
    /// A frame whose checksum matches; its payload is [`FrameReader::payload`].
    Frame { header: FrameHeader, offset: u64 },
    /// The end of the file, after a whole frame.
    End,
    /// Bytes that are not a valid frame.
    Bad { offset: u64, what: &'static str },
}

/// The classification of a bad frame by the frames after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadFrame {
    /// A torn tail: no later frame shows that the bad frame was ever synced; `records` whole
    /// records follow.
    Torn { records: u64 },
    /// Damage: the bad frame was synced once.
    Damage(&'static str),
}

/// How a search for good frames ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Searched {
    /// At the end of the file.
    End,
    /// Where the caller stopped it.
    Stopped,
    /// Too many byte sequences look like frames.
    GaveUp,
}

impl FrameReader {
    /// Opens a file and checks its header; bytes beyond `sealed` are ignored.
    pub(super) fn open(
        disk: &dyn Disk,
        kind: Kind,
        number: u64,
        sealed: Option<u64>,
    ) -> Result<Self, Error> {
        let name = kind.file_name(number);
        let dir = disk.path();
        let damage = |offset: u64, what: String| Damage {
            dir: dir.clone(),
            file: name.clone(),
            offset,
            what,
        };
        let file = match disk.open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damage(0, "the file is missing".to_owned()).into());
            }
            Err(error) => return Err(io_error("open", dir.join(&name))(error)),
        };
        let length = file.length().map_err(io_error("read", dir.join(&name)))?;
        if let Some(sealed) = sealed.filter(|sealed| *sealed > length) {
            return Err(damage(
                length,
                format!("it should have {sealed} bytes, {} are missing", sealed - length),
            )
            .into());
        }
        if sealed.is_some_and(|sealed| sealed < FILE_HEADER as u64) {
            return Err(
                damage(0, "the manifest seals it before the end of its header".to_owned()).into()
            );
        }
        let mut bytes = [0; FILE_HEADER];
        if file.read_full_at(0, &mut bytes).map_err(io_error("read", dir.join(&name)))?
            < FILE_HEADER
        {
            return Err(damage(length, "it is shorter than its header".to_owned()).into());
        }
        let header = match FileHeader::decode(kind, &bytes) {
            Ok(header) if header.number == number => header,
            Ok(header) => {
                return Err(
                    damage(16, format!("it says it is file number {}", header.number)).into()
                );
            }
            Err(HeaderError::Bad(what)) => return Err(damage(0, what.to_owned()).into()),
            Err(HeaderError::TooNew(found)) => {
                return Err(Error::TooNew { path: dir.join(name), found, known: VERSION });
            }
        };
        Ok(Self::after_header(file, (dir, name), header, sealed.unwrap_or(length)))
    }

    /// Opens a file whose header may be damaged, to look for frames that are not; `None` if the file
    /// is missing or shorter than a header.
    pub(super) fn open_damaged(
        disk: &dyn Disk,
        kind: Kind,
        name: &str,
    ) -> Result<Option<Self>, Error> {
        let (dir, name) = (disk.path(), name.to_owned());
        let file = match disk.open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("open", dir.join(&name))(error)),
        };
        let mut bytes = [0; FILE_HEADER];
        let read = file.read_full_at(0, &mut bytes).and_then(|got| Ok((got, file.length()?)));
        let (got, length) = read.map_err(io_error("read", dir.join(&name)))?;
        if got < FILE_HEADER {
            return Ok(None);
        }
        let header = FileHeader::decode_unchecked(kind, &bytes);
        Ok(Some(Self::after_header(file, (dir, name), header, length)))
    }

    fn after_header(
        file: Box<dyn DiskFile>,
        (dir, name): (PathBuf, String),
        header: FileHeader,
        end: u64,
    ) -> Self {
        let offset = FILE_HEADER as u64;
        Self { file, dir, name, header, end, offset, window: Vec::new(), window_at: offset }
    }

    pub(super) fn header(&self) -> FileHeader {
        self.header
    }

    /// The offset where the file ends for the reader.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the file, for further writing.
    pub(super) fn into_file(self) -> Box<dyn DiskFile> {
        self.file
    }

    /// Describes damage in this file.
    pub(super) fn damage(&self, offset: u64, what: impl Into<String>) -> Damage {
        Damage { dir: self.dir.clone(), file: self.name.clone(), offset, what: what.into() }
    }

    /// The payload of the frame that [`Self::next`] has just returned.
    pub(super) fn payload(&self, header: &FrameHeader) -> &[u8] {
        let end = (self.offset - self.window_at) as usize;
        &self.window[end - header.length..end]
    }

    /// Reads the next frame.
    pub(super) fn next(&mut self) -> Result<Next, Error> {
        let offset = self.offset;
        let left = self.end - offset;
        if left == 0 {
            return Ok(Next::End);
        }
        if left < FRAME_HEADER as u64 {
            return Ok(Next::Bad { offset, what: "the record is cut off" });
        }
        self.fill(FRAME_HEADER)?;
        let header = FrameHeader::decode(&self.window[(offset - self.window_at) as usize..]);
        if !header.is_plausible(left - FRAME_HEADER as u64) {
            return Ok(Next::Bad { offset, what: "the record is cut off or its header is wrong" });
        }
        let size = FRAME_HEADER + header.length;
        if size > WINDOW && !self.is_good_at(offset, &header)? {
            return Ok(Next::Bad { offset, what: "the checksum of the record does not match" });
        }
        self.fill(size)?;
        let start = (offset - self.window_at) as usize;
        if crc32c::crc32c_append(self.header.salt, &self.window[start + 4..start + size])
            != header.crc
        {
            return Ok(Next::Bad { offset, what: "the checksum of the record does not match" });
        }
        self.offset += size as u64;
        Ok(Next::Frame { header, offset })
    }

    /// Makes the window hold the next `size` bytes; the caller knows that the file has them.
    fn fill(&mut self, size: usize) -> Result<(), Error> {
        let start = (self.offset - self.window_at) as usize;
        if self.window.len() >= start + size {
            return Ok(());
        }
        self.window.drain(..start);
        self.window_at = self.offset;
        let have = self.window.len();
        let want = (size.max(WINDOW) as u64).min(self.end - self.window_at) as usize;
        self.window.resize(want, 0);
        let got = self.file.read_full_at(self.window_at + have as u64, &mut self.window[have..]);
        let got = got.map_err(io_error("read", self.dir.join(&self.name)))?;
        if have + got < want {
            // The file became shorter while it was read.
            let error = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(io_error("read", self.dir.join(&self.name))(error));
        }
        Ok(())
    }

    /// Verifies a frame at any offset without holding it in memory.
    fn is_good_at(&self, offset: u64, header: &FrameHeader) -> Result<bool, Error> {
        let mut crc = self.header.salt;
        let mut piece = vec![0; (64 << 10).min(FRAME_HEADER + header.length)];
        let (mut at, end) = (offset + 4, offset + (FRAME_HEADER + header.length) as u64);
        while at < end {
            let size = (end - at).min(piece.len() as u64) as usize;
            let got = self.file.read_full_at(at, &mut piece[..size]);
            if got.map_err(io_error("read", self.dir.join(&self.name)))? < size {
                return Ok(false);
            }
            crc = crc32c::crc32c_append(crc, &piece[..size]);
            at += size as u64;
        }
        Ok(crc == header.crc)
    }

    /// Decides whether a bad frame at `bad`, in place of record `expected`, is a torn tail or
    /// damage.
    pub(super) fn classify_bad_frame(
        &self,
        bad: u64,
        expected: u64,
        cut_limit: u64,
    ) -> Result<BadFrame, Error> {
        let highest = expected.saturating_add((self.end - bad) / FRAME_HEADER as u64);
        let (mut records, mut last_good, mut was_synced) = (0, bad, false);
        // A mark repeats the sequence before it, so one less than expected is possible.
        let sequences = expected.saturating_sub(1)..=highest;
        let searched = self.search(bad + 1, sequences, &mut |header, end| {
            was_synced = header.synced >= expected;
            records += u64::from(!header.mark);
            last_good = end;
            if was_synced { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if searched == Searched::GaveUp {
            return Ok(BadFrame::Damage("too many byte sequences after it look like records"));
        }
        if was_synced {
            return Ok(BadFrame::Damage("later records say that it was safely on disk"));
        }
        if last_good - bad > cut_limit {
            return Ok(BadFrame::Damage(
                "more good records follow it than a crash can leave unsynced",
            ));
        }
        Ok(BadFrame::Torn { records })
    }

    /// Looks for good frames at every offset from `at` on, with a sequence in a range. `found` gets
    /// each header and the offset behind its frame.
    pub(super) fn search(
        &self,
        mut at: u64,
        sequences: RangeInclusive<u64>,
        found: &mut dyn FnMut(&FrameHeader, u64) -> ControlFlow<()>,
    ) -> Result<Searched, Error> {
        let rest = self.end.saturating_sub(at);
        // Checking overlapping candidates may read the rest of the file a few times, not n² times.
        let mut budget = rest.saturating_mul(4).saturating_add(WINDOW as u64);
        let mut window = vec![0; WINDOW.min(rest as usize)];
        while at + FRAME_HEADER as u64 <= self.end {
            let got = self.file.read_full_at(at, &mut window);
            let got = got.map_err(io_error("read", self.dir.join(&self.name)))?;
            if got < FRAME_HEADER {
                break;
            }
            let mut skip = got - FRAME_HEADER + 1;
            for start in 0..skip {
                let offset = at + start as u64;
                if offset + FRAME_HEADER as u64 > self.end {
                    break;
                }
                let header = FrameHeader::decode(&window[start..]);
                let room = self.end - offset - FRAME_HEADER as u64;
                if !sequences.contains(&header.sequence) || !header.is_plausible(room) {
                    continue;
                }
                let size = (FRAME_HEADER + header.length) as u64;
                if size > budget {
                    return Ok(Searched::GaveUp);
                }
                budget -= size;
                if self.is_good_at(offset, &header)? {
                    if found(&header, offset + size).is_break() {
                        return Ok(Searched::Stopped);
                    }
                    // Continue after this frame; it may be larger than the window.
                    skip = start + size as usize;
                    break;
                }
            }
            at += skip as u64;
        }
        Ok(Searched::End)
    }

    /// Continues reading at an offset.
    pub(super) fn seek(&mut self, offset: u64) {
        self.offset = offset;
        self.window_at = offset;
        self.window.clear();
    }

    /// Reads up to `limit` bytes between two offsets, verified or not.
    pub(super) fn raw(&self, from: u64, to: u64, limit: usize) -> Result<Vec<u8>, Error> {
        let size = to.min(self.end).saturating_sub(from).min(limit as u64);
        let mut bytes = vec![0; size as usize];
        let got = self.file.read_full_at(from, &mut bytes);
        bytes.truncate(got.map_err(io_error("read", self.dir.join(&self.name)))?);
        Ok(bytes)
    }
}
