//! Layout: where each glyph stands, in pixels.
//!
//! Lines are centred, as far apart as their ink demands, and the whole is as large as its ink fits the box.

use stampede_render::lettering::{Directions, Glyph, Measured, Memory, Session};

use crate::error::Unknown;
use crate::fonts::{Fonts, is_emoji, style_of};
use crate::lines::{self, Line, Paragraph};
use crate::variant::Font;
use crate::{Error, Text};

/// Space after an emoji, in thousandths of an em: the drawings touch their edges.
const AFTER_EMOJI: f32 = 70.0;
/// Least distance between the ink of two lines, in em.
const GAP: f32 = 0.15;
/// Least distance between two baselines, in em.
const LEAST_PITCH: f32 = 0.9;
/// Distances that differ by less than this, in em, are made equal.
const UNEVEN: f32 = 0.3;
/// Height that a text counts as having at least, in em: or else a full stop would fill the sticker.
const LEAST_HEIGHT: f32 = 0.72;
/// Width that a text counts as having at least, in em.
const LEAST_WIDTH: f32 = 0.3;

/// A glyph in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) face: u16,
    pub(crate) glyph: u16,
    /// Its origin in pixels, relative to the centre of the text's ink.
    pub(crate) x: f32,
    pub(crate) y: f32,
    /// The text it stands for.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: usize,
}

/// A text, set.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Pixels of an em.
    pub(crate) size: f32,
    pub(crate) glyphs: Vec<Placed>,
    /// Width and height of the ink in pixels.
    pub(crate) width: f32,
    pub(crate) height: f32,
}

/// One line, shaped; distances in em, y downwards.
struct Shaped {
    glyphs: Vec<Glyph>,
    start: usize,
    left: f32,
    right: f32,
    ascent: f32,
    descent: f32,
}

/// Sets a text as large as it fits a box.
pub(crate) fn set(
    fonts: &Fonts,
    memory: &mut Memory,
    text: &Text,
    font: Font,
    room: [f32; 2],
) -> Result<Layout, Error> {
    let mut session = fonts.lettering.session(memory);
    let mut letters = Letters { fonts, session: &mut session, style: style_of(font) };
    let directions: Vec<Directions<'_>> = text.as_str().split('\n').map(Directions::of).collect();
    let paragraphs = letters.paragraphs(text.as_str(), &directions)?;
    let lines = lines::best(&paragraphs, room[0], room[1]);
    let shaped: Vec<Shaped> = lines
        .iter()
        .map(|line| letters.line(&paragraphs[line.paragraph], line, &directions[line.paragraph]))
        .collect();
    place(fonts, &shaped, room)
}

struct Letters<'a, 's> {
    fonts: &'a Fonts,
    session: &'a mut Session<'s>,
    style: usize,
}

impl Letters<'_, '_> {
    fn shape(
        &mut self,
        text: &str,
        range: std::ops::Range<usize>,
        directions: &Directions<'_>,
    ) -> Vec<Glyph> {
        let mut glyphs = Vec::new();
        self.session.shape(self.style, text, range, directions, &mut glyphs);
        for glyph in glyphs.iter_mut().filter(|glyph| is_emoji(glyph.face) && glyph.advance > 0.0) {
            glyph.advance += AFTER_EMOJI;
        }
        glyphs
    }

