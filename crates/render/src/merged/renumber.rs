//! Static objects under other numbers: several templates in one document.
//!
//! Objects in object streams are taken out, for their references have to be rewritten.

use libdeflater::{DecompressionError, Decompressor};

use crate::compiled::{ObjectPlace, StaticPdf};
use crate::pdf::syntax::{Malformed, Token, Tokens};
use crate::pdf::write::integer;

/// Largest object stream that is unpacked.
const MAX_UNPACKED: usize = 64 << 20;

/// Objects with new numbers.
pub(super) struct Moved {
    pub(super) bytes: Vec<u8>,
    /// By old number − 1: where it is in `bytes`; `None` for object streams, which are gone.
    pub(super) places: Vec<Option<u64>>,
}

/// Adds `shift` to the numbers of all objects and references.
pub(super) fn objects(base: &StaticPdf, shift: u32) -> Result<Moved, &'static str> {
    let mut moved = Moved { bytes: Vec::new(), places: vec![None; base.objects.len()] };
    let mut unpacked: Vec<Option<Unpacked>> = Vec::new();
    unpacked.resize_with(base.objects.len() + 1, || None);
    for (index, place) in base.objects.iter().enumerate() {
        let number = index as u32 + 1;
        match *place {
            ObjectPlace::At(at) => {
                let object = Object::read(&base.bytes, at as usize)?;
                if !object.is_object_stream {
                    moved.begin(index, number + shift);
                    let dictionary = renumbered(object.value, shift).map_err(|_| UNREADABLE)?;
                    moved.bytes.extend_from_slice(&dictionary);
                    if let Some(stream) = object.stream {
                        moved.bytes.extend_from_slice(b"stream\n");
                        moved.bytes.extend_from_slice(stream);
                        moved.bytes.extend_from_slice(b"\nendstream");
                    }
                    moved.bytes.extend_from_slice(b"\nendobj\n");
                }
            }
            ObjectPlace::InStream { stream, index: position } => {
                let slot = unpacked.get_mut(stream as usize).ok_or(UNREADABLE)?;
                if slot.is_none() {
                    let holder = base.objects.get(stream as usize - 1);
                    let Some(ObjectPlace::At(at)) = holder else { return Err(UNREADABLE) };
                    *slot = Some(Unpacked::read(&Object::read(&base.bytes, *at as usize)?)?);
                }
                let holder = slot.as_ref().ok_or(UNREADABLE)?;
                let value = holder.object(position as usize, number).ok_or(UNREADABLE)?;
                moved.begin(index, number + shift);
                let value = renumbered(value, shift).map_err(|_| UNREADABLE)?;
                moved.bytes.extend_from_slice(&value);
                moved.bytes.extend_from_slice(b"\nendobj\n");
            }
        }
    }
    Ok(moved)
}

const UNREADABLE: &str = "an object cannot be read";

impl Moved {
    fn begin(&mut self, index: usize, number: u32) {
        self.places[index] = Some(self.bytes.len() as u64);
        integer(&mut self.bytes, u64::from(number));
        self.bytes.extend_from_slice(b" 0 obj\n");
    }
}

/// Adds `shift` to the numbers of all references.
pub(super) fn renumbered(bytes: &[u8], shift: u32) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    let mut copied = 0;
    let mut tokens = Tokens::new(bytes, 0);
    // The last two tokens, if they were whole numbers.
    let mut recent: [Option<(u64, std::ops::Range<usize>)>; 2] = [None, None];
    while let Some((token, range)) = tokens.next()? {
        if token == Token::Keyword
            && &bytes[range.clone()] == b"R"
            && let [Some((number, place)), Some((0, _))] = &recent
        {
            out.extend_from_slice(&bytes[copied..place.start]);
            integer(&mut out, number + u64::from(shift));
            copied = place.end;
        }
        let integer = if let Token::Integer(value) = token { Some((value, range)) } else { None };
        recent = [recent[1].take(), integer];
    }
    out.extend_from_slice(&bytes[copied..]);
    Ok(out)
}

/// An object of the static part.
struct Object<'a> {
    /// The value; of a stream, its dictionary.
    value: &'a [u8],
    stream: Option<&'a [u8]>,
    is_object_stream: bool,
    is_deflated: bool,
    /// `/First` of an object stream.
    first: usize,
}

