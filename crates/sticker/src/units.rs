//! Units: the parts of a text that move by themselves.
//!
//! Usually a unit is one cluster: a letter with its marks, or an emoji. Letters of scripts that are written joined stay
//! together as a word, for they would tear apart.

use std::ops::Range;

use crate::layout::Placed;

/// Ranges of glyphs, each one unit; in the order of the glyphs, which is from left to right in each line.
pub(crate) fn of(text: &str, glyphs: &[Placed]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (index, glyph) in glyphs.iter().enumerate() {
        match units.last_mut() {
            Some(unit) if belong_together(text, &glyphs[unit.end - 1], glyph) => {
                unit.end = index + 1
            }
            _ => units.push(index..index + 1),
        }
    }
    units
}

fn belong_together(text: &str, left: &Placed, right: &Placed) -> bool {
    if left.line != right.line {
        return false;
    }
    if left.start == right.start {
        return true;
    }
    // Spaces have no ink, so they are no glyphs here, but they are in the text between.
    let range = left.start.min(right.start)..left.end.max(right.end);
    let both = text.get(range).unwrap_or_default();
    !both.is_empty() && both.chars().all(is_joined)
}

/// Letters of scripts whose words are drawn in one stroke or under one line.
fn is_joined(c: char) -> bool {
    matches!(c as u32, 0x0600..=0x0660 | 0x066A..=0x06EF | 0x06FA..=0x08FF | 0x0900..=0x0DFF
        | 0x1800..=0x18AF | 0x200C..=0x200D | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC)
}
