//! Runs: stretches of a text that are shaped at once, because direction, script and font are the same.
//!
//! A font is chosen for whole grapheme clusters, the first of the list that has all of the cluster's
//! characters: a letter and its accent, or the parts of a family emoji, never come from two fonts.
//! Typst chooses in the same way, so both paths agree.

use std::ops::Range;

use unicode_bidi::BidiInfo;
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use crate::face::Face;

/// Stretch of a text with the same font and script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) range: Range<usize>,
    /// Index of its face.
    pub(crate) face: u16,
    /// `None` if it has only characters that all scripts share.
    pub(crate) script: Option<Script>,
}

/// The directions of a text.
pub(crate) enum Directions<'a> {
    /// All of it runs rightwards.
    Rightwards,
    /// There are both, or only the other.
    Mixed(BidiInfo<'a>),
}

impl<'a> Directions<'a> {
    /// Finds them; the base direction is that of the first letter, rightwards without letters.
    pub(crate) fn of(text: &'a str) -> Self {
        if text.chars().any(may_run_leftwards) {
            Self::Mixed(BidiInfo::new(text, None))
        } else {
            Self::Rightwards
        }
    }

    /// Whether the text as a whole begins at the right.
    pub(crate) fn is_leftwards(&self) -> bool {
        match self {
            Self::Rightwards => false,
            Self::Mixed(bidi) => bidi.paragraphs.first().is_some_and(|first| first.level.is_rtl()),
        }
    }

    /// Calls `each(range, leftwards)` for the stretches of a line, from left to right.
    pub(crate) fn visit(&self, line: Range<usize>, mut each: impl FnMut(Range<usize>, bool)) {
        match self {
            Self::Rightwards => each(line, false),
            Self::Mixed(bidi) => {
                let Some(paragraph) = bidi.paragraphs.first() else { return };
                if line.is_empty() {
                    return;
                }
                let (levels, stretches) = bidi.visual_runs(paragraph, line);
                for stretch in stretches {
                    let leftwards = levels[stretch.start].is_rtl();
                    each(stretch, leftwards);
                }
            }
        }
    }
}

/// Characters of a class that makes the bidirectional algorithm necessary: leftward letters and
/// digits, and the controls.
fn may_run_leftwards(c: char) -> bool {
    matches!(
        c as u32,
        0x0590..=0x08FF
            | 0x200F
            | 0x202A..=0x202E
            | 0x2066..=0x2069
            | 0xFB1D..=0xFDFF
            | 0xFE70..=0xFEFF
            | 0x10800..=0x10FFF
            | 0x1E800..=0x1EFFF
    )
}

/// Appends the runs of `text[range]` in the order of the text.
pub(crate) fn split(
    text: &str,
    range: Range<usize>,
    faces: &[Face],
    fonts: &[u16],
    runs: &mut Vec<Run>,
) {
    let mut start = range.start;
    let mut script = None;
    for (at, c) in text[range.clone()].char_indices() {
        let at = range.start + at;
        let Some(own) = own_script(c) else { continue };
        if script.is_some_and(|script| script != own) {
            split_by_font(text, start..at, script, faces, fonts, runs);
            start = at;
        }
        script = Some(own);
    }
    split_by_font(text, start..range.end, script, faces, fonts, runs);
}

/// The script of a character, if it has one of its own.
fn own_script(c: char) -> Option<Script> {
    match c {
        'a'..='z' | 'A'..='Z' => Some(Script::Latin),
        '\0'..='\u{7F}' => None,
        _ => match c.script() {
            Script::Common | Script::Inherited | Script::Unknown => None,
            script => Some(script),
        },
    }
}

fn split_by_font(
    text: &str,
    range: Range<usize>,
    script: Option<Script>,
    faces: &[Face],
    fonts: &[u16],
    runs: &mut Vec<Run>,
) {
    let first = fonts.first().copied().unwrap_or(0);
    let covers = |font: u16, part: &str| {
        faces
            .get(usize::from(font))
            .is_some_and(|face| part.chars().all(|c| face.has(c) || is_ignorable(c)))
    };
    let part = &text[range.clone()];
    if part.is_empty() {
        return;
    }
    if covers(first, part) {
        runs.push(Run { range, face: first, script });
        return;
    }
    let from = runs.len();
    for (at, cluster) in part.grapheme_indices(true) {
        let face = fonts.iter().copied().find(|&font| covers(font, cluster)).unwrap_or(first);
        let end = range.start + at + cluster.len();
        match runs[from..].last_mut() {
            Some(run) if run.face == face => run.range.end = end,
            _ => runs.push(Run { range: range.start + at..end, face, script }),
        }
    }
}

/// Characters that are not drawn, which a font need not have.
pub(crate) fn is_ignorable(c: char) -> bool {
    matches!(
        c as u32,
        0xAD | 0x34F
            | 0x61C
            | 0x180B..=0x180F
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x206F
            | 0xFE00..=0xFE0F
            | 0xE0000..=0xE0FFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::FontSource;
    use crate::fonts;

    fn faces(names: &[&str]) -> Vec<Face> {
        names
            .iter()
            .map(|name| {
                let font = fonts::shipped().iter().find(|font| font.name == *name).unwrap();
                Face::new(&FontSource::Shipped(font.sha256)).unwrap()
            })
            .collect()
    }

    #[test]
    fn fonts_change_only_between_clusters() {
        let faces =
            faces(&["Inter-Regular.ttf", "NotoSansThai-Regular.ttf", "NotoEmoji-Regular.ttf"]);
        let text = "Ann 👩\u{200D}👩\u{200D}👧 กำ";
        let mut runs = Vec::new();
        split(text, 0..text.len(), &faces, &[0, 1, 2], &mut runs);
        let found: Vec<(&str, u16)> =
            runs.iter().map(|run| (&text[run.range.clone()], run.face)).collect();
        assert_eq!(found, [("Ann ", 0), ("👩\u{200D}👩\u{200D}👧", 2), (" ", 0), ("กำ", 1)]);
    }

    #[test]
    fn the_first_letter_decides_the_base_direction() {
        for (text, leftwards) in
            [("Ann", false), ("123 محمد", true), ("Ann محمد", false), ("", false), ("(!)", false)]
        {
            assert_eq!(Directions::of(text).is_leftwards(), leftwards, "{text}");
        }
    }

    #[test]
    fn every_text_with_leftward_characters_is_looked_at() {
        use unicode_bidi::BidiClass::{AL, AN, FSI, LRE, LRI, LRO, PDF, PDI, R, RLE, RLI, RLO};
        for c in '\0'..=char::MAX {
            let class = unicode_bidi::bidi_class(c);
            if matches!(class, AL | AN | FSI | LRE | LRI | LRO | PDF | PDI | R | RLE | RLI | RLO) {
                assert!(may_run_leftwards(c), "{c:?} is {class:?}");
            }
        }
    }
}
