//! A ZIP that is written piece by piece. Entries are not compressed; checksum and size stand before their
//! bytes, so that readers that cannot seek understand it.
//!
//! Why not a crate: the length of the file must be known before its first byte is sent, and the directory of 100,000
//! entries must not be in memory as a whole. An entry takes 32 bytes here; its part of the directory is written when it is sent.

use stampede_model::TicketId;

/// Archives with at least this many tickets are ZIP64. Smaller ones are not, for older readers.
const ZIP64_FROM: u64 = 65_000;
/// Offsets and sizes up to this one fit the fields of old archives.
const MOST_IN_32: u64 = 0xffff_fffe;
/// The first day that ZIP knows, 1 January 1980: equal tickets give equal bytes on every day.
const DAY: u16 = 0x0021;
/// A file that its owner may write, and everybody may read.
const MODE: u32 = 0o100_644 << 16;
/// Entries of the directory that are written at a time.
const DIRECTORY_CHUNK: usize = 500;

/// The name of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// `ticket-0001-<id>.pdf`: digits, letters and hyphens, the same file on every system.
    Ticket {
        /// The ticket's place in its order.
        index: u32,
        /// The ticket.
        id: TicketId,
    },
    /// The list of missing tickets and the reasons.
    LeftOut,
}

/// An entry that was written.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Name,
    checksum: u32,
    size: u32,
}

/// An archive that is being written.
pub(super) struct Archive {
    digits: usize,
    entries: Vec<Entry>,
    length: Length,
}

/// Counts the bytes of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    digits: usize,
    /// Bytes of all entries.
    entries: u64,
    directory: u64,
    is_zip64: bool,
}

impl Length {
    /// The length of an archive for this many tickets that has no entry yet.
    pub(super) fn new(tickets: u64) -> Self {
        let digits = tickets.checked_ilog10().map_or(4, |log| (log as usize + 1).max(4));
        Self { digits, entries: 0, directory: 0, is_zip64: tickets >= ZIP64_FROM }
    }

    /// Counts an entry.
    pub(super) fn add(&mut self, name: Name, content: u64) {
        let name = name.text(self.digits).len() as u64;
        if self.entries > MOST_IN_32 {
            self.directory += OFFSET_FIELD as u64;
            self.is_zip64 = true;
        }
        self.directory += 46 + name;
        self.entries += 30 + name + content;
    }

    /// The length of the whole archive.
    pub(super) fn total(self) -> u64 {
        let is_zip64 = self.is_zip64 || self.entries > MOST_IN_32;
        self.entries + self.directory + if is_zip64 { 98 } else { 22 }
    }
}

/// Bytes of the field that holds an offset that is too large for the others.
const OFFSET_FIELD: u16 = 12;

impl Name {
    /// The name itself; numbers have so many digits.
    pub(super) fn text(self, digits: usize) -> String {
        match self {
            Self::Ticket { index, id } => format!("ticket-{index:0digits$}-{id}.pdf"),
            Self::LeftOut => "left-out.txt".to_owned(),
        }
    }
}

impl Archive {
    /// An archive for this many tickets.
    pub(super) fn new(tickets: u64) -> Self {
        let length = Length::new(tickets);
        Self { digits: length.digits, entries: Vec::new(), length }
    }

    /// The text of a name in this archive.
    pub(super) fn name(&self, name: Name) -> String {
        name.text(self.digits)
    }

    /// Adds a file; returns the bytes that stand before its content. `None`: it is too large for an entry.
    pub(super) fn add(&mut self, name: Name, content: &[u8]) -> Option<Vec<u8>> {
        let size =
            u32::try_from(content.len()).ok().filter(|size| u64::from(*size) <= MOST_IN_32)?;
        let entry = Entry { name, checksum: libdeflater::crc32(content), size };
        self.length.add(name, u64::from(size));
        self.entries.push(entry);
        let name = name.text(self.digits);
        let mut bytes = Vec::with_capacity(30 + name.len());
        put(&mut bytes, &[0x0403_4b50]);
        entry.common(&mut bytes, 10);
        put_short(&mut bytes, &[name.len() as u16, 0]);
        bytes.extend_from_slice(name.as_bytes());
        Some(bytes)
    }

    /// Ends the archive with its directory, piece by piece.
    pub(super) fn finish(self) -> impl Iterator<Item = Vec<u8>> {
        let digits = self.digits;
        let end = self.end();
        let mut offset = 0;
        let mut entries = self.entries.into_iter();
        let directory = std::iter::from_fn(move || {
            let mut piece = Vec::new();
            for entry in entries.by_ref().take(DIRECTORY_CHUNK) {
                let name = entry.name.text(digits);
                entry.in_directory(&name, offset, &mut piece);
                offset += 30 + name.len() as u64 + u64::from(entry.size);
            }
            (!piece.is_empty()).then_some(piece)
        });
        directory.chain(std::iter::once(end))
    }

