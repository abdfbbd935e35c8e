//! Reads the PDFs that Typst's writer makes: plain objects, streams with direct lengths, one xref table.
//!
//! Not a reader for PDFs of the world: whatever it does not expect is an error.

use std::collections::BTreeMap;

use super::Error;

/// A value of a PDF.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Null,
    Boolean(bool),
    /// As it was written.
    Number(f64),
    /// Without its slash, as it was written.
    Name(Vec<u8>),
    /// With its parentheses or angle brackets.
    String(Vec<u8>),
    Array(Vec<Object>),
    Dict(Dict),
    Reference(u32),
}

/// Entries in the order they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Dict(pub(super) Vec<(Vec<u8>, Object)>);

impl Dict {
    pub(super) fn get(&self, key: &str) -> Option<&Object> {
        self.0.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
    }

    pub(super) fn set(&mut self, key: &str, value: Object) {
        self.remove(key);
        self.0.push((key.as_bytes().to_vec(), value));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key.as_bytes());
    }
}

/// An object that can be referred to.
#[derive(Debug, Clone)]
pub(super) struct Indirect<'a> {
    pub(super) value: Object,
    /// The bytes of a stream, as they are in the file.
    pub(super) stream: Option<&'a [u8]>,
}

/// A PDF.
pub(super) struct Document<'a> {
    objects: BTreeMap<u32, Indirect<'a>>,
    root: u32,
}

impl<'a> Document<'a> {
    pub(super) fn read(pdf: &'a [u8]) -> Result<Self, Error> {
        let start = find_last(pdf, b"startxref").ok_or(Error::Syntax("no startxref"))?;
        let mut at = Cursor { bytes: pdf, at: start + 9 };
        at.at = at.number()? as usize;
        at.word(b"xref")?;
        let mut offsets = Vec::new();
        loop {
            at.space();
            if at.peek() == Some(b't') {
                break;
            }
            let (first, count) = (at.number()? as u32, at.number()? as u32);
            for number in first..first.saturating_add(count) {
                let (offset, _) = (at.number()? as usize, at.number()?);
                at.space();
                if at.next()? == b'n' {
                    offsets.push((number, offset));
                }
            }
        }
        at.word(b"trailer")?;
        let Object::Dict(trailer) = at.object(0)? else { return Err(Error::Syntax("no trailer")) };
        let Some(Object::Reference(root)) = trailer.get("Root") else {
            return Err(Error::Syntax("no root"));
        };
        let mut objects = BTreeMap::new();
        for (number, offset) in offsets {
            objects.insert(number, Cursor { bytes: pdf, at: offset }.indirect()?);
        }
        Ok(Self { objects, root: *root })
    }

    pub(super) fn get(&self, number: u32) -> Result<&Indirect<'a>, Error> {
        self.objects.get(&number).ok_or(Error::Syntax("an object is missing"))
    }

    /// What a value stands for.
    pub(super) fn resolve<'b>(&'b self, value: &'b Object) -> Result<&'b Object, Error> {
        match value {
            Object::Reference(number) => Ok(&self.get(*number)?.value),
            value => Ok(value),
        }
    }

    /// A dictionary, directly or by reference.
    pub(super) fn dict<'b>(&'b self, value: &'b Object) -> Result<&'b Dict, Error> {
        match self.resolve(value)? {
            Object::Dict(dict) => Ok(dict),
            _ => Err(Error::Syntax("no dictionary")),
        }
    }

    /// An array, directly or by reference.
    pub(super) fn array<'b>(&'b self, value: &'b Object) -> Result<&'b [Object], Error> {
        match self.resolve(value)? {
            Object::Array(items) => Ok(items),
            _ => Err(Error::Syntax("no array")),
        }
    }

    pub(super) fn catalog(&self) -> Result<&Dict, Error> {
        self.dict(&self.get(self.root)?.value)
    }

    /// The pages in order. What a page takes from the nodes above it is not looked for: Typst's writer
    /// gives every page everything.
    pub(super) fn pages(&self) -> Result<Vec<&Dict>, Error> {
        let mut pages = Vec::new();
        let root = self.catalog()?.get("Pages").ok_or(Error::Pages)?;
        self.collect_pages(root, 0, &mut pages)?;
        Ok(pages)
    }

    fn collect_pages<'b>(
        &'b self,
        node: &'b Object,
        depth: u32,
        pages: &mut Vec<&'b Dict>,
    ) -> Result<(), Error> {
        let node = self.dict(node)?;
        match node.get("Kids") {
            Some(kids) if depth < 16 => self
                .array(kids)?
                .iter()
                .try_for_each(|kid| self.collect_pages(kid, depth + 1, pages)),
            Some(_) => Err(Error::Pages),
            None => {
                pages.push(node);
                Ok(())
            }
        }
    }
}

