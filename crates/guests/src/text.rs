//! Text in any encoding, as UTF-8.
//!
//! A byte order mark says which encoding it is; else the charset that was declared; else it must be UTF-8. A file that is
//! not is refused with the name of the encoding that it probably has: a guess must not decide how names are printed.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes read at a time.
const CHUNK: usize = 32 << 10;
/// Bytes that are looked at to recognise UTF-16 without a byte order mark.
const LOOKED_AT: usize = 1 << 10;
/// Most bytes from which an encoding is guessed.
const GUESSED_FROM: u64 = 8 << 20;

/// How files begin that spreadsheets write as workbooks: ZIP archives (XLSX, ODS), and the older compound files (XLS).
const WORKBOOKS: [&[u8]; 2] = [b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"];

/// The beginning of the message about text in another encoding.
pub const NOT_TEXT: &str = "the file is not";

/// A declared encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Charset {
    /// Reads a name such as `windows-1251`; `None`: no encoding has that name.
    pub fn from_label(label: &str) -> Option<Self> {
        // Browsers read some old encodings as nothing at all, because they can hide scripts.
        Encoding::for_label(label.as_bytes()).filter(|found| *found != REPLACEMENT).map(Self)
    }

    /// The usual name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

/// Bytes that are no text in the encoding of the file.
#[derive(Debug)]
pub(crate) struct NotText {
    encoding: &'static str,
    line: u64,
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NOT_TEXT} {}: line {} has other bytes", self.encoding, self.line)
    }
}

impl std::error::Error for NotText {}

/// A source of bytes, read as UTF-8.
pub struct Utf8<R> {
    source: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    raw: Box<[u8]>,
    /// The part of `raw` that is not decoded yet.
    waiting: std::ops::Range<usize>,
    text: Box<[u8]>,
    /// The part of `text` that nobody has taken yet.
    ready: std::ops::Range<usize>,
    line: u64,
    /// All bytes of the source were read.
    is_read: bool,
    /// All text was decoded.
    is_over: bool,
}

impl<R: Read> Utf8<R> {
    /// Begins to read; a byte order mark is skipped. `kind` is the media type, for messages.
    pub fn begin(
        mut source: R,
        charset: Option<Charset>,
        kind: &str,
    ) -> Result<Self, crate::Error> {
        let mut raw = vec![0; CHUNK].into_boxed_slice();
        let filled = fill(&mut source, &mut raw)?;
        let head = &raw[..filled];
        if is_workbook(head) {
            return Err(crate::Error::Unreadable(format!(
                "the file is a workbook such as XLSX, and not {kind}; save it as CSV in UTF-8"
            )));
        }
        let (encoding, skipped) = match (Encoding::for_bom(head), charset) {
            (Some((encoding, length)), _) => (encoding, length),
            (None, Some(Charset(encoding))) => (encoding, 0),
            (None, None) => match wide(head) {
                Some(name) => return Err(crate::Error::Unreadable(told(name, "UTF-8", kind))),
                None => (UTF_8, 0),
            },
        };
        Ok(Self {
            source,
            encoding,
            decoder: encoding.new_decoder_without_bom_handling(),
            raw,
            waiting: skipped..filled,
            text: vec![0; CHUNK * 3].into_boxed_slice(),
            ready: 0..0,
            line: 1,
            is_read: false,
            is_over: false,
        })
    }

    /// The usual name of the encoding.
    pub fn encoding(&self) -> &'static str {
        self.encoding.name()
    }

    /// Decodes some more.
    fn decode(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() && !self.is_read {
            let filled = fill(&mut self.source, &mut self.raw)?;
            self.is_read = filled == 0;
            self.waiting = 0..filled;
        }
        let input = &self.raw[self.waiting.clone()];
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(input, &mut self.text, self.is_read);
        self.waiting.start += read;
        self.ready = 0..written;
        match result {
            DecoderResult::InputEmpty => self.is_over = self.is_read,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => {
                let lines = self.text[..written].iter().filter(|byte| **byte == b'\n').count();
                let line = self.line + lines as u64;
                let wrong = NotText { encoding: self.encoding.name(), line };
                return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && !self.is_over {
            self.decode()?;
        }
        let length = self.ready.len().min(buffer.len());
        let taken = &self.text[self.ready.start..][..length];
        buffer[..length].copy_from_slice(taken);
        self.line += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.ready.start += length;
        Ok(length)
    }
}

/// The encoding that a file without a byte order mark probably has, if it is not UTF-8; `None`: it is UTF-8, or has a mark.
/// The file is read from its beginning, and stands there again afterwards.
pub fn other_than_utf8<R: Read + Seek>(source: &mut R) -> io::Result<Option<Charset>> {
    source.seek(SeekFrom::Start(0))?;
    let (mut buffer, mut decoder) = (vec![0; CHUNK], UTF_8.new_decoder_without_bom_handling());
    let mut text = vec![0; CHUNK * 3];
    let mut is_first = true;
    let is_utf8 = loop {
        let read = fill(source, &mut buffer)?;
        if std::mem::take(&mut is_first)
            && (Encoding::for_bom(&buffer[..read]).is_some()
                || wide(&buffer[..read]).is_some()
                || is_workbook(&buffer[..read]))
        {
            break true;
        }
        let (result, _, _) =
            decoder.decode_to_utf8_without_replacement(&buffer[..read], &mut text, read == 0);
        match result {
            DecoderResult::Malformed(..) => break false,
            _ if read == 0 => break true,
            _ => {}
        }
    };
    let guess = if is_utf8 { None } else { Some(Charset(guess(source)?)) };
    source.seek(SeekFrom::Start(0))?;
    Ok(guess)
}

/// Reads until the buffer is full or the source ends.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn is_workbook(head: &[u8]) -> bool {
    WORKBOOKS.iter().any(|beginning| head.starts_with(beginning))
}

