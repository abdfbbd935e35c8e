//! Warnings before anything is printed.

use stampede_render::compiled::{FieldKind, ImageChoice};
use stampede_render::{Values, Warning, preflight};

use crate::sample::{TOKEN, field, prepared, text, ticket};

fn warnings(fields: &[(&str, &str)]) -> Vec<Warning> {
    preflight(&ticket(), &Values { id: "1", fields })
}

#[test]
fn a_good_ticket_has_no_warnings() {
    assert_eq!(warnings(&[("name", "Ann"), ("seat", "A-12"), ("code", TOKEN)]), []);
    assert_eq!(warnings(&[]), []);
}

#[test]
fn missing_characters_are_named_once_each() {
    let expected = Warning::MissingGlyphs { field: "name".into(), characters: "ꦲꦤ".into() };
    assert_eq!(warnings(&[("name", "Ann ꦲꦤꦲ Bob")]), std::slice::from_ref(&expected));
    let said = expected.to_string();
    assert!(
        said.contains("\"name\"") && said.contains("U+A9B2") && said.contains("font"),
        "{said}"
    );
}

#[test]
fn texts_that_do_not_fit_are_named() {
    let seat = "A very long description of a seat that no ticket has room for";
    assert_eq!(warnings(&[("seat", seat)]), [Warning::DoesNotFit { field: "seat".into() }]);
    let endless = "x".repeat(5000);
    assert!(warnings(&[("seat", &endless)]).contains(&Warning::TooLong { field: "seat".into() }));
}

#[test]
fn small_and_impossible_codes_are_named() {
    let template = prepared(vec![field(
        "code",
        20.0,
        90.0,
        FieldKind::Qr { side: 40.0, fill: [0.0; 3], background: None },
    )]);
    let values = Values { id: "1", fields: &[("code", TOKEN)] };
    let found = preflight(&template, &values);
    let [Warning::CodeTooSmall { field, module_mm }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(field, "code");
    assert!((0.28..0.3).contains(module_mm), "{module_mm}");
    assert!(found[0].to_string().contains("0.29 mm"), "{}", found[0]);
    let long = "x".repeat(3000);
    let found = preflight(&template, &Values { id: "1", fields: &[("code", &long)] });
    assert_eq!(found, [Warning::CodeTooLong { field: "code".into() }]);
}

#[test]
fn values_without_image_are_named() {
    let choice = ImageChoice { value: "VIP".into(), object: 1, width: 1, height: 1 };
    let kind = |choices| FieldKind::Image { width: 9.0, height: 9.0, choices };
    let template = prepared(vec![
        field("seat", 0.0, 0.0, kind(vec![choice.clone()])),
        field("any", 0.0, 0.0, kind(vec![ImageChoice { value: String::new(), ..choice }])),
        field("name", 0.0, 0.0, FieldKind::Text(text(90.0, 9.0))),
    ]);
    let fields = [("seat", "stalls"), ("any", "thing")];
    assert_eq!(
        preflight(&template, &Values { id: "1", fields: &fields }),
        [Warning::UnknownImage { field: "seat".into(), value: "stalls".into() }]
    );
}
