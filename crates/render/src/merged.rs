//! Many tickets in one PDF, written as they come.
//!
//! The static part of a template is written once, renumbered if it is not the first. Fonts are shared by
//! the tickets of a group: pages refer to objects that are written when the group is full. What
//! stays in memory is one group's glyphs, and some bytes for every object and page until the
//! cross-reference stream and the page tree are written at the end.

mod piece;
mod renumber;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher as _;

use crate::compiled::ObjectPlace;
use crate::draw::{Drawing, Values};
use crate::error::Error;
use crate::pdf::deflate::Deflater;
use crate::pdf::fonts;
use crate::pdf::objects::Objects;
use crate::pdf::write::{hex_bytes, integer, reference, text_string};
use crate::prepared::{Prepared, PreparedPage, write_catalog};
use crate::stamper::PageParts;
use renumber::renumbered;

pub use piece::{Continuation, Piece, piece};

/// Tickets that share fonts at most.
const GROUP_TICKETS: usize = 500;
/// Glyphs of a shared font after which the next group begins.
const GROUP_GLYPHS: usize = 2000;
/// Pages or nodes below a node of the page tree.
const FAN: usize = 64;

/// Why a merged PDF could not be written.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The ticket cannot be stamped.
    #[error(transparent)]
    Stamp(#[from] Error),
    /// The bytes cannot be written.
    #[error("the merged PDF cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Writes many tickets into one PDF.
pub struct Merged<W: Write> {
    out: W,
    written: u64,
    buffer: Vec<u8>,
    title: String,
    lang: Option<String>,
    /// Where objects are, from number 1.
    places: Vec<Place>,
    pages: Vec<u32>,
    /// Pages that other pieces of the document have, before these.
    pages_before: usize,
    /// Nodes above the pages, reserved: every `FAN` pages share one.
    parents: Vec<u32>,
    /// By hash of a template: what was added to the numbers of its static objects.
    templates: HashMap<[u8; 16], u32>,
    group: Option<Group>,
    deflater: Deflater,
    scratch: Vec<u8>,
    identity: SipHasher13,
}

/// Where an object is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Place {
    Reserved,
    At(u64),
    InStream { stream: u32, index: u16 },
}

/// Tickets of one template that share fonts.
struct Group {
    template: Arc<Prepared>,
    drawing: Drawing,
    /// By page of the template: its resources with the numbers of this document.
    pages: Vec<PreparedPage>,
    shift: u32,
    /// First object of a face's font, once it is used.
    fonts: Vec<Option<u32>>,
    tickets: usize,
}

impl<W: Write> Merged<W> {
    /// Begins a document.
    pub fn new(out: W, title: &str) -> Self {
        let mut buffer = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
        buffer.reserve(1 << 16);
        Self {
            out,
            written: 0,
            buffer,
            title: title.to_owned(),
            lang: None,
            places: Vec::new(),
            pages: Vec::new(),
            pages_before: 0,
            parents: Vec::new(),
            templates: HashMap::new(),
            group: None,
            deflater: Deflater::new(),
            scratch: Vec::new(),
            identity: SipHasher13::new_with_keys(0x4D65_7267_6564, 1),
        }
    }

    /// Adds the pages of a ticket. After an error of the ticket, others can still be added; it has
    /// left nothing behind.
    pub fn add(&mut self, template: &Arc<Prepared>, values: &Values<'_>) -> Result<(), MergeError> {
        let mut group = match self.group.take() {
            Some(group) if Arc::ptr_eq(&group.template, template) => group,
            Some(group) if group.template.hash == template.hash => group,
            other => {
                if let Some(group) = other {
                    self.end_group(group)?;
                }
                self.begin_group(template)?
            }
        };
        let drawn = group.drawing.draw(&group.template, values);
        if let Err(error) = drawn {
            self.group = Some(group);
            return Err(error.into());
        }
        self.identity.write(&template.hash);
        self.identity.write(values.id.as_bytes());
        self.add_pages(&mut group);
        group.tickets += 1;
        let glyphs = group.drawing.glyphs.uses.iter().map(|used| used.subset.glyphs().len());
        if group.tickets >= GROUP_TICKETS || glyphs.max().unwrap_or(0) >= GROUP_GLYPHS {
            self.end_group(group)?;
        } else {
            self.group = Some(group);
        }
        self.flush()?;
        Ok(())
    }

