//! A font, parsed once for all tickets: coverage, widths, where its tables are, what a PDF says of it.
//!
//! The bytes may be an organiser's, so nothing in them is believed: every table is looked at through
//! checked slices, and what is damaged reads as an empty glyph.

use std::ops::Range;
use std::sync::Arc;

use ttf_parser::Tag;

use crate::compiled::FontSource;
use crate::font_limits::{cff, check_outlines};
use crate::fonts;
use crate::subset::BLANK;

/// Characters below this are looked up in a bit set.
const QUICK: usize = 0x600;

/// Most bytes of glyphs in one embedded font; the fonts of an organiser's template share them.
pub(crate) const MOST_SUBSET_BYTES: usize = 8 << 20;

/// Why a font cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FontError {
    /// The template was compiled with a font of another version of Stampede.
    #[error("the template uses a shipped font that this version does not have; publish it again")]
    NotShipped,
    /// Not a font, or a damaged one.
    #[error("the font file is damaged or not a font: {0}")]
    Damaged(&'static str),
    /// A glyph unpacks to more than it may.
    #[error("glyph {glyph} of the font {limit}")]
    TooLarge {
        /// Its number.
        glyph: u16,
        /// The limit, and what the glyph has of it.
        limit: String,
    },
}

/// Where the bytes of a font are.
#[derive(Clone)]
enum FontBytes {
    Shipped(&'static [u8]),
    Own(Arc<[u8]>),
}

impl AsRef<[u8]> for FontBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Shipped(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

/// A font.
pub(crate) struct Face {
    bytes: FontBytes,
    shaping: harfrust::Font,
    /// Which face of a collection.
    pub(crate) index: u32,
    pub(crate) glyph_count: u16,
    pub(crate) units_per_em: u16,
    /// Widths in units of the font, by glyph.
    advances: Box<[u16]>,
    quick: [u64; QUICK / 64],
    cmap: Range<usize>,
    cmap_subtable: u16,
    pub(crate) outlines: Outlines,
    /// Most bytes of glyphs in one embedded font.
    pub(crate) most_subset_bytes: usize,
    /// PostScript name, made of harmless characters.
    pub(crate) name: String,
    /// Font descriptor without name and file: `/Flags 4/FontBBox[…]…`.
    pub(crate) descriptor: String,
}

/// How a font draws.
pub(crate) enum Outlines {
    TrueType(Glyf),
    /// Bytes of every glyph with its subroutines in place.
    Cff(Box<[u32]>),
}

impl Outlines {
    /// Bytes that a glyph adds to an embedded font.
    pub(crate) fn bytes_of(&self, data: &[u8], glyph: u16) -> usize {
        match self {
            Self::TrueType(glyf) => glyf.outline(data, glyph).len(),
            Self::Cff(sizes) => sizes.get(usize::from(glyph)).map_or(0, |size| *size as usize),
        }
    }
}

/// How a face of a font file draws.
pub(crate) fn outlines(data: &[u8], index: u32) -> Result<Outlines, FontError> {
    let unreadable = |_| FontError::Damaged("its tables cannot be read");
    read_outlines(data, &ttf_parser::Face::parse(data, index).map_err(unreadable)?)
}

fn read_outlines(data: &[u8], face: &ttf_parser::Face<'_>) -> Result<Outlines, FontError> {
    if face.tables().glyf.is_some() {
        let table = |tag: &[u8; 4]| place(data, face, tag);
        let glyf = Glyf::new(data, table).ok_or(FontError::Damaged("its glyf tables"))?;
        Ok(Outlines::TrueType(glyf))
    } else if face.tables().cff.is_some() {
        let table = place(data, face, b"CFF ").unwrap_or_default();
        Ok(Outlines::Cff(cff::sizes(data.get(table).unwrap_or_default())?))
    } else {
        Err(FontError::Damaged("it has no outlines that can be printed"))
    }
}

/// Where a table is in the file.
fn place(data: &[u8], face: &ttf_parser::Face<'_>, tag: &[u8; 4]) -> Option<Range<usize>> {
    let table = face.raw_face().table(Tag::from_bytes(tag))?;
    // Tables are slices of the file: their distance is where they begin.
    let start = table.as_ptr() as usize - data.as_ptr() as usize;
    Some(start..start + table.len())
}

impl Face {
    /// Reads a font.
    pub(crate) fn new(source: &FontSource) -> Result<Self, FontError> {
        match source {
            FontSource::Shipped(sha256) => {
                let font = fonts::by_sha256(sha256).ok_or(FontError::NotShipped)?;
                Self::parse(FontBytes::Shipped(font.bytes), 0)
            }
            FontSource::Own { bytes, face } => {
                Self::parse(FontBytes::Own(Arc::from(bytes.as_slice())), *face)
            }
        }
    }

    /// Reads a font that is part of the binary.
    pub(crate) fn trusted(bytes: &'static [u8]) -> Result<Self, FontError> {
        Self::parse(FontBytes::Shipped(bytes), 0)
    }

    fn parse(bytes: FontBytes, index: u32) -> Result<Self, FontError> {
        let data = bytes.as_ref();
        let face = ttf_parser::Face::parse(data, index)
            .map_err(|_| FontError::Damaged("its tables cannot be read"))?;
        let glyph_count = face.number_of_glyphs();
        let units_per_em = face.units_per_em();
        if glyph_count == 0 || units_per_em == 0 {
            return Err(FontError::Damaged("it has no glyphs"));
        }
        let cmap =
            place(data, &face, b"cmap").ok_or(FontError::Damaged("it has no character map"))?;
        let cmap_subtable =
            best_subtable(&face).ok_or(FontError::Damaged("it has no Unicode character map"))?;
        let outlines = read_outlines(data, &face)?;
        if matches!(bytes, FontBytes::Own(_)) {
            check_outlines(data, &outlines)?;
        }
        let advances = (0..glyph_count)
            .map(|glyph| face.glyph_hor_advance(ttf_parser::GlyphId(glyph)).unwrap_or(0))
            .collect();
        let shaping = match &bytes {
            FontBytes::Shipped(bytes) => harfrust::Font::new(*bytes, index),
            FontBytes::Own(bytes) => {
                let shared: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(bytes.clone());
                harfrust::Font::new(shared, index)
            }
        }
        .ok_or(FontError::Damaged("it cannot be shaped with"))?;
        let (name, descriptor) = (postscript_name(&face), descriptor(&face));
        let mut read = Self {
            index,
            glyph_count,
            units_per_em,
            advances,
            quick: [0; QUICK / 64],
            cmap,
            cmap_subtable,
            outlines,
            most_subset_bytes: MOST_SUBSET_BYTES,
            name,
            descriptor,
            shaping,
            bytes: bytes.clone(),
        };
        for character in (0..QUICK as u32).filter_map(char::from_u32) {
            let at = character as usize;
            read.quick[at / 64] |= u64::from(read.glyph(character).is_some()) << (at % 64);
        }
        Ok(read)
    }

    /// The font file.
    pub(crate) fn data(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether the face comes from an organiser's font file.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.bytes, FontBytes::Own(_))
    }

    /// Bytes of the file, if it is not one that ships.
    pub(crate) fn own_bytes(&self) -> usize {
        if self.is_own() { self.data().len() } else { 0 }
    }

    /// The font as the shaper wants it.
    pub(crate) fn shaping(&self) -> &harfrust::Font {
        &self.shaping
    }

    /// Whether the font has a glyph for a character.
    pub(crate) fn has(&self, character: char) -> bool {
        let at = character as usize;
        match self.quick.get(at / 64) {
            Some(word) => word >> (at % 64) & 1 == 1,
            None => self.glyph(character).is_some(),
        }
    }

    /// The glyph of a character alone.
    pub(crate) fn glyph(&self, character: char) -> Option<u16> {
        let table = ttf_parser::cmap::Table::parse(self.data().get(self.cmap.clone())?)?;
        let glyph = table.subtables.get(self.cmap_subtable)?.glyph_index(character.into())?;
        (glyph.0 != 0 && glyph.0 < self.glyph_count).then_some(glyph.0)
    }

    /// Width of a glyph in thousandths of an em, rounded to tenths: what the PDF says of it.
    pub(crate) fn width(&self, glyph: u16) -> f32 {
        let units = u32::from(self.advances.get(usize::from(glyph)).copied().unwrap_or(0));
        let per_em = u32::from(self.units_per_em);
        let tenths = (units * 20_000 + per_em) / (2 * per_em);
        tenths as f32 / 10.0
    }
}

fn best_subtable(face: &ttf_parser::Face<'_>) -> Option<u16> {
    let subtables = face.tables().cmap?.subtables;
    let full = (0..subtables.len()).find(|&index| {
        subtables.get(index).is_some_and(|subtable| {
            matches!(
                subtable.format,
                ttf_parser::cmap::Format::SegmentedCoverage(_)
                    | ttf_parser::cmap::Format::ManyToOneRangeMappings(_)
            ) && subtable.is_unicode()
        })
    });
    full.or_else(|| {
        (0..subtables.len())
            .find(|&index| subtables.get(index).is_some_and(|subtable| subtable.is_unicode()))
    })
}

/// The name, of letters, digits and hyphens only: it is written into PDFs as it is.
fn postscript_name(face: &ttf_parser::Face<'_>) -> String {
    let name = face
        .names()
        .into_iter()
        .filter(|name| name.name_id == ttf_parser::name_id::POST_SCRIPT_NAME)
        .find_map(|name| name.to_string())
        .unwrap_or_default();
    let mut name: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect();
    if name.is_empty() {
        name.push_str("Font");
    }
    name
}

fn descriptor(face: &ttf_parser::Face<'_>) -> String {
    let scale = 1000.0 / f32::from(face.units_per_em());
    let scaled = |units: i16| (f32::from(units) * scale).round() as i32;
    let bbox = face.global_bounding_box();
    // Symbolic, because the glyphs are numbered and not encoded.
    let mut flags = 4;
    if face.is_italic() {
        flags |= 64;
    }
    if face.is_monospaced() {
        flags |= 1;
    }
    format!(
        "/Flags {flags}/FontBBox[{} {} {} {}]/ItalicAngle {}/Ascent {}/Descent {}/CapHeight {}/StemV {}",
        scaled(bbox.x_min),
        scaled(bbox.y_min),
        scaled(bbox.x_max),
        scaled(bbox.y_max),
        face.italic_angle().round() as i32,
        scaled(face.ascender()),
        scaled(face.descender()),
        scaled(face.capital_height().unwrap_or(face.ascender())),
        // The usual guess from the weight.
        10 + (face.weight().to_number().saturating_sub(50)) / 5,
    )
}

/// Where the tables of a TrueType font are.
pub(crate) struct Glyf {
    glyf: Range<usize>,
    loca: Range<usize>,
    long_offsets: bool,
    hmtx: Range<usize>,
    long_metrics: u16,
    head: Range<usize>,
    hhea: Range<usize>,
    maxp: Range<usize>,
}

impl Glyf {
    fn new(data: &[u8], table: impl Fn(&[u8; 4]) -> Option<Range<usize>>) -> Option<Self> {
        let first = |tag: &[u8; 4], length: usize| {
            let range = table(tag)?;
            (range.len() >= length).then(|| range.start..range.start + length)
        };
        let head = first(b"head", 54)?;
        let hhea = first(b"hhea", 36)?;
        let maxp = first(b"maxp", 32)?;
        let word = |at: usize| Some(u16::from_be_bytes(*data.get(at..)?.first_chunk()?));
        Some(Self {
            glyf: table(b"glyf")?,
            loca: table(b"loca")?,
            long_offsets: word(head.start + 50)? != 0,
            hmtx: table(b"hmtx")?,
            long_metrics: word(hhea.start + 34)?,
            head,
            hhea,
            maxp,
        })
    }

    /// The outline of a glyph, as it stands in the file; empty if there is none or it is damaged.
    pub(crate) fn outline<'a>(&self, data: &'a [u8], glyph: u16) -> &'a [u8] {
        let find = || {
            let loca = data.get(self.loca.clone())?;
            let (start, end) = if self.long_offsets {
                let at = usize::from(glyph) * 4;
                let entry: &[u8; 8] = loca.get(at..)?.first_chunk()?;
                (
                    u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize,
                    u32::from_be_bytes([entry[4], entry[5], entry[6], entry[7]]) as usize,
                )
            } else {
                let at = usize::from(glyph) * 2;
                let entry: &[u8; 4] = loca.get(at..)?.first_chunk()?;
                (
                    usize::from(u16::from_be_bytes([entry[0], entry[1]])) * 2,
                    usize::from(u16::from_be_bytes([entry[2], entry[3]])) * 2,
                )
            };
            data.get(self.glyf.clone())?.get(start..end)
        };
        find().unwrap_or_default()
    }