    /// The bytes after the directory.
    fn end(&self) -> Vec<u8> {
        let (count, size, offset) =
            (self.entries.len() as u64, self.length.directory, self.length.entries);
        let mut bytes = Vec::new();
        if self.length.is_zip64 || offset > MOST_IN_32 {
            put(&mut bytes, &[0x0606_4b50]);
            put_long(&mut bytes, &[44]);
            put_short(&mut bytes, &[45, 45]);
            put(&mut bytes, &[0, 0]);
            put_long(&mut bytes, &[count, count, size, offset]);
            put(&mut bytes, &[0x0706_4b50, 0]);
            put_long(&mut bytes, &[offset + size]);
            put(&mut bytes, &[1]);
        }
        let short = u16::try_from(count).unwrap_or(u16::MAX);
        put(&mut bytes, &[0x0605_4b50]);
        put_short(&mut bytes, &[0, 0, short, short]);
        put(&mut bytes, &[saturated(size), saturated(offset)]);
        put_short(&mut bytes, &[0]);
        bytes
    }
}

impl Entry {
    /// The fields that stand before the content and in the directory, up to the sizes.
    fn common(&self, bytes: &mut Vec<u8>, version: u16) {
        // Version, flags (names are UTF-8), not compressed, time, day.
        put_short(bytes, &[version, 0x0800, 0, 0, DAY]);
        put(bytes, &[self.checksum, self.size, self.size]);
    }

    /// The entry of the directory.
    fn in_directory(&self, name: &str, offset: u64, bytes: &mut Vec<u8>) {
        let is_far = offset > MOST_IN_32;
        put(bytes, &[0x0201_4b50]);
        // Made by Unix.
        put_short(bytes, &[0x0300 | 45]);
        self.common(bytes, if is_far { 45 } else { 10 });
        let field = if is_far { OFFSET_FIELD } else { 0 };
        put_short(bytes, &[name.len() as u16, field, 0, 0, 0]);
        put(bytes, &[MODE, saturated(offset)]);
        bytes.extend_from_slice(name.as_bytes());
        if is_far {
            put_short(bytes, &[1, 8]);
            put_long(bytes, &[offset]);
        }
    }
}

fn saturated(number: u64) -> u32 {
    if number > MOST_IN_32 { u32::MAX } else { number as u32 }
}

fn put_short(bytes: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

fn put(bytes: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

fn put_long(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};
    use std::process::Command;

    use super::*;

    fn ticket(index: u32) -> Name {
        Name::Ticket { index, id: TicketId::from_bytes([7; 16]) }
    }

    /// Writes an archive with so many entries and has two other programs check it; the first entry begins after `hole`
    /// bytes that nobody wrote.
    fn is_sound(entries: u32, content: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut archive = Archive::new(u64::from(entries));
        let mut expected = Length::new(u64::from(entries));
        for n in 1..=entries {
            expected.add(ticket(n), content.len() as u64);
            file.write_all(&archive.add(ticket(n), content).unwrap()).unwrap();
            file.write_all(content).unwrap();
        }
        archive.finish().for_each(|piece| file.write_all(&piece).unwrap());
        assert_eq!(file.stream_position().unwrap(), expected.total());
        let tested = Command::new("unzip").arg("-tq").arg(file.path()).output().unwrap();
        assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
        let script = "import sys, zipfile\n\
                      z = zipfile.ZipFile(sys.argv[1])\n\
                      print(len(z.namelist()), z.testzip(), z.namelist()[-1], z.infolist()[-1].header_offset)";
        let output =
            Command::new("python3").args(["-c", script]).arg(file.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    }

    #[test]
    fn more_entries_than_old_archives_can_count_are_no_problem() {
        let told = is_sound(66_000, b"x");
        assert!(told.starts_with("66000 None ticket-66000-07070707"), "{told}");
        let told = is_sound(3, b"");
        assert!(told.starts_with("3 None ticket-0003-07070707"), "{told}");
    }

    #[test]
    fn entries_beyond_four_gigabytes_are_found() {
        // The content of most entries is a hole in the file: zeros that take no room.
        let content = vec![0; 512 << 20];
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let (mut archive, mut expected) = (Archive::new(10), Length::new(10));
        for n in 1..=10 {
            expected.add(ticket(n), content.len() as u64);
            file.write_all(&archive.add(ticket(n), &content).unwrap()).unwrap();
            file.seek(SeekFrom::Current(content.len() as i64)).unwrap();
        }
        archive.finish().for_each(|piece| file.write_all(&piece).unwrap());
        assert_eq!(file.stream_position().unwrap(), expected.total());
        let script = "import sys, zipfile\n\
                      z = zipfile.ZipFile(sys.argv[1])\n\
                      print(z.infolist()[-1].header_offset, len(z.open(z.namelist()[-1]).read(1000)))";
        let output =
            Command::new("python3").args(["-c", script]).arg(file.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let offset: u64 = told.split(' ').next().unwrap().parse().unwrap();
        assert!(offset > u64::from(u32::MAX) && told.ends_with(" 1000\n"), "{told}");
    }

    #[test]
    fn names_sort_in_the_order_of_the_tickets() {
        let name = ticket(1).text(4);
        assert_eq!(name, "ticket-0001-07070707-0707-0707-0707-070707070707.pdf");
        assert!(ticket(9_999).text(5) < ticket(10_000).text(5));
    }
}
