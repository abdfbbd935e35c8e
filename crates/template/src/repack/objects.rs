//! The objects of the shared part: numbered from 1, written small.

use std::collections::BTreeMap;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};
use stampede_render::compiled::{ObjectPlace, StaticPdf};

use super::Error;
use super::content::number;
use super::parse::{Dict, Document, Indirect, Object};
use super::slim;

/// The first line, and a comment of bytes beyond ASCII, so that nobody takes the file for text.
const HEADER: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n";

/// Most bytes a stream may unpack to.
const MOST_UNPACKED: usize = 256 << 20;

/// Collects objects in the order in which they are first named.
pub(super) struct Objects<'a> {
    source: &'a Document<'a>,
    numbers: BTreeMap<u32, u32>,
    collected: Vec<Written>,
}

enum Written {
    /// To be written when its turn comes: it is being walked.
    Pending,
    Plain(String),
    Stream {
        dict: String,
        data: Vec<u8>,
    },
}

impl<'a> Objects<'a> {
    pub(super) fn new(source: &'a Document<'a>) -> Self {
        Self { source, numbers: BTreeMap::new(), collected: Vec::new() }
    }

    pub(super) fn source(&self) -> &'a Document<'a> {
        self.source
    }

    /// Adds a stream that may refer to objects of the source.
    pub(super) fn add_stream(&mut self, dict: &Dict, raw: Vec<u8>) -> Result<u32, Error> {
        let number = self.reserve();
        let written = self.stream(dict.clone(), raw)?;
        self.put(number, written);
        Ok(number)
    }

    /// Adds an object that is text already, with references to objects of ours.
    pub(super) fn add_text(&mut self, text: String) -> u32 {
        let number = self.reserve();
        self.put(number, Written::Plain(text));
        number
    }

    /// The object as it is written inside another, with its references brought over.
    pub(super) fn text(&mut self, object: &Object) -> Result<String, Error> {
        if let Some(space) = slim::device_space(self.source, object) {
            return Ok(space.to_owned());
        }
        Ok(match object {
            Object::Null => "null".into(),
            Object::Boolean(value) => value.to_string(),
            Object::Number(value) => number(*value),
            Object::Name(name) => name_text(name),
            Object::String(text) => string_text(text),
            Object::Array(items) => {
                let items: Vec<String> =
                    items.iter().map(|item| self.text(item)).collect::<Result<_, _>>()?;
                format!("[{}]", joined(&items))
            }
            Object::Dict(dict) => format!("<<{}>>", self.entries(dict)?),
            Object::Reference(id) => format!("{} 0 R", self.reference(*id, |raw| raw)?),
        })
    }

    /// The inside of a dictionary.
    pub(super) fn entries(&mut self, dict: &Dict) -> Result<String, Error> {
        let mut text = String::new();
        for (key, value) in &dict.0 {
            let value = match (key.as_slice(), value) {
                // Only for old checks of conformance.
                (b"CIDSet", _) => continue,
                (b"W", Object::Array(widths)) => {
                    slim::widths(widths).map_or_else(|| self.text(value), Ok)?
                }
                (b"FontFile2", Object::Reference(id)) => self.slimmed(*id, slim::font)?,
                (b"ToUnicode", Object::Reference(id)) => self.slimmed(*id, slim::character_map)?,
                (_, value) => self.text(value)?,
            };
            text.push_str(&name_text(key));
            if !value.starts_with(['/', '[', '<', '(']) {
                text.push(' ');
            }
            text.push_str(&value);
        }
        Ok(text)
    }

    fn slimmed(&mut self, id: u32, slim: fn(Vec<u8>) -> Vec<u8>) -> Result<String, Error> {
        Ok(format!("{} 0 R", self.reference(id, slim)?))
    }

    fn reference(&mut self, id: u32, slim: fn(Vec<u8>) -> Vec<u8>) -> Result<u32, Error> {
        if let Some(number) = self.numbers.get(&id) {
            return Ok(*number);
        }
        let number = self.reserve();
        self.numbers.insert(id, number);
        let source = self.source;
        let written = self.written(source.get(id)?, slim)?;
        self.put(number, written);
        Ok(number)
    }

    fn reserve(&mut self) -> u32 {
        self.collected.push(Written::Pending);
        self.collected.len() as u32
    }

    fn put(&mut self, number: u32, written: Written) {
        if let Some(place) = self.collected.get_mut(number as usize - 1) {
            *place = written;
        }
    }

