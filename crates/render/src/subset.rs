//! The glyphs that a ticket uses, as a TrueType font of their own.
//!
//! Glyphs get new, dense numbers in the order of their first use; number 0 stays `.notdef`. Outlines
//! are copied, hinting instructions left out, component numbers rewritten.

use crate::face::{Face, Glyf, Outlines};

/// Stands for a glyph of no width that draws nothing, which no font has under this number.
pub(crate) const BLANK: u16 = u16::MAX;
/// Largest font that is written; what is beyond it is left out and reads as `.notdef`.
const MAX_GLYPHS: usize = 8000;
/// Putting CFF subroutines in place takes so many bytes for each byte of the result.
const CFF_GROWTH: usize = 32;

/// Which glyphs of a face are used, and under which new number.
#[derive(Default)]
pub(crate) struct Subset {
    /// New number by old; 0 if it has none. Empty until the face is first used.
    numbers: Vec<u16>,
    /// Old number by new.
    glyphs: Vec<u16>,
    /// Bytes of all these glyphs, before they are written.
    bytes: usize,
}

impl Subset {
    /// Forgets all glyphs but keeps the memory.
    pub(crate) fn clear(&mut self) {
        for &glyph in &self.glyphs {
            if let Some(number) = self.numbers.get_mut(usize::from(glyph)) {
                *number = 0;
            }
        }
        self.glyphs.clear();
        self.bytes = 0;
    }

    /// The new number of a glyph.
    pub(crate) fn number(&mut self, face: &Face, glyph: u16) -> u16 {
        if self.glyphs.is_empty() {
            self.numbers.resize(usize::from(face.glyph_count), 0);
            self.glyphs.push(0);
        }
        let Some(number) = self.numbers.get_mut(usize::from(glyph)) else { return 0 };
        if glyph == 0 || *number != 0 || self.glyphs.len() >= MAX_GLYPHS {
            return *number;
        }
        let bytes = self.bytes + face.outlines.bytes_of(face.data(), glyph);
        if bytes > face.most_subset_bytes {
            return 0;
        }
        self.bytes = bytes;
        *number = self.glyphs.len() as u16;
        self.glyphs.push(glyph);
        *number
    }

    /// A further number for a glyph, or for [`BLANK`]; `None` if there are too many.
    pub(crate) fn duplicate(&mut self, face: &Face, glyph: u16) -> Option<u16> {
        self.number(face, 0);
        let bytes = self.bytes + face.outlines.bytes_of(face.data(), glyph);
        if self.glyphs.len() >= MAX_GLYPHS || bytes > face.most_subset_bytes {
            return None;
        }
        self.bytes = bytes;
        self.glyphs.push(glyph);
        Some(self.glyphs.len() as u16 - 1)
    }

    /// Old numbers in the order of the new ones; empty if the face is not used.
    pub(crate) fn glyphs(&self) -> &[u16] {
        &self.glyphs
    }

    /// Memory in bytes that writing the font takes at most. The fonts that ship count with the ticket's other parts.
    pub(crate) fn memory(&mut self, face: &Face) -> usize {
        if self.glyphs.is_empty() || !face.is_own() {
            return 0;
        }
        match &face.outlines {
            Outlines::TrueType(glyf) => {
                self.add_components(face, glyf);
                2 * self.bytes
            }
            Outlines::Cff(_) => CFF_GROWTH * self.bytes + face.data().len(),
        }
    }

    /// Writes the font file. Adds the components of composite glyphs to the subset.
    pub(crate) fn write_truetype(&mut self, face: &Face, glyf: &Glyf, out: &mut Vec<u8>) {
        self.add_components(face, glyf);
        let count = self.glyphs.len();
        let start = out.len();
        out.resize(start + HEADER, 0);
        let mut file = File { out, start, tables: [(0, 0); TAGS.len()] };

        let mut offsets = Vec::with_capacity(count + 1);
        let at = file.begin();
        for &glyph in &self.glyphs {
            offsets.push((file.out.len() - at) as u32);
            let outline = glyf.outline(face.data(), glyph);
            copy_outline(outline, |part| self.component(part), file.out);
            if file.out.len() % 2 == 1 {
                file.out.push(0);
            }
        }
        offsets.push((file.out.len() - at) as u32);
        file.end(0, at);
        let long = offsets[count] > 0x1_FFFE;

        let at = file.begin();
        file.out.extend_from_slice(glyf.head(face.data()));
        file.out[at + 8..at + 12].fill(0);
        file.out[at + 50..at + 52].copy_from_slice(&[0, u8::from(long)]);
        file.end(1, at);

        let at = file.begin();
        file.out.extend_from_slice(glyf.hhea(face.data()));
        file.out[at + 34..at + 36].copy_from_slice(&(count as u16).to_be_bytes());
        file.end(2, at);

        let at = file.begin();
        for &glyph in &self.glyphs {
            file.out.extend_from_slice(&glyf.metrics(face.data(), glyph));
        }
        file.end(3, at);

        let at = file.begin();
        for &offset in &offsets {
            if long {
                file.out.extend_from_slice(&offset.to_be_bytes());
            } else {
                file.out.extend_from_slice(&((offset / 2) as u16).to_be_bytes());
            }
        }
        file.end(4, at);

        let at = file.begin();
        file.out.extend_from_slice(glyf.maxp(face.data()));
        file.out[at + 4..at + 6].copy_from_slice(&(count as u16).to_be_bytes());
        file.end(5, at);
        file.finish();
    }

