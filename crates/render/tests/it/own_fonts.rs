//! Fonts of the organiser: OpenType with CFF outlines, collections. The files in `assets` are subsets
//! of Inter, made with `pyftsubset`.

use std::sync::Arc;

use stampede_render::compiled::{FieldKind, FontSource, TextField};
use stampede_render::{Deflate, Prepared, Stamper, Values};
use stampede_testkit::pdf_text;

use crate::look::{assert_sound, pixels, unpacked};
use crate::sample::{field, template, text};

fn stamped(bytes: &[u8], face: u32, name: &str) -> Vec<u8> {
    let own = TextField { fonts: vec![0], ..text(360.0, 30.0) };
    let mut template = template(vec![field("name", 20.0, 100.0, FieldKind::Text(own))]);
    template.fonts = vec![FontSource::Own { bytes: bytes.to_vec(), face }];
    let template = Arc::new(Prepared::new(template).unwrap());
    let mut pdf = Vec::new();
    let mut stamper = Stamper::new(template).with_deflate(Deflate::On);
    stamper.stamp(&Values { id: "1", fields: &[("name", name)] }, &mut pdf).unwrap();
    assert_sound(&pdf, name);
    pdf
}

/// How dark the line of text is.
fn darkness(pdf: &[u8]) -> u64 {
    let (width, _, values) = pixels(pdf, 72);
    values[width * 60..width * 120].iter().map(|value| u64::from(255 - value)).sum()
}

#[test]
fn a_font_with_cff_outlines_is_embedded_and_drawn() {
    let bytes = include_bytes!("assets/letters.otf");
    // The same glyph for different texts cannot have two numbers here, so spans are used.
    let pdf = stamped(bytes, 0, "Wörtlich A\u{a0}B C");
    assert!(pdf_text(&pdf).contains("Wörtlich"));
    let plain = unpacked(&pdf);
    assert!(plain.contains("/CIDFontType0C") && plain.contains("/FontFile3"));
    assert!(pdf.len() < 6000, "{} bytes", pdf.len());
    let empty = stamped(bytes, 0, "");
    assert!(darkness(&pdf) > darkness(&empty) + 50_000);
}

#[test]
fn a_face_of_a_collection_is_used() {
    let bytes = include_bytes!("assets/letters.ttc");
    let [regular, bold] = [0, 1].map(|face| stamped(bytes, face, "Collection"));
    assert!(pdf_text(&regular).contains("Collection") && pdf_text(&bold).contains("Collection"));
    assert!(darkness(&bold) > darkness(&regular) * 101 / 100);
    assert!(unpacked(&bold).contains("+Inter-ExtraBold"));
}

#[test]
fn a_face_that_the_file_does_not_have_is_refused() {
    let mut template = template(Vec::new());
    let bytes = include_bytes!("assets/letters.ttc").to_vec();
    template.fonts = vec![FontSource::Own { bytes, face: 2 }];
    assert!(Prepared::new(template).is_err());
}