    /// Advance and left side bearing of a glyph, as `hmtx` has them.
    pub(crate) fn metrics(&self, data: &[u8], glyph: u16) -> [u8; 4] {
        let find = || {
            let hmtx = data.get(self.hmtx.clone())?;
            if glyph == BLANK {
                return None;
            }
            if glyph < self.long_metrics {
                return hmtx.get(usize::from(glyph) * 4..)?.first_chunk::<4>().copied();
            }
            let last = usize::from(self.long_metrics.checked_sub(1)?) * 4;
            let advance = hmtx.get(last..)?.first_chunk::<2>()?;
            let rest = last + 4 + usize::from(glyph - self.long_metrics) * 2;
            let bearing =
                hmtx.get(rest..).and_then(|rest| rest.first_chunk::<2>()).unwrap_or(&[0, 0]);
            Some([advance[0], advance[1], bearing[0], bearing[1]])
        };
        find().unwrap_or_default()
    }

    /// Glyphs that the font says it has.
    pub(crate) fn glyph_count(&self, data: &[u8]) -> u16 {
        let count = data.get(self.maxp.start + 4..).and_then(|rest| rest.first_chunk::<2>());
        count.map_or(0, |count| u16::from_be_bytes(*count))
    }

    /// Bytes of the table with all outlines.
    pub(crate) fn table_bytes(&self) -> usize {
        self.glyf.len()
    }

    pub(crate) fn head<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.head.clone()]
    }

    pub(crate) fn hhea<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.hhea.clone()]
    }

    pub(crate) fn maxp<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.maxp.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> FontSource {
        let font = fonts::shipped().iter().find(|font| font.name == name).unwrap();
        FontSource::Shipped(font.sha256)
    }

    #[test]
    fn coverage_is_the_same_for_quick_and_for_other_characters() {
        let face = Face::new(&shipped("NotoSansArabic-Regular.ttf")).unwrap();
        for character in ('\0'..'\u{3000}').filter(|c| *c as usize >= 32) {
            assert_eq!(face.has(character), face.glyph(character).is_some(), "{character:?}");
        }
        assert!(face.has('ع') && !face.has('Ж') && !face.has('漢'));
    }

    #[test]
    fn what_is_no_font_is_refused() {
        for bytes in [Vec::new(), vec![0; 100], b"OTTO".to_vec()] {
            assert!(matches!(
                Face::new(&FontSource::Own { bytes, face: 0 }),
                Err(FontError::Damaged(_))
            ));
        }
        assert!(matches!(Face::new(&FontSource::Shipped([7; 32])), Err(FontError::NotShipped)));
    }
}
