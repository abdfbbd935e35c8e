//! Drawing what differs between tickets, as PDF content streams.
//!
//! Text is shown with glyph numbers. So that it can be copied and searched, every number has a text in
//! the font's ToUnicode map. A glyph that stands for different texts gets a number for each.
//!
//! - Where text runs rightwards, a cluster of several glyphs is wrapped in a span with its text.
//! - Where it runs leftwards, readers find the texts of glyphs from left to right and reverse them; the
//!   text of a span, or of a glyph that stands for several characters, they reverse too, though it
//!   should not be. So there every character has a glyph: the widest of the cluster stands for the
//!   first character, and glyphs without width or ink, to its left, for the others.

use crate::compiled::{Color, Fill};
use crate::face::{Face, Outlines};
use crate::pdf::write::{decimal, hex16, integer, number, precise, precise_list, text_string};
use crate::qr::{QUIET_ZONE, Symbol};
use crate::subset::{BLANK, Subset};
use crate::text::shape::Glyph;

/// How far a pen may be off, in thousandths of an em, before it is moved: a hundredth of a point in
/// letters of 50 points.
const TOLERANCE: f32 = 0.2;

/// Further numbers of a face's glyphs at most; they are searched one after the other.
const MAX_FURTHER: usize = 64;

/// What is used of one face so far.
#[derive(Default)]
pub(crate) struct FaceUse {
    pub(crate) subset: Subset,
    /// By new glyph number: where its text is in [`Glyphs::texts`]; empty if it has none.
    pub(crate) texts: Vec<(u32, u32)>,
    /// Glyphs that have further numbers, and blanks.
    further: Vec<(u16, u16)>,
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
            used.further.clear();
        }
        self.texts.clear();
    }

    /// A number of the glyph that stands for `text`; `None` if it cannot have another.
    fn number(&mut self, faces: &[Face], face: u16, glyph: u16, text: &str) -> Option<u16> {
        let used = self.uses.get_mut(usize::from(face))?;
        let face = faces.get(usize::from(face))?;
        if glyph != BLANK {
            let number = used.subset.number(face, glyph);
            if used.stands_for(&mut self.texts, number, text) {
                return Some(number);
            }
        }
        let known = used
            .further
            .iter()
            .find(|&&(other, number)| other == glyph && used.text_of(&self.texts, number) == text);
        if let Some(&(_, number)) = known {
            return Some(number);
        }
        if used.further.len() >= MAX_FURTHER || !matches!(face.outlines, Outlines::TrueType(_)) {
            return None;
        }
        let number = used.subset.duplicate(face, glyph)?;
        used.further.push((glyph, number));
        used.stands_for(&mut self.texts, number, text);
        Some(number)
    }

    /// A number of the glyph, whatever it stands for.
    fn any_number(&mut self, faces: &[Face], glyph: &Glyph) -> u16 {
        let face = usize::from(glyph.face);
        match (self.uses.get_mut(face), faces.get(face)) {
            (Some(used), Some(face)) => used.subset.number(face, glyph.glyph),
            _ => 0,
        }
    }
}

