//! What the shipped template prints.

use crate::{pdf, readers, ticket};

#[test]
fn a_ticket_is_one_a4_page_with_everything_on_it() {
    let pdf = pdf(&ticket());
    assert_eq!(readers::info(&pdf, "Pages").as_deref(), Some("1"));
    let size = readers::info(&pdf, "Page size").unwrap();
    assert!(size.ends_with("(A4)"), "{size}");
    let text = readers::text(&pdf);
    for printed in [
        "ENTRY TICKET",
        "Midsummer Night",
        "Amelia Hartmann",
        "Saturday, 20 June 2026, 19:30",
        "Tempelhofer Feld, Berlin",
        "Row C, Seat 14",
        "48.00 EUR",
        "0007",
        "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01",
    ] {
        assert!(text.contains(printed), "{printed} is missing in:\n{text}");
    }
}

#[test]
fn rows_without_a_value_are_absent() {
    let mut document = ticket();
    (document.seat, document.price, document.starts) = (None, None, None);
    let text = readers::text(&pdf(&document));
    for label in ["SEAT", "PRICE", "DATE"] {
        assert!(!text.contains(label), "{label} is printed in:\n{text}");
    }
    assert!(text.contains("LOCATION"));
}

#[test]
fn the_title_and_the_language_are_set_and_no_date_is() {
    let pdf = pdf(&ticket());
    let title = readers::info(&pdf, "Title");
    assert_eq!(title.as_deref(), Some("Midsummer Night Festival – Amelia Hartmann"));
    assert_eq!(readers::info(&pdf, "CreationDate"), None);
    assert!(pdf.windows(9).any(|bytes| bytes == b"/Lang(en)" || bytes == b"/Lang (en"));
}

#[test]
fn a_ticket_is_a_small_file() {
    let pdf = pdf(&ticket());
    assert!(pdf.len() < 60_000, "{} bytes", pdf.len());
}

#[test]
fn a_scanner_reads_the_code() {
    let document = ticket();
    assert_eq!(readers::scan(&pdf(&document)), document.code);
}

#[test]
fn a_scanner_reads_a_code_as_long_as_a_signed_token() {
    let mut document = ticket();
    document.code = "A1b2-C3d4_".repeat(20);
    assert_eq!(readers::scan(&pdf(&document)), document.code);
}

#[test]
fn a_scanner_reads_the_code_on_any_brand() {
    for (primary, secondary) in
        [("#000000", "#ffffff"), ("#ffffff", "#ffffff"), ("#000000", "#000000")]
    {
        let mut document = ticket();
        (document.primary, document.secondary) = (primary.into(), secondary.into());
        assert_eq!(readers::scan(&pdf(&document)), document.code, "{primary} {secondary}");
    }
}
