//! Fonts that are small files and unpack to gigabytes. They are written here, table by table.

use std::time::{Duration, Instant};

use stampede_render::compiled::{FieldKind, FontSource, TextField};
use stampede_render::{FontError, Prepared, Stamper, Values, check_font, fonts, stamp};
use stampede_testkit::fonts::{
    Part, cff_font, composite, outline_of, overlapping, square, truetype,
};

use crate::sample::{field, template, text};

fn refusal(bytes: &[u8]) -> String {
    match check_font(bytes, 0) {
        Err(error @ FontError::TooLarge { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A template with one field in this font.
fn prepared(bytes: Vec<u8>) -> Result<Prepared, stampede_render::Error> {
    let own = TextField { fonts: vec![0], ..text(360.0, 30.0) };
    let mut template = template(vec![field("name", 20.0, 100.0, FieldKind::Text(own))]);
    template.fonts = vec![FontSource::Own { bytes, face: 0 }];
    Prepared::new(template)
}

#[test]
fn a_plain_font_and_all_that_ship_are_within_the_limits() {
    let plain = truetype(&[square(), square(), composite(&[1, 1])]);
    check_font(&plain, 0).unwrap();
    prepared(plain).unwrap();
    for font in fonts::shipped() {
        let started = Instant::now();
        check_font(font.bytes, 0).unwrap_or_else(|error| panic!("{}: {error}", font.name));
        assert!(started.elapsed() < Duration::from_secs(2), "{}", font.name);
    }
    check_font(include_bytes!("assets/letters.otf"), 0).unwrap();
    for face in 0..2 {
        check_font(include_bytes!("assets/letters.ttc"), face).unwrap();
    }
}

#[test]
fn outlines_that_overlap_in_the_file_are_refused() {
    // Of a file of half a megabyte, a ticket would have 1.6 GB.
    let font = overlapping(400 << 10, 4_000);
    assert!(font.len() < 600 << 10, "{}", font.len());
    let message = refusal(&font);
    assert!(message.contains("overlaps others"), "{message}");
    let error = prepared(font).err().unwrap();
    assert!(error.to_string().contains("overlaps others"), "{error}");
}

#[test]
fn components_of_components_count_with_all_their_points() {
    // Each level has ten of the level below: ten components become 11,110 in four levels.
    let mut parts = vec![square(), square()];
    parts.extend((1..=5).map(|below| composite(&[below; 10])));
    let message = refusal(&truetype(&parts));
    assert!(message.starts_with("glyph 5 of the font has more than 4096 components"), "{message}");
    let many = Part::Outline(outline_of(40_000));
    let message = refusal(&truetype(&[square(), many, composite(&[1; 10])]));
    assert!(message.contains("points with its components, more than 65535"), "{message}");
}

#[test]
fn chains_and_circles_of_components_are_refused() {
    let mut chain = vec![square()];
    chain.extend((0..40_000).map(|below| composite(&[below])));
    let message = refusal(&truetype(&chain));
    assert!(message.contains("deeper than 16 levels"), "{message}");
    // From the other end, the walk goes down first.
    let mut chain: Vec<Part> = (1..40_000).map(|below| composite(&[below])).collect();
    chain.push(square());
    let message = refusal(&truetype(&chain));
    assert!(message.contains("deeper than 16 levels"), "{message}");
    let message = refusal(&truetype(&[square(), composite(&[2]), composite(&[1])]));
    assert_eq!(message, "glyph 1 of the font is a component of itself");
}

#[test]
fn a_single_outline_has_a_limit() {
    let message = refusal(&truetype(&[square(), Part::Outline(outline_of(600 << 10))]));
    assert_eq!(message, "glyph 1 of the font has 614400 bytes, more than 524288");
}

#[test]
fn subroutines_that_call_subroutines_are_refused() {
    // Ten calls at each of nine levels: a billion times the last one.
    let message = refusal(&cff_font(9, 10));
    assert!(
        message.starts_with("glyph 1 of the font has more than 524288 bytes with its subroutines"),
        "{message}"
    );
    let message = refusal(&cff_font(12, 1));
    assert_eq!(message, "glyph 1 of the font calls subroutines deeper than 10 levels");
    check_font(&cff_font(3, 10), 0).unwrap();
    prepared(cff_font(3, 10)).unwrap();
}

#[test]
fn one_ticket_embeds_a_bounded_part_of_a_heavy_font() {
    // Within every limit for a glyph, and 60 glyphs of 400 KB are 24 MB.
    let parts: Vec<Part> = (0..60).map(|_| Part::Outline(outline_of(400 << 10))).collect();
    let template = std::sync::Arc::new(prepared(truetype(&parts)).unwrap());
    let name: String = ('A'..='z').collect();
    let values = Values { id: "1", fields: &[("name", &name)] };
    let pdf = stamp(&template, &values).unwrap();
    assert!(pdf.len() > 4 << 20 && pdf.len() < 9 << 20, "{} bytes", pdf.len());
    let mut stamper = Stamper::new(template);
    let memory = stamper.draw(&values).unwrap();
    assert!(pdf.len() < memory, "{memory}");
    let short = Values { id: "1", fields: &[("name", "A")] };
    assert!(stamper.draw(&short).unwrap() < memory / 4, "a ticket claims what it needs");
}