impl FaceUse {
    fn text_of<'a>(&self, texts: &'a str, number: u16) -> &'a str {
        let (start, end) = self.texts.get(usize::from(number)).copied().unwrap_or((0, 0));
        &texts[start as usize..end as usize]
    }

    /// Whether the number stands for `text`: it did already, or for nothing before.
    fn stands_for(&mut self, texts: &mut String, number: u16, text: &str) -> bool {
        let known = self.text_of(texts, number);
        if !known.is_empty() {
            return known == text;
        }
        let number = usize::from(number);
        if self.texts.len() <= number {
            self.texts.resize(number + 1, (0, 0));
        }
        let start = texts.len() as u32;
        texts.push_str(text);
        self.texts[number] = (start, texts.len() as u32);
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
        if let [glyph] = cluster
            && (!glyph.leftwards || text.chars().nth(1).is_none())
        {
            if let Some(number) = glyphs.number(self.faces, glyph.face, glyph.glyph, text) {
                return pen.show(glyph, number, self.width(glyph));
            }
        } else if first.leftwards && self.leftward_cluster(cluster, text, glyphs, pen) {
            return;
        }
        pen.span(text, |pen| {
            for glyph in cluster {
                let number = glyphs.any_number(self.faces, glyph);
                pen.show(glyph, number, self.width(glyph));
            }
        });
    }

    /// Draws a cluster in which every character has a glyph; `false` if that cannot be.
    fn leftward_cluster(
        &self,
        cluster: &[Glyph],
        text: &str,
        glyphs: &mut Glyphs,
        pen: &mut Pen<'_>,
    ) -> bool {
        let wider = |a: &usize, b: &usize| cluster[*a].advance.total_cmp(&cluster[*b].advance);
        let Some(widest) = (0..cluster.len()).max_by(wider) else { return false };
        let face = cluster[widest].face;
        let mut characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
        let Some(letter) = characters.next() else { return false };
        let letter = glyphs.number(self.faces, face, cluster[widest].glyph, letter);
        let blanks: Option<Vec<u16>> =
            characters.rev().map(|text| glyphs.number(self.faces, face, BLANK, text)).collect();
        let (Some(letter), Some(blanks)) = (letter, blanks) else { return false };
        for number in blanks {
            let blank = Glyph { advance: 0.0, dx: 0.0, dy: 0.0, ..cluster[widest] };
            pen.show(&blank, number, 0.0);
        }
        for (index, glyph) in cluster.iter().enumerate() {
            if index == widest {
                pen.show(glyph, letter, self.width(glyph));
            } else {
                let number = glyphs.any_number(self.faces, glyph);
                pen.span("", |pen| pen.show(glyph, number, self.width(glyph)));
            }
        }
        true
    }

    fn width(&self, glyph: &Glyph) -> f32 {
        self.faces.get(usize::from(glyph.face)).map_or(0.0, |face| face.width(glyph.glyph))
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

    /// Draws something that stands for `text` as a whole.
    fn span(&mut self, text: &str, draw: impl FnOnce(&mut Self)) {
        self.leave_array();
        self.out.extend_from_slice(b"/Span<</ActualText");
        text_string(self.out, text);
        self.out.extend_from_slice(b">>BDC");
        draw(self);
        self.leave_array();
        self.out.extend_from_slice(b" EMC");
    }

    fn settle(&mut self) {
        if self.owed.abs() > TOLERANCE {
            match self.at {
                At::Outside => self.out.push(b'['),
                At::InString => self.out.push(b'>'),
                At::InArray => {}
            }
            self.owed -= decimal(self.out, self.owed);
            self.at = At::InArray;
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
    let modules = symbol.size() + 2 * QUIET_ZONE;
    let module = side / modules as f32;
    let quiet = module * QUIET_ZONE as f32;
    let [a, b, c, d, e, f] = *transform;
    out.extend_from_slice(b"q ");
    precise_list(out, &[a * module, -b * module, c * module, -d * module]);
    // The first module is the origin: coordinates are short.
    precise(out, (a + c) * quiet + e);
    out.push(b' ');
    precise(out, page_height - ((b + d) * quiet + f));
    out.extend_from_slice(b" cm\n");
    if let Some(background) = background {
        solid(out, background);
        out.extend_from_slice(b"-4 -4 ");
        integer(out, modules as u64);
        out.push(b' ');
        integer(out, modules as u64);
        out.extend_from_slice(b" re f\n");
    }
    solid(out, color);
    rectangles(out, symbol);
    out.extend_from_slice(b"f Q\n");
}

/// Numbers with a space behind them, and how long that is.
static NUMBERS: [([u8; 4], u8); 256] = {
    let mut table = [([b' '; 4], 0); 256];
    let mut value = 0;
    while value < 256 {
        let digits =
            [b'0' + value as u8 / 100, b'0' + value as u8 / 10 % 10, b'0' + value as u8 % 10];
        table[value] = match value {
            0..10 => ([digits[2], b' ', b' ', b' '], 2),
            10..100 => ([digits[1], digits[2], b' ', b' '], 3),
            _ => ([digits[0], digits[1], digits[2], b' '], 4),
        };
        value += 1;
    }
    table
};

/// The path of the dark modules. This is a fifth of all work, so lines are put together in pieces of
/// fixed length, of which the next overwrites what is too much.
fn rectangles(out: &mut Vec<u8>, symbol: &Symbol) {
    const LONGEST: usize = 4 * 4 + 4;
    let mut at = out.len();
    symbol.rectangles(|x, y, width, height| {
        if out.len() < at + LONGEST {
            out.resize(at + 400 * LONGEST, 0);
        }
        let line: &mut [u8; LONGEST] = match out[at..].first_chunk_mut() {
            Some(line) => line,
            None => return,
        };
        let mut length = 0;
        for value in [x, y, width, height] {
            // No symbol has more than 177 modules on a side.
            let (digits, long) = NUMBERS[value & 255];
            line[length..length + 4].copy_from_slice(&digits);
            length += usize::from(long & 7);
        }
        line[length..length + 3].copy_from_slice(b"re\n");
        at += length + 3;
    });
    out.truncate(at);
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