fn find_last(bytes: &[u8], word: &[u8]) -> Option<usize> {
    (0..bytes.len().saturating_sub(word.len())).rev().find(|at| bytes[*at..].starts_with(word))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Error> {
        let byte = self.peek().ok_or(Error::Syntax("it ends too early"))?;
        self.at += 1;
        Ok(byte)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => self.at += self.rest().iter().take_while(|b| **b != b'\n').count(),
                b if b.is_ascii_whitespace() || b == 0 => self.at += 1,
                _ => break,
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Error> {
        self.space();
        if !self.rest().starts_with(word) {
            return Err(Error::Syntax("an unexpected word"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<f64, Error> {
        self.space();
        let length =
            self.rest().iter().take_while(|b| b.is_ascii_digit() || b"+-.".contains(b)).count();
        let text = &self.rest()[..length];
        self.at += length;
        let text = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        text.ok_or(Error::Syntax("no number"))
    }

    fn indirect(&mut self) -> Result<Indirect<'a>, Error> {
        self.number()?;
        self.number()?;
        self.word(b"obj")?;
        let value = self.object(0)?;
        self.space();
        if !self.rest().starts_with(b"stream") {
            return Ok(Indirect { value, stream: None });
        }
        self.at += 6;
        if self.peek() == Some(b'\r') {
            self.at += 1;
        }
        self.at += 1;
        let length = match &value {
            Object::Dict(dict) => match dict.get("Length") {
                Some(Object::Number(length)) => *length as usize,
                _ => return Err(Error::Syntax("a stream without length")),
            },
            _ => return Err(Error::Syntax("a stream without dictionary")),
        };
        let stream = self.rest().get(..length).ok_or(Error::Syntax("a stream ends too early"))?;
        Ok(Indirect { value, stream: Some(stream) })
    }

    fn object(&mut self, depth: u32) -> Result<Object, Error> {
        if depth > 32 {
            return Err(Error::Syntax("it is nested too deep"));
        }
        self.space();
        match self.peek().ok_or(Error::Syntax("it ends too early"))? {
            b'/' => Ok(Object::Name(self.name()?)),
            b'(' => {
                let end = super::content::string_end(self.bytes, self.at);
                Ok(Object::String(self.until(end)))
            }
            b'<' if self.rest().starts_with(b"<<") => self.dict(depth).map(Object::Dict),
            b'<' => {
                let end = super::content::hex_end(self.bytes, self.at);
                Ok(Object::String(self.until(end)))
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    self.space();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        return Ok(Object::Array(items));
                    }
                    items.push(self.object(depth + 1)?);
                }
            }
            b't' => self.word(b"true").map(|()| Object::Boolean(true)),
            b'f' => self.word(b"false").map(|()| Object::Boolean(false)),
            b'n' => self.word(b"null").map(|()| Object::Null),
            _ => self.number_or_reference(),
        }
    }

    fn number_or_reference(&mut self) -> Result<Object, Error> {
        let number = self.number()?;
        let back = self.at;
        let is_reference = number.fract() == 0.0
            && self.number().is_ok_and(|generation| generation == 0.0)
            && self.word(b"R").is_ok();
        if is_reference {
            return Ok(Object::Reference(number as u32));
        }
        self.at = back;
        Ok(Object::Number(number))
    }

    fn dict(&mut self, depth: u32) -> Result<Dict, Error> {
        self.word(b"<<")?;
        let mut dict = Dict::default();
        loop {
            self.space();
            if self.rest().starts_with(b">>") {
                self.at += 2;
                return Ok(dict);
            }
            let key = self.name()?;
            dict.0.push((key, self.object(depth + 1)?));
        }
    }

    fn name(&mut self) -> Result<Vec<u8>, Error> {
        if self.next()? != b'/' {
            return Err(Error::Syntax("no name"));
        }
        let length = self
            .rest()
            .iter()
            .take_while(|b| !b.is_ascii_whitespace() && !b"()<>[]{}/%".contains(b))
            .count();
        Ok(self.until(self.at + length))
    }

    fn until(&mut self, end: usize) -> Vec<u8> {
        let text = self.bytes.get(self.at..end).unwrap_or_default().to_vec();
        self.at = end;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        let text = b"<</A[1 0 R 2 -.5(a\\)b)<0a>]/B<</C true>>/D/E#20 /F null>>";
        let Object::Dict(dict) = Cursor { bytes: text, at: 0 }.object(0).unwrap() else {
            panic!("no dictionary")
        };
        let Some(Object::Array(items)) = dict.get("A") else { panic!("{dict:?}") };
        assert_eq!(items[0], Object::Reference(1));
        assert_eq!(items[1..3], [Object::Number(2.0), Object::Number(-0.5)]);
        assert_eq!(items[3..], [Object::String(b"(a\\)b)".into()), Object::String(b"<0a>".into())]);
        assert_eq!(dict.get("D"), Some(&Object::Name(b"E#20".into())));
        assert_eq!(dict.get("F"), Some(&Object::Null));
    }

    #[test]
    fn what_is_no_pdf_is_an_error() {
        for text in
            ["", "startxref", "startxref 999999", "startxref\n0\nxref", "xref\n0 1\nstartxref 0 "]
        {
            assert!(Document::read(text.as_bytes()).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(Cursor { bytes: deep.as_bytes(), at: 0 }.object(0).is_err());
    }
}