    fn component(&self, glyph: u16) -> u16 {
        self.numbers.get(usize::from(glyph)).copied().unwrap_or(0)
    }

    fn add_components(&mut self, face: &Face, glyf: &Glyf) {
        let mut next = 0;
        // Grows while it is read; ends because no glyph is added twice.
        while next < self.glyphs.len() {
            for part in Components::of(glyf.outline(face.data(), self.glyphs[next])) {
                self.number(face, part.glyph);
            }
            next += 1;
        }
    }
}

const TAGS: [&[u8; 4]; 6] = [b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp"];
const HEADER: usize = 12 + TAGS.len() * 16;

struct File<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    tables: [(usize, usize); TAGS.len()],
}

impl File<'_> {
    fn begin(&self) -> usize {
        self.out.len()
    }

    fn end(&mut self, table: usize, at: usize) {
        self.tables[table] = (at, self.out.len() - at);
        while !(self.out.len() - self.start).is_multiple_of(4) {
            self.out.push(0);
        }
    }

    fn finish(self) {
        let Self { out, start, tables } = self;
        out[start..start + 12].copy_from_slice(&[0, 1, 0, 0, 0, 6, 0, 64, 0, 2, 0, 32]);
        for (index, (tag, (at, length))) in TAGS.iter().zip(tables).enumerate() {
            let sum = checksum(&out[at..at + length.next_multiple_of(4)]);
            let entry = start + 12 + index * 16;
            out[entry..entry + 4].copy_from_slice(*tag);
            out[entry + 4..entry + 8].copy_from_slice(&sum.to_be_bytes());
            out[entry + 8..entry + 12].copy_from_slice(&((at - start) as u32).to_be_bytes());
            out[entry + 12..entry + 16].copy_from_slice(&(length as u32).to_be_bytes());
        }
        let adjustment = 0xB1B0_AFBA_u32.wrapping_sub(checksum(&out[start..]));
        let head = tables[1].0;
        out[head + 8..head + 12].copy_from_slice(&adjustment.to_be_bytes());
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.as_chunks::<4>().0.iter().fold(0, |sum, &word| sum.wrapping_add(u32::from_be_bytes(word)))
}

/// A reference to another glyph in a composite one.
pub(crate) struct Component {
    pub(crate) glyph: u16,
    /// Where its flags are; its glyph number follows them.
    at: usize,
    /// Behind its arguments and scale.
    end: usize,
}

/// Reads the components of a composite glyph; nothing for simple and damaged ones.
pub(crate) struct Components<'a> {
    outline: &'a [u8],
    at: Option<usize>,
}

const ARGUMENTS_ARE_WORDS: u16 = 0x0001;
const HAS_SCALE: u16 = 0x0008;
const MORE_COMPONENTS: u16 = 0x0020;
const HAS_TWO_SCALES: u16 = 0x0040;
const HAS_MATRIX: u16 = 0x0080;
const HAS_INSTRUCTIONS: u16 = 0x0100;

impl<'a> Components<'a> {
    pub(crate) fn of(outline: &'a [u8]) -> Self {
        let composite = outline.len() > 10 && outline[0] & 0x80 != 0;
        Self { outline, at: composite.then_some(10) }
    }
}

impl Iterator for Components<'_> {
    type Item = Component;

    fn next(&mut self) -> Option<Component> {
        let at = self.at.take()?;
        let flags = word(self.outline, at)?;
        let glyph = word(self.outline, at + 2)?;
        let arguments = if flags & ARGUMENTS_ARE_WORDS != 0 { 4 } else { 2 };
        let scale = match flags {
            _ if flags & HAS_SCALE != 0 => 2,
            _ if flags & HAS_TWO_SCALES != 0 => 4,
            _ if flags & HAS_MATRIX != 0 => 8,
            _ => 0,
        };
        let end = at + 4 + arguments + scale;
        if end > self.outline.len() {
            return None;
        }
        if flags & MORE_COMPONENTS != 0 {
            self.at = Some(end);
        }
        Some(Component { glyph, at, end })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Copies an outline without its instructions. A damaged outline becomes an empty one.
fn copy_outline(outline: &[u8], number: impl Fn(u16) -> u16, out: &mut Vec<u8>) {
    let Some(contours) = word(outline, 0) else { return };
    if contours & 0x8000 != 0 {
        let start = out.len();
        let mut end = 0;
        for part in Components::of(outline) {
            if end == 0 {
                out.extend_from_slice(outline);
            }
            let at = start + part.at;
            out[at] &= !(HAS_INSTRUCTIONS >> 8) as u8;
            out[at + 2..at + 4].copy_from_slice(&number(part.glyph).to_be_bytes());
            end = part.end;
        }
        out.truncate(start + end);
        return;
    }
    let instructions_at = 10 + usize::from(contours) * 2;
    let Some(length) = word(outline, instructions_at) else { return };
    if length == 0 {
        out.extend_from_slice(outline);
    } else if let Some(points) = outline.get(instructions_at + 2 + usize::from(length)..) {
        out.extend_from_slice(&outline[..instructions_at]);
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(points);
    }
}
