//! Drawing what differs between tickets, as PDF content streams.
//!
//! Text is shown with glyph numbers. So that it can be copied and searched, every glyph has a text in
//! the font's ToUnicode map where that says it all; a cluster for which it does not (several glyphs for
//! several characters, or a glyph that already stands for another text) is wrapped in a span with
//! its text.

use unicode_normalization::char::is_combining_mark as is_mark;

use crate::compiled::{Color, Fill};
use crate::face::Face;
use crate::pdf::write::{hex16, integer, number, precise, precise_list, text_string};
use crate::qr::{QUIET_ZONE, Symbol};
use crate::subset::Subset;
use crate::text::shape::Glyph;

/// How far a pen may be off, in thousandths of an em, before it is moved.
const TOLERANCE: f32 = 0.02;

/// What is used of one face so far.
#[derive(Default)]
pub(crate) struct FaceUse {
    pub(crate) subset: Subset,
    /// By new glyph number: where its text is in [`Glyphs::texts`]; empty if it has none.
    pub(crate) texts: Vec<(u32, u32)>,
}

/// Glyphs and their texts, over all that shares fonts: a ticket, or many of a merged PDF.
#[derive(Default)]
pub(crate) struct Glyphs {
    pub(crate) uses: Vec<FaceUse>,
    pub(crate) texts: String,
}

impl Glyphs {
    pub(crate) fn clear(&mut self, faces: usize) {
        self.uses.resize_with(faces, FaceUse::default);
        for used in &mut self.uses {
            used.subset.clear();
            used.texts.clear();
        }
        self.texts.clear();
    }

    /// Number of a glyph in the subset.
    fn number(&mut self, faces: &[Face], glyph: &Glyph) -> u16 {
        let (Some(used), Some(face)) =
            (self.uses.get_mut(usize::from(glyph.face)), faces.get(usize::from(glyph.face)))
        else {
            return 0;
        };
        used.subset.number(face, glyph.glyph).0
    }

    /// Whether the glyph stands for `text`: it did already, or nothing before.
    fn stands_for(&mut self, face: u16, number: u16, text: &str) -> bool {
        let Some(used) = self.uses.get_mut(usize::from(face)) else { return false };
        let number = usize::from(number);
        if used.texts.len() <= number {
            used.texts.resize(number + 1, (0, 0));
        }
        let (start, end) = used.texts[number];
        if start < end {
            return &self.texts[start as usize..end as usize] == text;
        }
        let start = self.texts.len() as u32;
        self.texts.push_str(text);
        used.texts[number] = (start, self.texts.len() as u32);
        true
    }
}

/// Writes the fill of what follows.
pub(crate) fn fill(out: &mut Vec<u8>, fill: &Fill, opacity_state: Option<usize>) {
    match fill {
        Fill::Solid(color, _) => {
            if let Some(state) = opacity_state {
                out.extend_from_slice(b"/Sg");
                integer(out, state as u64);
                out.extend_from_slice(b" gs ");
            }
            solid(out, color);
        }
        Fill::Pattern(name) => {
            out.extend_from_slice(b"/Pattern cs/");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" scn ");
        }
    }
}

fn solid(out: &mut Vec<u8>, color: &Color) {
    for &part in color {
        number(out, part);
        out.push(b' ');
    }
    out.extend_from_slice(b"rg ");
}

/// A line of text: `x` to the right of the field's origin, `y` below it.
pub(crate) struct TextLine<'a> {
    pub(crate) faces: &'a [Face],
    /// The field's transform, and the height of its page.
    pub(crate) transform: &'a [f32; 6],
    pub(crate) page_height: f32,
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) size: f32,
    /// What the glyphs' clusters refer to.
    pub(crate) text: &'a str,
    /// From left to right.
    pub(crate) glyphs: &'a [Glyph],
}

impl TextLine<'_> {
    /// Draws the line with the fill that is set.
    pub(crate) fn draw(&self, glyphs: &mut Glyphs, out: &mut Vec<u8>) {
        let [a, b, c, d, e, f] = *self.transform;
        let (x, y) = (self.x, self.y);
        out.extend_from_slice(b"BT ");
        precise_list(out, &[a, -b, -c, d]);
        number(out, a * x + c * y + e);
        out.push(b' ');
        number(out, self.page_height - (b * x + d * y + f));
        out.extend_from_slice(b" Tm");
        let mut pen =
            Pen { out, size: self.size, face: None, rise: 0.0, owed: 0.0, at: At::Outside };
        for cluster in
            self.glyphs.chunk_by(|left, right| left.start == right.start && left.face == right.face)
        {
            self.cluster(cluster, glyphs, &mut pen);
        }
        pen.leave_array();
        pen.out.extend_from_slice(b" ET\n");
    }

    fn cluster(&self, cluster: &[Glyph], glyphs: &mut Glyphs, pen: &mut Pen<'_>) {
        let first = &cluster[0];
        let text = self.text.get(first.start as usize..first.end as usize).unwrap_or_default();
        let spanned = !self.is_plain(cluster, text, glyphs);
        if spanned {
            pen.leave_array();
            pen.out.extend_from_slice(b"/Span<</ActualText");
            text_string(pen.out, text);
            pen.out.extend_from_slice(b">>BDC");
        }
        for glyph in cluster {
            let number = glyphs.number(self.faces, glyph);
            let width =
                self.faces.get(usize::from(glyph.face)).map_or(0.0, |face| face.width(glyph.glyph));
            pen.show(glyph, number, width);
        }
        if spanned {
            pen.leave_array();
            pen.out.extend_from_slice(b" EMC");
        }
    }

    /// Whether the glyphs' own texts are the text of the cluster. With several glyphs they mostly
    /// are not: readers take raised marks for words of their own.
    fn is_plain(&self, cluster: &[Glyph], text: &str, glyphs: &mut Glyphs) -> bool {
        if let [glyph] = cluster {
            let number = glyphs.number(self.faces, glyph);
            return glyphs.stands_for(glyph.face, number, text);
        }
        // Leftward letters with marks: one glyph a character, each the character's own, from left
        // to right. Readers reverse what they find there, and would reverse the text of a span too.
        let Some(face) = self.faces.get(usize::from(cluster[0].face)) else { return false };
        let is_own = |(glyph, c): (&Glyph, char)| {
            glyph.leftwards && (face.glyph(c) == Some(glyph.glyph) || !is_mark(c))
        };
        text.chars().count() == cluster.len()
            && cluster.iter().zip(text.chars().rev()).all(is_own)
            && cluster.iter().zip(text.char_indices().rev()).all(|(glyph, (at, c))| {
                let number = glyphs.number(self.faces, glyph);
                glyphs.stands_for(glyph.face, number, &text[at..at + c.len_utf8()])
            })
    }
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum At {
    Outside,
    InArray,
    InString,
}