    fn written(
        &mut self,
        object: &Indirect<'_>,
        slim: fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<Written, Error> {
        let (Object::Dict(dict), Some(data)) = (&object.value, object.stream) else {
            return Ok(Written::Plain(self.text(&object.value)?));
        };
        let mut dict = dict.clone();
        dict.remove("Length");
        match dict.get("Filter") {
            None => self.stream(dict, slim(data.to_vec())),
            Some(filter) if is_deflate(filter) => {
                dict.remove("Filter");
                self.stream(dict, slim(unpacked(data)?))
            }
            // Images in their own format stay as they are.
            Some(_) => Ok(Written::Stream { dict: self.entries(&dict)?, data: data.to_vec() }),
        }
    }

    fn stream(&mut self, mut dict: Dict, raw: Vec<u8>) -> Result<Written, Error> {
        let packed = packed(&raw);
        // What does not shrink is stored plainly.
        let smaller = packed.len() + 20 < raw.len();
        if smaller {
            dict.set("Filter", Object::Name(b"FlateDecode".to_vec()));
        }
        let dict = self.entries(&dict)?;
        Ok(Written::Stream { dict, data: if smaller { packed } else { raw } })
    }

    /// All objects as they stand in every ticket.
    pub(super) fn finish(mut self) -> Result<StaticPdf, Error> {
        let mut bytes = HEADER.to_vec();
        let mut places = Vec::with_capacity(self.collected.len() + 1);
        let (mut index, mut heads, mut bodies) = (0, String::new(), String::new());
        let stream_number = self.reserve();
        let collected = std::mem::take(&mut self.collected);
        for (number, written) in (1..).zip(&collected) {
            match written {
                Written::Stream { dict, data } => {
                    places.push(ObjectPlace::At(bytes.len() as u32));
                    write_stream(&mut bytes, number, dict, data);
                }
                Written::Plain(text) => {
                    heads.push_str(&format!("{number} {} ", bodies.len()));
                    bodies.push_str(text);
                    bodies.push('\n');
                    places.push(ObjectPlace::InStream { stream: stream_number, index });
                    index += 1;
                }
                // Only the object stream itself, which comes last.
                Written::Pending => {}
            }
        }
        let plain = format!("{heads}{bodies}");
        let dict = format!("/Type/ObjStm/N {index}/First {}/Filter/FlateDecode", heads.len());
        places.push(ObjectPlace::At(bytes.len() as u32));
        write_stream(&mut bytes, stream_number, &dict, &packed(plain.as_bytes()));
        Ok(StaticPdf { bytes, objects: places })
    }
}

/// The bytes of a stream's object.
pub(super) fn stream_bytes(object: &Indirect<'_>) -> Result<Vec<u8>, Error> {
    let (Object::Dict(dict), Some(data)) = (&object.value, object.stream) else {
        return Err(Error::Stream);
    };
    match dict.get("Filter") {
        None => Ok(data.to_vec()),
        Some(filter) if is_deflate(filter) => unpacked(data),
        Some(_) => Err(Error::Stream),
    }
}

fn is_deflate(filter: &Object) -> bool {
    match filter {
        Object::Name(name) => name == b"FlateDecode",
        Object::Array(list) => list.len() == 1 && is_deflate(&list[0]),
        _ => false,
    }
}

fn unpacked(data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut room = (data.len() * 4).max(1 << 12);
    loop {
        let mut raw = vec![0; room];
        match Decompressor::new().zlib_decompress(data, &mut raw) {
            Ok(length) => {
                raw.truncate(length);
                return Ok(raw);
            }
            Err(DecompressionError::InsufficientSpace) if room < MOST_UNPACKED => room *= 4,
            Err(_) => return Err(Error::Stream),
        }
    }
}

/// As small as deflate gets.
fn packed(raw: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::best());
    let mut packed = vec![0; compressor.zlib_compress_bound(raw.len())];
    // The bound is large enough by its definition.
    let length = compressor.zlib_compress(raw, &mut packed).unwrap_or(0);
    packed.truncate(length);
    packed
}

fn write_stream(bytes: &mut Vec<u8>, number: u32, dict: &str, data: &[u8]) {
    bytes.extend(format!("{number} 0 obj<<{dict}/Length {}>>stream\n", data.len()).into_bytes());
    bytes.extend(data);
    bytes.extend(b"\nendstream endobj\n");
}

fn joined(items: &[String]) -> String {
    let mut text = String::new();
    for item in items {
        let apart = text.ends_with([']', '>', ')', '[']) || item.starts_with(['/', '[', '<', '(']);
        if !text.is_empty() && !apart {
            text.push(' ');
        }
        text.push_str(item);
    }
    text
}

/// A name with its slash; names are kept as they were written, escapes included.
fn name_text(name: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(name))
}

/// A string with its brackets: only ASCII, for dictionaries are kept as text.
fn string_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b' '..=b'~' => text.push(*byte as char),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_any_byte() {
        assert_eq!(string_text(b"(a\\(b\x80\n)"), "(a\\(b\\200\\012)");
        assert_eq!(string_text(b"<0A>"), "<0A>");
    }

    #[test]
    fn arrays_have_spaces_only_where_they_must() {
        let items = ["1", "2", "/N", "[3]", "4 0 R", "<<>>"].map(str::to_owned);
        assert_eq!(joined(&items), "1 2/N[3]4 0 R<<>>");
    }

    #[test]
    fn packing_is_undone_by_unpacking() {
        let raw: Vec<u8> = (0..100_000_u32).map(|i| (i / 700) as u8).collect();
        assert_eq!(unpacked(&packed(&raw)).unwrap(), raw);
        assert!(unpacked(b"no zlib").is_err());
    }
}