    /// Writes what is left, and gives the writer back.
    pub fn finish(mut self) -> Result<W, MergeError> {
        if let Some(group) = self.group.take() {
            self.end_group(group)?;
        }
        let root = self.write_page_tree()?;
        let catalog = self.reserve();
        let info = self.reserve();
        let lang = self.lang.take().unwrap_or_else(|| "en".to_owned());
        self.object(catalog, |out| write_catalog(out, root, &lang));
        let title = std::mem::take(&mut self.title);
        self.object(info, |out| {
            out.extend_from_slice(b"<</Title");
            text_string(out, &title);
            out.extend_from_slice(b">>");
        });
        self.write_xref(catalog, info)?;
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.len() >= 1 << 16 {
            self.out.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn reserve(&mut self) -> u32 {
        self.places.push(Place::Reserved);
        self.places.len() as u32
    }

    fn object(&mut self, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
        self.with_objects(|objects, _| objects.object(number, write));
    }

    fn with_objects(&mut self, write: impl FnOnce(&mut Objects<'_>, &mut Vec<u8>)) {
        let mut places = Vec::new();
        let mut objects = Objects {
            out: &mut self.buffer,
            before: self.written,
            places: &mut places,
            deflater: Some(&mut self.deflater),
        };
        write(&mut objects, &mut self.scratch);
        for (number, at) in places {
            self.places[number as usize - 1] = Place::At(at);
        }
    }

    fn begin_group(&mut self, template: &Arc<Prepared>) -> Result<Group, MergeError> {
        let known = self.templates.get(&template.hash).copied();
        let shift = match known {
            Some(shift) => shift,
            None => self.write_static(template)?,
        };
        self.templates.insert(template.hash, shift);
        if self.lang.is_none() {
            self.lang = Some(template.stamped.lang.clone());
        }
        let renumber = |bytes: &[u8]| {
            renumbered(bytes, shift).map_err(|_| Error::Template("a page's entries".to_owned()))
        };
        let pages = template
            .pages
            .iter()
            .map(|page| {
                Ok(PreparedPage {
                    head: renumber(&page.head)?,
                    fonts: renumber(&page.fonts)?,
                    tail: renumber(&page.tail)?,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut drawing = Drawing::default();
        drawing.glyphs.clear(template.faces.len());
        let fonts = vec![None; template.faces.len()];
        Ok(Group { template: Arc::clone(template), drawing, pages, shift, fonts, tickets: 0 })
    }

    /// Writes the static objects of a template, and gives what was added to their numbers.
    fn write_static(&mut self, template: &Prepared) -> Result<u32, MergeError> {
        let base = &template.stamped.base;
        let shift = self.places.len() as u32;
        let start = self.written + self.buffer.len() as u64;
        if shift == 0 {
            // The first template keeps its numbers; only its first line is there already.
            self.buffer.clear();
            self.buffer.extend_from_slice(&base.bytes);
            self.places.extend(base.objects.iter().map(|place| match *place {
                ObjectPlace::At(at) => Place::At(u64::from(at)),
                ObjectPlace::InStream { stream, index } => {
                    Place::InStream { stream, index: index as u16 }
                }
            }));
        } else {
            let moved = renumber::objects(base, shift)
                .map_err(|problem| Error::Template(format!("its static part: {problem}")))?;
            self.places.extend(moved.places.iter().map(|&place| match place {
                Some(at) => Place::At(start + at),
                None => Place::Reserved,
            }));
            self.buffer.extend_from_slice(&moved.bytes);
        }
        self.flush()?;
        Ok(shift)
    }

    fn add_pages(&mut self, group: &mut Group) {
        for (used, font) in group.drawing.glyphs.uses.iter().zip(&mut group.fonts) {
            if font.is_none() && !used.subset.glyphs().is_empty() {
                let first = self.places.len() as u32 + 1;
                self.places.extend([Place::Reserved; fonts::OBJECTS as usize]);
                *font = Some(first);
            }
        }
        let used: Vec<(usize, u32)> = group
            .fonts
            .iter()
            .enumerate()
            .filter_map(|(face, font)| Some((face, (*font)?)))
            .collect();
        for (index, page) in group.pages.iter().enumerate() {
            let content = &group.drawing.contents[index];
            if (self.pages_before + self.pages.len()).is_multiple_of(FAN) {
                let parent = self.reserve();
                self.parents.push(parent);
            }
            let number = self.reserve();
            let own = (!content.is_empty()).then(|| self.reserve());
            let parts = PageParts {
                page,
                parent: self.parents.last().copied().unwrap_or(number),
                fixed: group.template.stamped.pages[index].content + group.shift,
                own,
                fonts: &used,
            };
            self.pages.push(number);
            self.object(number, |out| parts.write(out));
            if let Some(own) = own {
                self.with_objects(|objects, _| objects.stream(own, b"", content));
            }
        }
    }

    fn end_group(&mut self, mut group: Group) -> Result<(), MergeError> {
        let glyphs = &mut group.drawing.glyphs;
        for (index, first) in group.fonts.iter().enumerate() {
            if let Some(first) = *first {
                let face = &group.template.faces[index];
                let used = &mut glyphs.uses[index];
                let texts = &glyphs.texts;
                self.with_objects(|objects, scratch| {
                    fonts::write(objects, first, face, used, texts, scratch);
                });
            }
        }
        self.flush()?;
        Ok(())
    }

    /// Writes the page tree from the leaves upwards, and gives the root's number.
    fn write_page_tree(&mut self) -> Result<u32, MergeError> {
        let pages = std::mem::take(&mut self.pages);
        let mut level: Vec<(u32, u64)> = pages.iter().map(|&page| (page, 1)).collect();
        let mut nodes = std::mem::take(&mut self.parents);
        if nodes.is_empty() {
            nodes.push(self.reserve());
        }
        loop {
            let above: Vec<u32> = if nodes.len() > 1 {
                (0..nodes.len().div_ceil(FAN)).map(|_| self.reserve()).collect()
            } else {
                Vec::new()
            };
            let mut next = Vec::with_capacity(nodes.len());
            for (index, &node) in nodes.iter().enumerate() {
                let start = (index * FAN).min(level.len());
                let children = &level[start..(start + FAN).min(level.len())];
                let count = children.iter().map(|(_, count)| count).sum();
                self.object(node, |out| {
                    out.extend_from_slice(b"<</Type/Pages/Count ");
                    integer(out, count);
                    if let Some(&parent) = above.get(index / FAN) {
                        out.extend_from_slice(b"/Parent ");
                        reference(out, parent);
                    }
                    out.extend_from_slice(b"/Kids[");
                    for &(child, _) in children {
                        reference(out, child);
                        out.push(b' ');
                    }
                    out.extend_from_slice(b"]>>");
                });
                self.flush()?;
                next.push((node, count));
            }
            if above.is_empty() {
                return Ok(nodes[0]);
            }
            level = next;
            nodes = above;
        }
    }

    fn write_xref(&mut self, catalog: u32, info: u32) -> Result<(), MergeError> {
        let number = self.reserve();
        let start = self.written + self.buffer.len() as u64;
        self.places[number as usize - 1] = Place::At(start);
        // 6 bytes for places: merged files may be larger than 4 GB.
        let mut xref = Vec::with_capacity((self.places.len() + 1) * 9);
        let mut entry = |kind: u8, place: u64, index: u16| {
            xref.push(kind);
            xref.extend_from_slice(&place.to_be_bytes()[2..]);
            xref.extend_from_slice(&index.to_be_bytes());
        };
        entry(0, 0, u16::MAX);
        for place in &self.places {
            match *place {
                Place::Reserved => entry(0, 0, 0),
                Place::At(at) => entry(1, at, 0),
                Place::InStream { stream, index } => entry(2, u64::from(stream), index),
            }
        }
        let id = self.identity.finish128().as_bytes();
        let packed = self.deflater.deflate(&xref);
        let out = &mut self.buffer;
        integer(out, u64::from(number));
        out.extend_from_slice(b" 0 obj\n<</Type/XRef/W[1 6 2]/Size ");
        integer(out, u64::from(number) + 1);
        out.extend_from_slice(b"/Root ");
        reference(out, catalog);
        out.extend_from_slice(b"/Info ");
        reference(out, info);
        out.extend_from_slice(b"/ID[");
        hex_bytes(out, &id);
        hex_bytes(out, &id);
        out.extend_from_slice(b"]/Length ");
        integer(out, packed.map_or(xref.len(), <[u8]>::len) as u64);
        if packed.is_some() {
            out.extend_from_slice(b"/Filter/FlateDecode");
        }
        out.extend_from_slice(b">>stream\n");
        out.extend_from_slice(packed.unwrap_or(&xref));
        out.extend_from_slice(b"\nendstream\nendobj\nstartxref\n");
        integer(out, start);
        out.extend_from_slice(b"\n%%EOF\n");
        Ok(())
    }
}