impl<'a> Object<'a> {
    fn read(bytes: &'a [u8], at: usize) -> Result<Self, &'static str> {
        let mut tokens = Tokens::new(bytes, at);
        let mut next = || tokens.next().map_err(|_| UNREADABLE)?.ok_or(UNREADABLE);
        // `number 0 obj`, which was checked.
        next()?;
        next()?;
        let (_, begin) = next()?;
        let mut object = Self {
            value: &[],
            stream: None,
            is_object_stream: false,
            is_deflated: false,
            first: 0,
        };
        let mut length = None;
        let mut depth = 0_usize;
        let mut key: &[u8] = b"";
        // Whether the value of `key` is still to come.
        let mut expected = false;
        loop {
            let (token, range) = next()?;
            let word = &bytes[range.clone()];
            match token {
                Token::DictOpen | Token::ArrayOpen => {
                    depth += 1;
                    expected = false;
                }
                Token::DictClose | Token::ArrayClose => depth = depth.saturating_sub(1),
                Token::Name if depth == 1 && !expected => {
                    key = word;
                    expected = true;
                }
                Token::Name => {
                    match (key, word) {
                        (b"/Type", b"/ObjStm") if depth == 1 => object.is_object_stream = true,
                        (b"/Filter", b"/FlateDecode") => object.is_deflated = true,
                        _ => {}
                    }
                    expected = false;
                }
                Token::Integer(value) => {
                    match key {
                        b"/Length" if depth == 1 && expected => length = Some(value as usize),
                        b"/First" if depth == 1 && expected => object.first = value as usize,
                        _ => {}
                    }
                    expected = false;
                }
                Token::Keyword if word == b"R" && key == b"/Length" && depth == 1 => {
                    return Err("the length of a stream is not written in its dictionary");
                }
                Token::Keyword if word == b"endobj" => {
                    object.value = bytes[begin.end..range.start].trim_ascii();
                    return Ok(object);
                }
                Token::Keyword if word == b"stream" => {
                    object.value = bytes[begin.end..range.start].trim_ascii();
                    let start = match bytes.get(range.end..).unwrap_or_default() {
                        [b'\r', b'\n', ..] => range.end + 2,
                        _ => range.end + 1,
                    };
                    let end = start.checked_add(length.ok_or(UNREADABLE)?).ok_or(UNREADABLE)?;
                    object.stream = Some(bytes.get(start..end).ok_or(UNREADABLE)?);
                    return Ok(object);
                }
                Token::Number | Token::String | Token::Keyword => expected = false,
            }
        }
    }
}

/// The inside of an object stream.
struct Unpacked {
    data: Vec<u8>,
    first: usize,
    /// Number of an object and where it begins, behind `first`.
    index: Vec<(u64, usize)>,
}

impl Unpacked {
    fn read(object: &Object<'_>) -> Result<Self, &'static str> {
        let stream = object.stream.filter(|_| object.is_object_stream).ok_or(UNREADABLE)?;
        let data = if object.is_deflated { inflate(stream)? } else { stream.to_vec() };
        let head = data.get(..object.first).ok_or(UNREADABLE)?;
        let mut tokens = Tokens::new(head, 0);
        let mut numbers = Vec::new();
        while let Some((token, _)) = tokens.next().map_err(|_| UNREADABLE)? {
            let Token::Integer(value) = token else { return Err(UNREADABLE) };
            numbers.push(value);
        }
        let index = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1] as usize)).collect();
        Ok(Self { first: object.first, index, data })
    }

    fn object(&self, position: usize, number: u32) -> Option<&[u8]> {
        let &(found, start) = self.index.get(position)?;
        if found != u64::from(number) {
            return None;
        }
        let end = self.index.get(position + 1).map_or(self.data.len(), |next| self.first + next.1);
        self.data.get(self.first.checked_add(start)?..end)
    }
}

fn inflate(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut size = packed.len().saturating_mul(4).clamp(1 << 12, MAX_UNPACKED);
    loop {
        let mut data = vec![0; size];
        match Decompressor::new().zlib_decompress(packed, &mut data) {
            Ok(length) => {
                data.truncate(length);
                return Ok(data);
            }
            Err(DecompressionError::InsufficientSpace) if size < MAX_UNPACKED => {
                size = (size * 4).min(MAX_UNPACKED);
            }
            Err(_) => return Err(UNREADABLE),
        }
    }
}
