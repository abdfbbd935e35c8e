//! Stamping: one ticket, one PDF.
//!
//! ```text
//!   static part · catalog · page tree    copied as they are
//!   pages, their own content             what the fields draw
//!   fonts                                exactly the glyphs that were drawn
//!   title · cross-reference stream
//! ```

use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::draw::{Drawing, Values};
use crate::error::Error;
use crate::pdf::deflate::Deflater;
use crate::pdf::fonts;
use crate::pdf::objects::Objects;
use crate::pdf::write::{hex_bytes, integer, reference, text_string};
use crate::prepared::{Prepared, PreparedPage, TitlePart, XREF_ENTRY};
use crate::text::clean;

/// Whether streams are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deflate {
    /// Quicker.
    #[default]
    Off,
    /// Smaller.
    On,
}

/// Stamps tickets of one template; keeps memory and shaping plans from one to the next.
pub struct Stamper {
    template: Arc<Prepared>,
    drawing: Drawing,
    deflater: Option<Deflater>,
    places: Vec<(u32, u64)>,
    scratch: Vec<u8>,
    title: String,
}

/// Stamps one ticket. For many, a [`Stamper`] is quicker and gives the same bytes.
pub fn stamp(template: &Arc<Prepared>, values: &Values<'_>) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    Stamper::new(Arc::clone(template)).stamp(values, &mut out)?;
    Ok(out)
}

impl Stamper {
    /// A stamper for one thread.
    pub fn new(template: Arc<Prepared>) -> Self {
        Self {
            template,
            drawing: Drawing::default(),
            deflater: None,
            places: Vec::new(),
            scratch: Vec::new(),
            title: String::new(),
        }
    }

    /// Sets whether streams are compressed.
    #[must_use]
    pub fn with_deflate(mut self, deflate: Deflate) -> Self {
        self.deflater = (deflate == Deflate::On).then(Deflater::new);
        self
    }

    /// Writes the PDF of a ticket into `out`, whatever was in it before.
    pub fn stamp(&mut self, values: &Values<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.draw(values)?;
        self.write(values, out);
        Ok(())
    }

    /// Draws the fields of a ticket, for [`Self::write`]. Returns how many bytes of memory that takes at most: many more
    /// than drawing, because fonts are unpacked then.
    pub fn draw(&mut self, values: &Values<'_>) -> Result<usize, Error> {
        let template = Arc::clone(&self.template);
        self.drawing.glyphs.clear(template.faces.len());
        self.drawing.draw(&template, values)?;
        let contents: usize = self.drawing.contents.iter().map(Vec::len).sum();
        let uses = template.faces.iter().zip(&mut self.drawing.glyphs.uses);
        let fonts: usize = uses.map(|(face, used)| used.subset.memory(face)).sum();
        Ok(template.fixed_memory() + 2 * contents + fonts)
    }

    /// Writes the PDF of the ticket that was drawn last, with the values that it was drawn with, into `out`.
    pub fn write(&mut self, values: &Values<'_>, out: &mut Vec<u8>) {
        out.clear();
        let template = Arc::clone(&self.template);
        out.extend_from_slice(&template.prefix);
        self.places.clear();
        let mut objects =
            Objects { out, before: 0, places: &mut self.places, deflater: self.deflater.as_mut() };
        let glyphs = &mut self.drawing.glyphs;
        let mut next = template.after_pages();
        let mut used_fonts = Vec::with_capacity(template.faces.len());
        for (index, used) in glyphs.uses.iter().enumerate() {
            if !used.subset.glyphs().is_empty() {
                used_fonts.push((index, next));
                next += fonts::OBJECTS;
            }
        }
        for (index, (page, content)) in
            template.pages.iter().zip(&self.drawing.contents).enumerate()
        {
            let number = template.page(index);
            let parts = PageParts {
                page,
                parent: template.page_tree(),
                fixed: template.stamped.pages[index].content,
                own: (!content.is_empty()).then_some(number + 1),
                fonts: &used_fonts,
            };
            objects.object(number, |out| parts.write(out));
            objects.stream(number + 1, b"", content);
        }
        for &(index, first) in &used_fonts {
            let face = &template.faces[index];
            let used = &mut glyphs.uses[index];
            fonts::write(&mut objects, first, face, used, &glyphs.texts, &mut self.scratch);
        }
        title_of(&template, values, &mut self.title);
        let info = next;
        objects.object(info, |out| {
            out.extend_from_slice(b"<</Title");
            text_string(out, &self.title);
            out.extend_from_slice(b">>");
        });
        self.finish(&template, values, info, out);
    }

