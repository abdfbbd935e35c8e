//! The fonts of stickers: the shipped ones, and emoji in colour.
//!
//! Letters come from the fonts that tickets have. Emoji come from Twemoji (`assets/fonts/README.md` names its makers and
//! licences); outlined emoji stand in for those that are newer than it.

use stampede_render::lettering::{Lettering, Style, shipped};
use ttf_parser::GlyphId;

use crate::Error;
use crate::emoji::Emoji;
use crate::variant::Font;

const EMOJI: &[u8] = include_bytes!("../../../assets/fonts/TwemojiColor.ttf");

/// Files with one weight for each [`Font`], in the order of its variants.
const LETTERS: [&str; 4] =
    ["Inter-Regular.ttf", "Inter-Medium.ttf", "Inter-SemiBold.ttf", "Inter-ExtraBold.ttf"];
/// Scripts with two weights.
const REGULAR: [&str; 6] = [
    "NotoSansArabic-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansArmenian-Regular.ttf",
    "NotoSansGeorgian-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansThai-Regular.ttf",
];
const BOLD: [&str; 6] = [
    "NotoSansArabic-Bold.ttf",
    "NotoSansHebrew-Bold.ttf",
    "NotoSansArmenian-Bold.ttf",
    "NotoSansGeorgian-Bold.ttf",
    "NotoSansDevanagari-Bold.ttf",
    "NotoSansThai-Bold.ttf",
];
/// Scripts with one weight.
const OTHERS: [&str; 3] =
    ["NotoSansSC-Regular.ttf", "NotoSansKR-Regular.ttf", "NotoEmoji-Regular.ttf"];

/// Where the coloured emoji stand in the list of faces: after all files above.
const EMOJI_FACE: u16 = (LETTERS.len() + REGULAR.len() + BOLD.len() + OTHERS.len()) as u16;

/// All fonts, parsed.
pub(crate) struct Fonts {
    pub(crate) lettering: Lettering,
    faces: Vec<ttf_parser::Face<'static>>,
    pub(crate) emoji: Emoji,
}

impl Fonts {
    /// Parses all fonts; tens of milliseconds.
    pub(crate) fn new() -> Result<Self, Error> {
        let damaged = Error::Defect("a shipped font is damaged");
        let names = LETTERS.iter().chain(&REGULAR).chain(&BOLD).chain(&OTHERS);
        let mut files: Vec<&'static [u8]> = names.filter_map(|name| shipped(name)).collect();
        files.push(EMOJI);
        if files.len() != usize::from(EMOJI_FACE) + 1 {
            return Err(damaged);
        }
        let styles: Vec<Style> = (0..LETTERS.len()).map(style).collect();
        let lettering = Lettering::new(&files, &styles).map_err(|_| damaged.clone())?;
        let faces: Result<Vec<_>, _> =
            files.iter().map(|bytes| ttf_parser::Face::parse(bytes, 0)).collect();
        let emoji = Emoji::new(EMOJI).ok_or(damaged.clone())?;
        Ok(Self { lettering, faces: faces.map_err(|_| damaged)?, emoji })
    }

    /// A face by the number that shaping gives.
    pub(crate) fn face(&self, number: u16) -> Option<&ttf_parser::Face<'static>> {
        self.faces.get(usize::from(number))
    }

    /// Box of a glyph's ink in thousandths of an em, with y upwards: left, bottom, right, top. `None`: nothing is drawn.
    pub(crate) fn ink(&self, face: u16, glyph: u16) -> Option<[f32; 4]> {
        let font = self.face(face)?;
        let scale = 1000.0 / f32::from(font.units_per_em());
        let bounds = |glyph| font.glyph_bounding_box(glyph);
        let layers = if is_emoji(face) { self.emoji.layers(glyph) } else { &[] };
        let own = if layers.is_empty() { bounds(GlyphId(glyph)) } else { None };
        let boxes = layers.iter().filter_map(|layer| bounds(layer.glyph)).chain(own);
        boxes
            .map(|of| [of.x_min, of.y_min, of.x_max, of.y_max].map(f32::from))
            .reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])])
            .map(|ink| ink.map(|value| value * scale))
    }
}

/// Whether a face is the one with coloured emoji.
pub(crate) fn is_emoji(face: u16) -> bool {
    face == EMOJI_FACE
}

/// The style of [`Lettering`] for a weight.
pub(crate) fn style_of(font: Font) -> usize {
    match font {
        Font::Regular => 0,
        Font::Medium => 1,
        Font::SemiBold => 2,
        Font::ExtraBold => 3,
    }
}

/// From 600 on, scripts with two weights take the bold one.
fn style(weight: usize) -> Style {
    let scripts = LETTERS.len() + if weight >= 2 { REGULAR.len() } else { 0 };
    let others = LETTERS.len() + REGULAR.len() + BOLD.len();
    let mut fonts = vec![weight];
    fonts.extend(scripts..scripts + REGULAR.len());
    fonts.extend(others..others + OTHERS.len());
    // In colour before in outline.
    fonts.insert(fonts.len() - 1, usize::from(EMOJI_FACE));
    Style { fonts: fonts.into_iter().map(|face| face as u16).collect(), emoji: Some(EMOJI_FACE) }
}