/// Shows glyphs one after the other.
struct Pen<'a> {
    out: &'a mut Vec<u8>,
    size: f32,
    face: Option<u16>,
    rise: f32,
    /// How far the pen is too far to the right, in thousandths of an em.
    owed: f32,
    at: At,
}

impl Pen<'_> {
    fn show(&mut self, glyph: &Glyph, number_in_subset: u16, width: f32) {
        if self.face != Some(glyph.face) {
            self.leave_array();
            self.out.extend_from_slice(b"/S");
            integer(self.out, u64::from(glyph.face));
            self.out.push(b' ');
            number(self.out, self.size);
            self.out.extend_from_slice(b" Tf");
            self.face = Some(glyph.face);
        }
        if (glyph.dy - self.rise).abs() > TOLERANCE {
            self.leave_array();
            self.out.push(b' ');
            precise(self.out, glyph.dy * self.size / 1000.0);
            self.out.extend_from_slice(b" Ts");
            self.rise = glyph.dy;
        }
        self.owed -= glyph.dx;
        self.settle();
        match self.at {
            At::Outside => self.out.extend_from_slice(b"[<"),
            At::InArray => self.out.push(b'<'),
            At::InString => {}
        }
        self.at = At::InString;
        hex16(self.out, number_in_subset);
        self.owed += glyph.dx + width - glyph.advance;
    }

    fn settle(&mut self) {
        if self.owed.abs() > TOLERANCE {
            match self.at {
                At::Outside => self.out.push(b'['),
                At::InString => self.out.push(b'>'),
                At::InArray => {}
            }
            number(self.out, self.owed);
            self.at = At::InArray;
            self.owed = 0.0;
        }
    }

    fn leave_array(&mut self) {
        self.settle();
        match self.at {
            At::Outside => return,
            At::InString => self.out.extend_from_slice(b">]TJ"),
            At::InArray => self.out.extend_from_slice(b"]TJ"),
        }
        self.at = At::Outside;
    }
}

/// Draws a QR code into a square of `side` that includes its quiet zone.
pub(crate) fn code(
    out: &mut Vec<u8>,
    symbol: &Symbol,
    transform: &[f32; 6],
    page_height: f32,
    side: f32,
    color: &Color,
    background: Option<&Color>,
) {
    let module = side / (symbol.size() + 2 * QUIET_ZONE) as f32;
    let [a, b, c, d, e, f] = *transform;
    out.extend_from_slice(b"q ");
    precise_list(out, &[a * module, -b * module, c * module, -d * module]);
    precise(out, e);
    out.push(b' ');
    precise(out, page_height - f);
    out.extend_from_slice(b" cm\n");
    if let Some(background) = background {
        solid(out, background);
        let modules = (symbol.size() + 2 * QUIET_ZONE) as u64;
        out.extend_from_slice(b"0 0 ");
        integer(out, modules);
        out.push(b' ');
        integer(out, modules);
        out.extend_from_slice(b" re f\n");
    }
    solid(out, color);
    out.push(b'\n');
    symbol.runs(|x, y, length| {
        for value in [x + QUIET_ZONE, y + QUIET_ZONE, length] {
            integer(out, value as u64);
            out.push(b' ');
        }
        out.extend_from_slice(b"1 re\n");
    });
    out.extend_from_slice(b"f Q\n");
}

/// Draws an image XObject as large as fits the box, centred.
pub(crate) fn image(
    out: &mut Vec<u8>,
    name: usize,
    pixels: (u32, u32),
    transform: &[f32; 6],
    page_height: f32,
    (width, height): (f32, f32),
) {
    let scale = (width / pixels.0 as f32).min(height / pixels.1 as f32);
    let (w, h) = (pixels.0 as f32 * scale, pixels.1 as f32 * scale);
    let (x, y) = ((width - w) / 2.0, (height - h) / 2.0 + h);
    let [a, b, c, d, e, f] = *transform;
    out.extend_from_slice(b"q ");
    // An image's own square has its y axis upwards, from the lower left corner.
    precise_list(out, &[a * w, -b * w, -c * h, d * h]);
    precise_list(out, &[a * x + c * y + e, page_height - (b * x + d * y + f)]);
    out.extend_from_slice(b"cm/Si");
    integer(out, name as u64);
    out.extend_from_slice(b" Do Q\n");
}