/// The encoding of text with two bytes a letter and without a byte order mark: nearly every other byte is zero.
fn wide(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(LOOKED_AT)];
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let enough = (head.len() / 2) * 2 / 3;
    match (zeros(0), zeros(1)) {
        _ if head.len() < 8 => None,
        (0, odd) if odd >= enough => Some(UTF_16LE.name()),
        (even, 0) if even >= enough => Some(UTF_16BE.name()),
        _ => None,
    }
}

/// The message about a file that is not UTF-8, with the encoding that it probably has.
pub fn guessed<R: Read + Seek>(
    source: &mut R,
    told_before: String,
    kind: &str,
) -> io::Result<String> {
    let guess = guess(source)?;
    Ok(told(guess.name(), &told_before, kind))
}

/// The encoding that a file which is not UTF-8 probably has.
fn guess<R: Read + Seek>(source: &mut R) -> io::Result<&'static Encoding> {
    source.seek(SeekFrom::Start(0))?;
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut buffer, mut left) = (vec![0; CHUNK], GUESSED_FROM);
    while left > 0 {
        let read = fill(source, &mut buffer)?;
        detector.feed(&buffer[..read], read == 0);
        left = if read == 0 { 0 } else { left.saturating_sub(read as u64) };
    }
    Ok(detector.guess(None, Utf8Detection::Deny))
}

/// `kind` is the media type of the file.
fn told(encoding: &str, before: &str, kind: &str) -> String {
    let before = match before {
        "UTF-8" => format!("{NOT_TEXT} UTF-8"),
        told => told.to_owned(),
    };
    let encoding = encoding.to_ascii_lowercase();
    format!(
        "{before}; it is probably {encoding}: send it with \"Content-Type: {kind}; charset={encoding}\", \
         or save it as UTF-8"
    )
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn decoded(bytes: &[u8], charset: Option<&str>) -> Result<(String, &'static str), String> {
        let charset = charset.map(|label| Charset::from_label(label).unwrap());
        let mut text =
            Utf8::begin(bytes, charset, "text/csv").map_err(|error| error.to_string())?;
        let mut read = String::new();
        text.read_to_string(&mut read).map_err(|error| error.to_string())?;
        Ok((read, text.encoding()))
    }

    fn wide_bytes(text: &str, byte: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(byte).collect()
    }

    #[test]
    fn a_byte_order_mark_says_what_it_is() {
        let text = "имя;место\r\nЗоя;1";
        let marked = format!("\u{feff}{text}");
        for (bytes, name) in [
            (text.as_bytes().to_vec(), "UTF-8"),
            (marked.as_bytes().to_vec(), "UTF-8"),
            (wide_bytes(&marked, u16::to_le_bytes), "UTF-16LE"),
            (wide_bytes(&marked, u16::to_be_bytes), "UTF-16BE"),
        ] {
            assert_eq!(decoded(&bytes, None), Ok((text.to_owned(), name)));
            // The mark is right even if the client declares something else.
            if bytes != text.as_bytes() {
                assert_eq!(decoded(&bytes, Some("windows-1251")).unwrap().0, text);
            }
        }
    }

    #[test]
    fn a_declared_charset_is_decoded_and_a_long_text_comes_whole() {
        let text = "Зоя Петрова,".repeat(20_000);
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(&text);
        assert_eq!(decoded(&bytes, Some("cp1251")), Ok((text, "windows-1251")));
        assert_eq!(Charset::from_label("klingon"), None);
        assert_eq!(Charset::from_label("iso-2022-kr"), None);
    }

    #[test]
    fn another_encoding_is_named_with_the_line_and_the_remedy() {
        let text = "name\nAnn\nЗоя Петрова\nИван Сидоров, Москва\n";
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(text);
        let told = decoded(&bytes, None).unwrap_err();
        assert_eq!(told, "the file is not UTF-8: line 3 has other bytes");
        let told = guessed(&mut Cursor::new(&bytes), told, "application/json").unwrap();
        assert!(told.contains("line 3"), "{told}");
        assert!(told.contains("application/json; charset=windows-1251"), "{told}");
        let told = decoded(&wide_bytes("name,seat\nAnn,1\n", u16::to_le_bytes), None).unwrap_err();
        assert!(told.contains("charset=utf-16le"), "{told}");
    }

    #[test]
    fn a_workbook_is_called_by_its_name() {
        for beginning in WORKBOOKS {
            let bytes = [beginning, &[0x14, 0, 8, 8, 0xff, 0xfe, b'x'][..]].concat();
            let told = decoded(&bytes, None).unwrap_err();
            assert!(told.starts_with("the file is a workbook"), "{told}");
            assert_eq!(other_than_utf8(&mut Cursor::new(&bytes)).unwrap(), None);
        }
    }

    #[test]
    fn text_that_is_cut_inside_a_letter_is_not_whole() {
        let cut = &"Зоя".as_bytes()[..5];
        assert!(decoded(cut, None).is_err());
        assert_eq!(decoded(b"", None), Ok((String::new(), "UTF-8")));
    }
}
