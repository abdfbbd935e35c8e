//! What is refused when it is drawn: the rules of texts alone are tested beside them, in `src/text.rs`.

use stampede_sticker::{
    Error, Format, MAX_GRAPHEMES, MAX_TGS_BYTES, Studio, Text, by_name, shipped,
};

fn refusal(studio: &Studio, typed: &str) -> Error {
    let text = Text::new(typed).unwrap();
    studio.draw(&text, &shipped()[0].variant, Format::Webp).unwrap_err()
}

#[test]
fn unknown_glyphs_are_named_each_once() {
    let studio = Studio::new().unwrap();
    let error = refusal(&studio, "ok \u{12000} ᚠ \u{12000}\u{16A0}\u{301} ok");
    assert_eq!(
        error.to_string(),
        "no font has a glyph for \u{12000} (U+12000), ᚠ (U+16A0), ᚠ\u{301} (U+16A0 U+0301); write it differently or leave it out"
    );
    let many: String = ('\u{12000}'..'\u{12040}').collect();
    assert!(refusal(&studio, &many).to_string().contains(" and 44 more"));
}

#[test]
fn a_text_whose_glyphs_have_no_ink_is_empty() {
    let studio = Studio::new().unwrap();
    for typed in ["\u{1F3FB}\u{FE0E}", "\u{AD}x"] {
        // Both have ink: a swatch, a letter.
        assert!(
            studio.draw(&Text::new(typed).unwrap(), &shipped()[0].variant, Format::Png).is_ok(),
            "{typed:?}"
        );
    }
}

#[test]
fn two_hundred_of_the_largest_emoji_become_a_smaller_file_or_an_error_that_says_why() {
    let studio = Studio::new().unwrap();
    let emoji = ["🏙️", "🗺️", "👩‍👩‍👧‍👦", "🎠", "🧑🏽‍🤝‍🧑🏿", "🇲🇽", "🕌", "🎆", "🏞️", "🎡", "🛤️", "🌃"];
    let text: String = emoji.iter().cycle().take(MAX_GRAPHEMES).copied().collect();
    let text = Text::new(&text).unwrap();
    for shipped in [by_name("comic"), by_name("ink"), by_name("bubble")].map(Result::unwrap) {
        match studio.draw(&text, &shipped.variant, Format::Tgs) {
            Ok(bytes) => assert!(bytes.len() <= MAX_TGS_BYTES),
            Err(Error::TooLarge { bytes, most, .. }) => assert!(bytes > most),
            Err(error) => panic!("{}: {error}", shipped.name),
        }
    }
}

#[test]
fn broken_and_hostile_texts_never_panic() {
    let studio = Studio::new().unwrap();
    let variant = by_name("ribbon").unwrap().variant;
    let mut rng = fastrand::Rng::with_seed(16);
    for _ in 0..150 {
        let length = rng.usize(1..40);
        let text: String = (0..length).map(|_| odd_character(&mut rng)).collect();
        if let Ok(text) = Text::new(&text) {
            let _ = studio.draw(&text, &variant, Format::Tgs);
        }
    }
}

/// Characters that shaping, bidi and layout treat in a special way.
fn odd_character(rng: &mut fastrand::Rng) -> char {
    match rng.u8(0..8) {
        0 => *rng
            .choice(&['\u{200D}', '\u{FE0F}', '\u{20E3}', '\u{202E}', '\u{2067}', '\n', ' '])
            .unwrap(),
        1 => rng.char('\u{300}'..='\u{36F}'),
        2 => rng.char('\u{600}'..='\u{6FF}'),
        3 => rng.char('\u{1F1E6}'..='\u{1F1FF}'),
        4 => rng.char('\u{1F300}'..='\u{1F6FF}'),
        5 => rng.char('\u{900}'..='\u{97F}'),
        6 => rng.char('\u{AC00}'..='\u{D7A3}'),
        _ => rng.char(' '..='~'),
    }
}
