//! Fitting a text into its box. The slow path does the same with Typst, so this is the contract.
//!
//! Widths are those of the shaped text, tracking after the last cluster included. They grow in
//! proportion to the size, so they are measured once, in em. *Fits* means: not wider than the box by
//! more than [`SLACK`].
//!
//! 1. **As it is.** Lines are filled greedily at `size`: each takes as many words as fit, breaking
//!    at the opportunities of UAX 14; spaces at the end of a line do not count. If no more than
//!    `lines` are needed and no word is wider than the box, that is it.
//! 2. **Smaller.** With `lines` = 1 the size is `width / (width of the text in em)`, if that is at
//!    least `min_size`. With more lines it is the first of the [`STEPS`] sizes
//!    `size − k / STEPS × (size − min_size)`, k = 1, 2, …, at which rule 1 holds.
//! 3. **Cut.** At `min_size`, lines are filled greedily; a word that is wider than the box is broken
//!    between grapheme clusters, at least one a line. If the last line cannot hold the rest, it gets as
//!    many grapheme clusters as fit together with an ellipsis (U+2026), without the spaces before it.
//!
//! Lines after the first are `line_height × size in use` apart. Each line is shaped for itself.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::runs::Directions;
use super::shape::{Glyph, Setting, Shaper};
use crate::compiled::TextField;

/// How much wider than its box a text may be, in points: what rounding can make of an exact fit.
pub(crate) const SLACK: f32 = 0.01;
/// Sizes that are tried between `size` and `min_size` when there may be several lines.
pub(crate) const STEPS: u32 = 20;
/// The ellipsis is moved this many clusters at most, when shaping made the cut text wider than its
/// clusters were; further cuts drop half of the rest.
const CUT_STEPS: usize = 8;

/// A text that was fitted.
#[derive(Debug, Default)]
pub(crate) struct Fitted {
    /// Size in use.
    pub(crate) size: f32,
    /// Glyphs of all lines.
    pub(crate) glyphs: Vec<Glyph>,
    pub(crate) lines: Vec<Line>,
    /// What was fitted.
    pub(crate) of: String,
    /// What the glyphs' clusters refer to: the text, or what is left of it.
    pub(crate) text: String,
    /// Whether its base direction is leftwards.
    pub(crate) leftwards: bool,
    /// Whether something had to be left out, or a word broken.
    pub(crate) cut: bool,
}

/// A line of a fitted text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// Its glyphs in [`Fitted::glyphs`], from left to right.
    pub(crate) glyphs: Range<usize>,
    /// Its width in points.
    pub(crate) width: f32,
}

/// Fits `text`, which is clean and not empty, into the box of `field`.
pub(crate) fn fit(
    shaper: &mut Shaper<'_>,
    setting: &Setting,
    field: &TextField,
    text: &str,
    out: &mut Fitted,
) {
    out.glyphs.clear();
    out.lines.clear();
    for copy in [&mut out.of, &mut out.text] {
        copy.clear();
        copy.push_str(text);
    }
    out.cut = false;
    let directions = Directions::of(text);
    out.leftwards = directions.is_leftwards();

    let em = shaper.shape(setting, text, 0..text.len(), &directions, &mut out.glyphs);
    let room = field.width + SLACK;
    out.size = field.size;
    if em * field.size > room && field.lines <= 1 {
        // Exactly as wide as the box; `max` keeps rounding from going below the least size.
        out.size = field.width / em;
    }
    if em * out.size <= room && out.size >= field.min_size {
        out.lines.push(Line { glyphs: 0..out.glyphs.len(), width: em * out.size });
        return;
    }
    let measured = Measured::new(text, &out.glyphs);
    if field.lines > 1 {
        for step in 0..=STEPS {
            let size = size_of(field, step);
            if let Some(lines) = measured.fill(room / size, field.lines) {
                set_lines(shaper, setting, text, &directions, &lines, size, out);
                return;
            }
            if field.size <= field.min_size {
                break;
            }
        }
    }
    cut(shaper, setting, field, text, &measured, out);
}

/// The size of a step; step 0 is the nominal one.
fn size_of(field: &TextField, step: u32) -> f32 {
    if step == STEPS {
        return field.min_size;
    }
    field.size - step as f32 / STEPS as f32 * (field.size - field.min_size)
}

fn set_lines(
    shaper: &mut Shaper<'_>,
    setting: &Setting,
    text: &str,
    directions: &Directions<'_>,
    lines: &[Range<usize>],
    size: f32,
    out: &mut Fitted,
) {
    out.glyphs.clear();
    out.size = size;
    for line in lines {
        let start = out.glyphs.len();
        let em = shaper.shape(setting, text, line.clone(), directions, &mut out.glyphs);
        out.lines.push(Line { glyphs: start..out.glyphs.len(), width: em * size });
    }
}

