//! Drawing texts, as PDF content streams.
//!
//! Text is shown with glyph numbers. So that it can be copied and searched, every number has a text in
//! the font's ToUnicode map. A glyph that stands for different texts gets a number for each.
//!
//! - Where text runs rightwards, a cluster of several glyphs is wrapped in a span with its text.
//! - Where it runs leftwards, readers find the texts of glyphs from left to right and reverse them; the
//!   text of a span, or of a glyph that stands for several characters, they reverse too, though it
//!   should not be. So there every character has a glyph: the widest of the cluster stands for the
//!   first character, and glyphs without width or ink, to its left, for the others.

use crate::face::{Face, Outlines};
use crate::pdf::write::{decimal, hex16, integer, number, precise, precise_list, text_string};
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
