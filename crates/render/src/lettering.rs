//! Shaped text for crates that draw glyphs themselves: stickers. No template and no PDF is involved.
//!
//! [`Lettering`] holds the fonts, parsed once, and is shared by threads. Each thread has a [`Memory`], and makes a
//! [`Session`] of the two for every text. Direction, script and font of each part are chosen as for tickets.

use std::ops::Range;

use crate::face::{Face, FontError};
use crate::fonts;
use crate::text::runs::Choice;
use crate::text::shape::{Setting, Shaper, Workshop};

pub use crate::text::fit::Measured;
pub use crate::text::runs::Directions;
pub use crate::text::shape::Glyph;

/// Which fonts a text is set in, as places in the list given to [`Lettering::new`].
#[derive(Debug, Clone)]
pub struct Style {
    /// The first font that has all characters of a cluster is taken.
    pub fonts: Vec<u16>,
    /// The font that goes first for emoji.
    pub emoji: Option<u16>,
}

/// Fonts and styles, ready for shaping.
pub struct Lettering {
    faces: Vec<Face>,
    settings: Vec<Setting>,
}

/// What shaping keeps from one text to the next. Always used with the same [`Lettering`].
#[derive(Default)]
pub struct Memory(Workshop);

/// Shapes texts.
pub struct Session<'a> {
    shaper: Shaper<'a>,
    settings: &'a [Setting],
}

impl Lettering {
    /// Parses TrueType files that are part of the binary; they are trusted as the shipped fonts are.
    pub fn new(files: &[&'static [u8]], styles: &[Style]) -> Result<Self, FontError> {
        let faces = files.iter().map(|bytes| Face::trusted(bytes)).collect::<Result<_, _>>()?;
        let setting = |(number, style): (usize, &Style)| {
            let choice = Choice { fonts: style.fonts.clone(), pictures: style.emoji };
            Setting::plain(number as u16, choice)
        };
        Ok(Self { faces, settings: styles.iter().enumerate().map(setting).collect() })
    }

    /// Begins to shape with the plans that `memory` has kept.
    pub fn session<'a>(&'a self, memory: &'a mut Memory) -> Session<'a> {
        Session { shaper: Shaper::new(&mut memory.0, &self.faces), settings: &self.settings }
    }
}

impl Session<'_> {
    /// Appends the glyphs of `text[line]` from left to right, and gives their width in em; an unknown style has none.
    pub fn shape(
        &mut self,
        style: usize,
        text: &str,
        line: Range<usize>,
        directions: &Directions<'_>,
        out: &mut Vec<Glyph>,
    ) -> f32 {
        let Some(setting) = self.settings.get(style) else { return 0.0 };
        self.shaper.shape(setting, text, line, directions, out)
    }
}

/// The bytes of a shipped font.
pub fn shipped(name: &str) -> Option<&'static [u8]> {
    fonts::shipped().iter().find(|font| font.name == name).map(|font| font.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shaped_by_style() {
        let files =
            ["Inter-Regular.ttf", "NotoSansArabic-Bold.ttf"].map(|name| shipped(name).unwrap());
        let styles = [Style { fonts: vec![0, 1], emoji: None }];
        let lettering = Lettering::new(&files, &styles).unwrap();
        let mut memory = Memory::default();
        let mut session = lettering.session(&mut memory);
        let (text, mut glyphs) = ("Ann محمد", Vec::new());
        let width = session.shape(0, text, 0..text.len(), &Directions::of(text), &mut glyphs);
        assert!(width > 3.0 && glyphs.iter().any(|glyph| glyph.face == 1 && glyph.leftwards));
        let measured = Measured::new(text, &glyphs);
        assert!((measured.width(0..text.len()) - width).abs() < 0.01);
        assert_eq!(session.shape(7, text, 0..3, &Directions::of(text), &mut glyphs), 0.0);
    }
}
