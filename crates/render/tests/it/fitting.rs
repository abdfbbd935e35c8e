//! Texts in their boxes.

use stampede_render::compiled::{Align, FieldKind, Fill, TextField};
use stampede_render::{Values, Warning, preflight, stamp};
use stampede_testkit::pdf_text;

use crate::look::{assert_sound, pixels, unpacked};
use crate::sample::{field, prepared, text};

fn stamped(field_text: TextField, value: &str) -> Vec<u8> {
    let template = prepared(vec![field("name", 50.0, 100.0, FieldKind::Text(field_text))]);
    let pdf = stamp(&template, &Values { id: "1", fields: &[("name", value)] }).unwrap();
    assert_sound(&pdf, value);
    pdf
}

/// Columns and rows in which something of the field is drawn, in points.
fn ink(pdf: &[u8]) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let (width, height, values) = pixels(pdf, 72);
    let (mut columns, mut rows) = (width..0, height..0);
    // The headline is above, the page's edge is lighter than text.
    for y in 45..height - 12 {
        for x in 12..width - 12 {
            if values[y * width + x] < 130 {
                columns = columns.start.min(x)..columns.end.max(x + 1);
                rows = rows.start.min(y)..rows.end.max(y + 1);
            }
        }
    }
    (columns, rows)
}

#[test]
fn alignment_is_by_the_box_and_start_by_the_first_letter() {
    let at = |align, value: &str| ink(&stamped(TextField { align, ..text(300.0, 20.0) }, value)).0;
    assert!((50..53).contains(&at(Align::Left, "Ann").start));
    assert!((348..352).contains(&at(Align::Right, "Ann").end));
    let centred = at(Align::Center, "Ann");
    assert!(((centred.start + centred.end) / 2).abs_diff(200) <= 1, "{centred:?}");
    assert!((50..53).contains(&at(Align::Start, "Ann").start));
    assert!((347..352).contains(&at(Align::Start, "محمد").end));
    assert!((347..352).contains(&at(Align::Start, "12 דוד").end));
}

#[test]
fn a_text_that_is_too_wide_shrinks_to_exactly_its_box() {
    let long = "Maximilian von Hohenzollern-Sigmaringen";
    let shrunk = stamped(TextField { min_size: 8.0, ..text(300.0, 20.0) }, long);
    assert!(pdf_text(&shrunk).contains(long));
    let columns = ink(&shrunk).0;
    assert!((50..53).contains(&columns.start) && (346..=351).contains(&columns.end), "{columns:?}");
}

#[test]
fn a_text_that_cannot_shrink_enough_is_cut_with_an_ellipsis() {
    let long = "Maximilian Alexander von Hohenzollern-Sigmaringen zu Brandenburg";
    let pdf = stamped(TextField { min_size: 18.0, ..text(150.0, 20.0) }, long);
    let shown = pdf_text(&pdf);
    let cut = shown.lines().find(|line| line.contains('…')).expect("an ellipsis").trim();
    let kept = cut.trim_end_matches('…');
    assert!(long.starts_with(kept) && kept.len() > 8 && !kept.ends_with(' '), "{cut}");
    let columns = ink(&pdf).0;
    assert!(columns.end <= 201, "{columns:?}");
}

#[test]
fn leftward_texts_are_cut_at_their_end_too() {
    let pdf = stamped(text(120.0, 20.0), "محمد عبد الله بن عبد المطلب بن هاشم");
    assert!(pdf_text(&pdf).contains('…'));
    let columns = ink(&pdf).0;
    assert!(columns.start >= 49 && columns.end <= 171, "{columns:?}");
}

#[test]
fn lines_are_filled_before_the_size_shrinks() {
    let two = TextField { lines: 2, min_size: 10.0, ..text(160.0, 20.0) };
    let wrapped = stamped(two.clone(), "Maximilian Hohenzollern");
    assert!(unpacked(&wrapped).contains("/S0 20 Tf"), "not at its nominal size");
    assert_eq!(pdf_text(&wrapped).lines().filter(|line| !line.trim().is_empty()).count(), 3);
    let shrunk = stamped(two, "Maximilian Hohenzollern-Sigmaringen zu Brandenburg");
    assert!(!unpacked(&shrunk).contains("/S0 20 Tf"));
    assert!(!pdf_text(&shrunk).contains('…'));
    assert!(ink(&shrunk).0.end <= 211);
}

#[test]
fn a_word_that_is_too_long_for_a_line_is_broken_only_at_the_least_size() {
    let field_text = TextField { lines: 3, min_size: 16.0, ..text(100.0, 20.0) };
    let pdf = stamped(field_text.clone(), &"Donaudampfschiff".repeat(5));
    assert!(pdf_text(&pdf).contains('…'));
    let columns = ink(&pdf).0;
    assert!(columns.end <= 151, "{columns:?}");
    let template = prepared(vec![field("name", 50.0, 100.0, FieldKind::Text(field_text))]);
    let value = "Donaudampfschiff".repeat(5);
    let warnings = preflight(&template, &Values { id: "1", fields: &[("name", &value)] });
    assert_eq!(warnings, [Warning::DoesNotFit { field: "name".into() }]);
}

#[test]
fn upper_case_tracking_opacity_and_rotation_are_drawn() {
    let spaced = TextField {
        upper: true,
        tracking: 0.5,
        fill: Fill::Solid([0.0; 3], 0.5),
        ..text(300.0, 20.0)
    };
    let pdf = stamped(spaced, "straße");
    // Wide tracking looks like spaces to a reader.
    let letters: String = pdf_text(&pdf).split_whitespace().collect();
    assert!(letters.contains("STRASSE"), "{letters}");
    let narrow = ink(&stamped(TextField { upper: true, ..text(300.0, 20.0) }, "straße")).0;
    let (width, _, values) = pixels(&pdf, 72);
    assert!(narrow.len() < 100);
    let darkest =
        values.iter().enumerate().filter(|(at, _)| at / width > 50).map(|(_, v)| *v).min();
    assert!(darkest.is_some_and(|value| value > 90), "half transparent black: {darkest:?}");

    let mut turned = field("name", 100.0, 250.0, FieldKind::Text(text(150.0, 20.0)));
    turned.transform = [0.0, -1.0, 1.0, 0.0, 100.0, 250.0];
    let template = prepared(vec![turned]);
    let pdf = stamp(&template, &Values { id: "1", fields: &[("name", "Upwards")] }).unwrap();
    let (columns, rows) = ink(&pdf);
    assert!(columns.len() < 25 && rows.len() > 60 && rows.end <= 251, "{columns:?} {rows:?}");
}