/// Rule 3.
fn cut(
    shaper: &mut Shaper<'_>,
    setting: &Setting,
    field: &TextField,
    text: &str,
    measured: &Measured<'_>,
    out: &mut Fitted,
) {
    let size = field.min_size;
    let room = (field.width + SLACK) / size;
    let mut lines = Vec::new();
    let mut start = 0;
    while lines.len() + 1 < field.lines as usize {
        let Some(end) = measured.greedy(start, room).or_else(|| measured.broken(start, room))
        else {
            break;
        };
        lines.push(start..start + text[start..end].trim_end().len());
        start = end;
    }
    out.cut = true;
    let ellipsis = '…';
    let rest = &text[start..];
    if rest.is_empty() || measured.width(start..start + rest.trim_end().len()) <= room {
        if !rest.trim_end().is_empty() {
            lines.push(start..start + rest.trim_end().len());
        }
        set_lines(shaper, setting, text, &Directions::of(text), &lines, size, out);
        return;
    }
    // The ellipsis is measured alone; the text that it ends is then shaped as a whole.
    let mut scratch = Vec::new();
    let dots =
        shaper.shape(setting, "…", 0..ellipsis.len_utf8(), &Directions::Rightwards, &mut scratch);
    let ends: Vec<usize> =
        rest.grapheme_indices(true).map(|(at, cluster)| start + at + cluster.len()).collect();
    let mut kept = ends.partition_point(|&end| measured.width(start..end) + dots <= room);
    let mut steps = 0;
    loop {
        let end = if kept == 0 { start } else { ends[kept - 1] };
        let end = start + text[start..end].trim_end().len();
        out.text.clear();
        out.text.push_str(&text[..end]);
        out.text.push(ellipsis);
        let directions = Directions::of(&out.text);
        scratch.clear();
        let em = shaper.shape(setting, &out.text, start..out.text.len(), &directions, &mut scratch);
        if em <= room || kept == 0 {
            let last = start..out.text.len();
            lines.push(last);
            break;
        }
        steps += 1;
        kept = if steps < CUT_STEPS { kept - 1 } else { kept / 2 };
    }
    let shortened = std::mem::take(&mut out.text);
    set_lines(shaper, setting, &shortened, &Directions::of(&shortened), &lines, size, out);
    out.text = shortened;
}

/// Widths of all parts of a text, in em.
pub struct Measured<'a> {
    text: &'a str,
    /// Where each cluster begins, and the width of everything before it.
    clusters: Vec<(usize, f32)>,
    total: f32,
    /// Where lines may be broken: before these bytes. The last is the end of the text.
    breaks: Vec<usize>,
}

impl<'a> Measured<'a> {
    /// Measures a text by the glyphs that it was shaped into as one line.
    pub fn new(text: &'a str, glyphs: &[Glyph]) -> Self {
        let mut clusters: Vec<(usize, f32)> =
            glyphs.iter().map(|glyph| (glyph.start as usize, glyph.advance / 1000.0)).collect();
        clusters.sort_by_key(|&(start, _)| start);
        let mut total = 0.0;
        for (_, width) in &mut clusters {
            total += std::mem::replace(width, total);
        }
        let mut breaks: Vec<usize> =
            unicode_linebreak::linebreaks(text).map(|(at, _)| at).collect();
        if breaks.last() != Some(&text.len()) {
            breaks.push(text.len());
        }
        Self { text, clusters, total, breaks }
    }

    fn before(&self, at: usize) -> f32 {
        let index = self.clusters.partition_point(|&(start, _)| start < at);
        self.clusters.get(index).map_or(self.total, |&(_, before)| before)
    }

    /// Width of a part.
    pub fn width(&self, range: Range<usize>) -> f32 {
        self.before(range.end) - self.before(range.start)
    }

    /// Width without the spaces at the end.
    pub fn trimmed_width(&self, range: Range<usize>) -> f32 {
        let end = range.start + self.text[range.clone()].trim_end().len();
        self.width(range.start..end)
    }

    /// The lines of rule 1, or `None` if there would be more or a word is too wide.
    fn fill(&self, room: f32, most: u32) -> Option<Vec<Range<usize>>> {
        let mut lines = Vec::new();
        let mut start = 0;
        while start < self.text.len() {
            if lines.len() >= most as usize {
                return None;
            }
            let end = self.greedy(start, room)?;
            lines.push(start..start + self.text[start..end].trim_end().len());
            start = end;
        }
        Some(lines)
    }

    /// Where the line that begins at `start` ends, if at least one word fits.
    pub fn greedy(&self, start: usize, room: f32) -> Option<usize> {
        let first = self.breaks.partition_point(|&at| at <= start);
        let mut end = None;
        for &at in &self.breaks[first..] {
            if self.trimmed_width(start..at) > room {
                break;
            }
            end = Some(at);
        }
        end
    }

    /// Where a word that does not fit is broken: after as many clusters as fit, at least one.
    pub fn broken(&self, start: usize, room: f32) -> Option<usize> {
        let mut end = None;
        for (at, cluster) in self.text[start..].grapheme_indices(true) {
            let at = start + at + cluster.len();
            if end.is_some() && self.width(start..at) > room {
                break;
            }
            end = Some(at);
        }
        end
    }
}
