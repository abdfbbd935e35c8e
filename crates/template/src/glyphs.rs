//! Which characters of a text no embedded font can print.
//!
//! Typst chooses one font for a whole grapheme cluster (a letter with its accents, say), so coverage
//! is asked per cluster: a base letter from one font and an accent from another do not go together.

use std::collections::HashSet;
use std::sync::LazyLock;

use stampede_render::fonts::shipped;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The characters of each embedded font.
static COVERAGE: LazyLock<Vec<HashSet<char>>> =
    LazyLock::new(|| shipped().iter().map(|font| characters(font.bytes)).collect());

/// The characters of the text that cannot be printed, each once, in order of appearance.
pub fn missing_glyphs(text: &str) -> Vec<char> {
    let mut missing = Vec::new();
    for cluster in text.graphemes(true) {
        for c in missing_in_cluster(cluster) {
            if !missing.contains(&c) {
                missing.push(c);
            }
        }
    }
    missing
}

/// What the font that covers most of the cluster lacks; shapers accept either normal form.
fn missing_in_cluster(cluster: &str) -> Vec<char> {
    let composed: Vec<char> = cluster.nfc().filter(|c| needs_glyph(*c)).collect();
    let decomposed: Vec<char> = cluster.nfd().filter(|c| needs_glyph(*c)).collect();
    COVERAGE
        .iter()
        .flat_map(|font| [lacking(font, &composed), lacking(font, &decomposed)])
        .min_by_key(Vec::len)
        .unwrap_or(composed)
}

fn lacking(font: &HashSet<char>, characters: &[char]) -> Vec<char> {
    characters.iter().copied().filter(|c| !font.contains(c)).collect()
}

/// Whether a character leaves a mark of its own: not white space, joiners, direction marks,
/// soft hyphens or variation selectors, which shapers leave out when the font has none.
fn needs_glyph(c: char) -> bool {
    !(c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{e0100}'..='\u{e01ef}'))
}

/// The characters a font file maps to a glyph.
fn characters(file: &[u8]) -> HashSet<char> {
    let Ok(face) = ttf_parser::Face::parse(file, 0) else { return HashSet::new() };
    let Some(cmap) = face.tables().cmap else { return HashSet::new() };
    let mut characters = HashSet::new();
    for table in cmap.subtables.into_iter().filter(|table| table.is_unicode()) {
        table.codepoints(|code| {
            let mapped = table.glyph_index(code).is_some_and(|glyph| glyph.0 != 0);
            characters.extend(char::from_u32(code).filter(|_| mapped));
        });
    }
    characters
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [char; 0] = [];

    #[test]
    fn the_scripts_of_the_embedded_fonts_are_covered() {
        for text in [
            "Zoë O’Brien-Łukasz, Ngô Thị Ánh",
            "Ночь музыки: Ёлка, Їжак, Ўзбек",
            "Ελληνική βραδιά, Άννα",
            "محمد عبد الله ١٢٣ پژمان",
            "שָׁלוֹם יוסי",
            "Անահիտ",
            "ნინო",
            "अमिताभ बच्चन",
            "สมชาย ใจดี",
            "王小明 김민준 たなか",
            "🎉 👩\u{200d}🎤",
            "€ 48.00 ₽ ₺ ₴ £ ¥ № – — « » “ ” …",
        ] {
            assert_eq!(missing_glyphs(text), NONE, "{text}");
        }
    }

    #[test]
    fn letters_without_a_font_are_listed_once_in_order() {
        assert_eq!(missing_glyphs("𓀀 Li 東京 🎉 བ𓀀"), ['𓀀', 'བ']);
    }

    #[test]
    fn invisible_characters_need_no_glyph() {
        assert_eq!(missing_glyphs("a\u{200d}b\u{200c}c\u{fe0f} \u{a0}\u{200f}d\u{ad}e"), NONE);
    }

    #[test]
    fn combining_accents_count_with_their_letter() {
        assert_eq!(missing_glyphs("e\u{301} и\u{306} n\u{303}"), NONE);
        // Inter has the letter, only Noto Sans Hebrew the point: no font can print both.
        assert_eq!(missing_glyphs("a\u{5b8}"), ['\u{5b8}']);
    }
}