    /// All given lines, measured; the error names every part without a glyph.
    fn paragraphs<'t>(
        &mut self,
        text: &'t str,
        directions: &[Directions<'_>],
    ) -> Result<Vec<Paragraph<'t>>, Error> {
        let (mut paragraphs, mut unknown, mut start) = (Vec::new(), Vec::new(), 0);
        for (part, directions) in text.split('\n').zip(directions) {
            let glyphs = self.shape(part, 0..part.len(), directions);
            for glyph in glyphs.iter().filter(|glyph| glyph.glyph == 0) {
                let cluster =
                    part.get(glyph.start as usize..glyph.end as usize).unwrap_or_default();
                if !unknown.iter().any(|known| known == cluster) {
                    unknown.push(cluster.to_owned());
                }
            }
            paragraphs.push(Paragraph {
                start,
                text: part,
                measured: Measured::new(part, &glyphs),
            });
            start += part.len() + 1;
        }
        if unknown.is_empty() {
            Ok(paragraphs)
        } else {
            Err(Error::UnknownGlyphs(Unknown(unknown)))
        }
    }

    fn line(
        &mut self,
        paragraph: &Paragraph<'_>,
        line: &Line,
        directions: &Directions<'_>,
    ) -> Shaped {
        let glyphs = self.shape(paragraph.text, line.range.clone(), directions);
        let mut shaped = Shaped {
            glyphs,
            start: paragraph.start,
            left: f32::MAX,
            right: f32::MIN,
            ascent: f32::MIN,
            descent: f32::MIN,
        };
        let mut x = 0.0;
        for glyph in &shaped.glyphs {
            if let Some([left, bottom, right, top]) = self.fonts.ink(glyph.face, glyph.glyph) {
                shaped.left = shaped.left.min((x + glyph.dx + left) / 1000.0);
                shaped.right = shaped.right.max((x + glyph.dx + right) / 1000.0);
                shaped.ascent = shaped.ascent.max((glyph.dy + top) / 1000.0);
                shaped.descent = shaped.descent.max(-(glyph.dy + bottom) / 1000.0);
            }
            x += glyph.advance;
        }
        shaped
    }
}

impl Shaped {
    fn has_ink(&self) -> bool {
        self.right > self.left
    }
}

/// Baselines of the lines in em, the first at 0.
fn baselines(lines: &[Shaped]) -> Vec<f32> {
    let needed = |pair: &[Shaped]| {
        let ink = if pair[0].has_ink() && pair[1].has_ink() {
            pair[0].descent + pair[1].ascent + GAP
        } else {
            LEAST_PITCH
        };
        ink.max(LEAST_PITCH)
    };
    let largest = lines.windows(2).map(needed).fold(0.0, f32::max);
    let mut found = vec![0.0];
    for pair in lines.windows(2) {
        let pitch = needed(pair);
        let even = if largest - pitch <= UNEVEN { largest } else { pitch };
        found.push(found.last().copied().unwrap_or_default() + even);
    }
    found
}

fn place(fonts: &Fonts, lines: &[Shaped], room: [f32; 2]) -> Result<Layout, Error> {
    let baselines = baselines(lines);
    let inked = || lines.iter().zip(&baselines).filter(|(line, _)| line.has_ink());
    let width = inked().map(|(line, _)| line.right - line.left).fold(0.0, f32::max);
    let top = inked().map(|(line, y)| y - line.ascent).fold(f32::MAX, f32::min);
    let bottom = inked().map(|(line, y)| y + line.descent).fold(f32::MIN, f32::max);
    let height = bottom - top;
    if width <= 0.0 || height <= 0.0 {
        return Err(Error::Empty);
    }
    let size = (room[0] / width.max(LEAST_WIDTH)).min(room[1] / height.max(LEAST_HEIGHT));
    let mut glyphs = Vec::new();
    for (number, (line, y)) in lines.iter().zip(&baselines).enumerate() {
        let mut x = -(line.left + line.right) / 2.0;
        let y = y - (top + bottom) / 2.0;
        for glyph in &line.glyphs {
            if line.has_ink() && fonts.ink(glyph.face, glyph.glyph).is_some() {
                glyphs.push(Placed {
                    face: glyph.face,
                    glyph: glyph.glyph,
                    x: (x + glyph.dx / 1000.0) * size,
                    y: (y - glyph.dy / 1000.0) * size,
                    start: line.start + glyph.start as usize,
                    end: line.start + glyph.end as usize,
                    line: number,
                });
            }
            x += glyph.advance / 1000.0;
        }
    }
    Ok(Layout { size, glyphs, width: width * size, height: height * size })
}