    /// Writes the cross-reference stream, which is also the trailer.
    fn finish(&mut self, template: &Prepared, values: &Values<'_>, info: u32, out: &mut Vec<u8>) {
        let number = info + 1;
        let start = out.len() as u64;
        self.places.push((number, start));
        let xref = &mut self.scratch;
        xref.clear();
        xref.extend_from_slice(&template.xref);
        let fixed = xref.len();
        xref.resize((number as usize + 1) * XREF_ENTRY, 0);
        for &(object, place) in &self.places {
            let at = object as usize * XREF_ENTRY;
            debug_assert!(at >= fixed, "object {object} is not one of the template's");
            xref[at] = 1;
            xref[at + 1..at + 5].copy_from_slice(&(place as u32).to_be_bytes());
        }
        integer(out, u64::from(number));
        out.extend_from_slice(b" 0 obj\n<</Type/XRef/W[1 4 2]/Size ");
        integer(out, u64::from(number) + 1);
        out.extend_from_slice(b"/Root ");
        reference(out, template.catalog());
        out.extend_from_slice(b"/Info ");
        reference(out, info);
        out.extend_from_slice(b"/ID[");
        let id = identity(template, values);
        hex_bytes(out, &id);
        hex_bytes(out, &id);
        out.extend_from_slice(b"]/Length ");
        let packed = self.deflater.as_mut().and_then(|deflater| deflater.deflate(xref));
        integer(out, packed.map_or(xref.len(), <[u8]>::len) as u64);
        if packed.is_some() {
            out.extend_from_slice(b"/Filter/FlateDecode");
        }
        out.extend_from_slice(b">>stream\n");
        out.extend_from_slice(packed.unwrap_or(xref));
        out.extend_from_slice(b"\nendstream\nendobj\nstartxref\n");
        integer(out, start);
        out.extend_from_slice(b"\n%%EOF\n");
    }
}

/// What a page's object says.
pub(crate) struct PageParts<'a> {
    pub(crate) page: &'a PreparedPage,
    pub(crate) parent: u32,
    /// Static content.
    pub(crate) fixed: u32,
    /// The ticket's content.
    pub(crate) own: Option<u32>,
    /// Index of a face, and the object of its font.
    pub(crate) fonts: &'a [(usize, u32)],
}

impl PageParts<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<</Type/Page/Parent ");
        reference(out, self.parent);
        out.extend_from_slice(b"/Contents[");
        reference(out, self.fixed);
        if let Some(own) = self.own {
            out.push(b' ');
            reference(out, own);
        }
        out.push(b']');
        out.extend_from_slice(&self.page.head);
        out.extend_from_slice(&self.page.fonts);
        for &(face, font) in self.fonts {
            out.extend_from_slice(b"/S");
            integer(out, face as u64);
            out.push(b' ');
            reference(out, font);
        }
        out.extend_from_slice(b">>>>");
        out.extend_from_slice(&self.page.tail);
        out.extend_from_slice(b">>");
    }
}

/// The title of a ticket's document.
pub(crate) fn title_of(template: &Prepared, values: &Values<'_>, title: &mut String) {
    title.clear();
    for part in &template.title {
        match part {
            TitlePart::Text(text) => title.push_str(text),
            TitlePart::Field(name) => {
                title.push_str(&clean(values.get(name).unwrap_or_default()));
            }
        }
    }
}

/// Tells documents apart; depends on nothing but what they show. Not a proof of anything, so a quick
/// hash does.
fn identity(template: &Prepared, values: &Values<'_>) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_keys(0x5374_616D_7065_6465, 1);
    hasher.write(&template.hash);
    let mut text = |text: &str| {
        hasher.write(&(text.len() as u64).to_le_bytes());
        hasher.write(text.as_bytes());
    };
    text(values.id);
    for (name, value) in values.fields {
        text(name);
        text(value);
    }
    hasher.finish128().as_bytes()
}
