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
pub enum Directions<'a> {
    /// All of it runs rightwards.
    Rightwards,
    /// There are both, or only the other.
    Mixed(BidiInfo<'a>),
}

impl<'a> Directions<'a> {
    /// Finds them; the base direction is that of the first letter, rightwards without letters.
    pub fn of(text: &'a str) -> Self {
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

/// Which faces are tried for a text.
pub(crate) struct Choice {
    /// Faces to try, in this order.
    pub(crate) fonts: Vec<u16>,
    /// The face that is tried before the others for clusters shown as pictures.
    pub(crate) pictures: Option<u16>,
}

impl Choice {
    /// The face for one cluster; the first of the list if none has all of its characters.
    fn face_for(&self, cluster: &str, covers: impl Fn(u16) -> bool) -> u16 {
        let pictures = self.pictures.filter(|_| is_picture(cluster));
        let mut faces = pictures.into_iter().chain(self.fonts.iter().copied());
        faces.find(|&face| covers(face)).unwrap_or_else(|| self.first())
    }

    fn first(&self) -> u16 {
        self.fonts.first().copied().unwrap_or(0)
    }

    /// Whether a part of the text may have clusters shown as pictures.
    fn has_pictures(&self, part: &str) -> bool {
        self.pictures.is_some() && part.chars().any(|c| is_emoji(c) || is_picture_mark(c))
    }
}

/// Asks for a picture: the selector of emoji, and the frame of a keycap.
fn is_picture_mark(c: char) -> bool {
    matches!(c, '\u{FE0F}' | '\u{20E3}')
}

/// Characters that people expect in colour, even those that Unicode would show as text unless told otherwise.
fn is_emoji(c: char) -> bool {
    matches!(c as u32, 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0x1F000..=0x1FAFF)
}

/// Whether a cluster is shown as a picture: the selector of text (U+FE0E) says that it is not.
fn is_picture(cluster: &str) -> bool {
    !cluster.contains('\u{FE0E}')
        && (cluster.starts_with(is_emoji) || cluster.chars().any(is_picture_mark))
}

/// Appends the runs of `text[range]` in the order of the text.
pub(crate) fn split(
    text: &str,
    range: Range<usize>,
    faces: &[Face],
    fonts: &Choice,
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
    fonts: &Choice,
    runs: &mut Vec<Run>,
) {
    let first = fonts.first();
    let covers = |font: u16, part: &str| {
        faces
            .get(usize::from(font))
            .is_some_and(|face| part.chars().all(|c| face.has(c) || is_ignorable(c)))
    };
    let part = &text[range.clone()];
    if part.is_empty() {
        return;
    }
    if covers(first, part) && !fonts.has_pictures(part) {
        runs.push(Run { range, face: first, script });
        return;
    }
    let from = runs.len();
    for (at, cluster) in part.grapheme_indices(true) {
        let face = fonts.face_for(cluster, |font| covers(font, cluster));
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
        let fonts = Choice { fonts: vec![0, 1, 2], pictures: None };
        split(text, 0..text.len(), &faces, &fonts, &mut runs);
        let found: Vec<(&str, u16)> =
            runs.iter().map(|run| (&text[run.range.clone()], run.face)).collect();
        assert_eq!(found, [("Ann ", 0), ("👩\u{200D}👩\u{200D}👧", 2), (" ", 0), ("กำ", 1)]);
    }

    #[test]
    fn a_face_of_pictures_goes_first_for_emoji_only() {
        let faces = faces(&["NotoEmoji-Regular.ttf", "Inter-Regular.ttf", "NotoEmoji-Regular.ttf"]);
        let faces_of = |text: &str| {
            let mut runs = Vec::new();
            let fonts = Choice { fonts: vec![1, 2], pictures: Some(0) };
            split(text, 0..text.len(), &faces, &fonts, &mut runs);
            runs.iter()
                .map(|run| (text[run.range.clone()].to_owned(), run.face))
                .collect::<Vec<_>>()
        };
        let run = |text: &str, face| (text.to_owned(), face);
        assert_eq!(faces_of("1 © ↔"), [run("1 © ↔", 1)]);
        assert_eq!(faces_of("1\u{FE0F}\u{20E3}!"), [run("1\u{FE0F}\u{20E3}", 0), run("!", 1)]);
        assert_eq!(faces_of("a☀"), [run("a", 1), run("☀", 0)]);
        assert_eq!(faces_of("a☎\u{FE0F}"), [run("a", 1), run("☎\u{FE0F}", 0)]);
        let as_text = faces_of("☀\u{FE0E}");
        assert_ne!(as_text[0].1, 0, "{as_text:?}");
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
