//! What the A4 design prints, stamped and typeset.

use stampede_model::TicketDocument;

use crate::{a4, readers, ticket};

#[test]
fn a_ticket_is_one_a4_page_with_everything_on_it() {
    for pdf in a4(&ticket()) {
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
}

#[test]
fn rows_without_a_value_are_absent() {
    let without = TicketDocument { seat: None, price: None, starts: None, ..ticket() };
    for pdf in a4(&without) {
        let text = readers::text(&pdf);
        for label in ["SEAT", "PRICE", "DATE"] {
            assert!(!text.contains(label), "{label} is printed in:\n{text}");
        }
        assert!(text.contains("LOCATION"));
    }
}

#[test]
fn the_language_is_set_and_no_date_is() {
    for pdf in a4(&ticket()) {
        assert_eq!(readers::info(&pdf, "CreationDate"), None);
        assert!(pdf.windows(9).any(|bytes| bytes == b"/Lang(en)" || bytes == b"/Lang (en"));
    }
}

#[test]
fn a_ticket_is_a_small_file() {
    let [stamped, typeset] = a4(&ticket()).map(|pdf| pdf.len());
    assert!(stamped <= 23_000 && typeset < 60_000, "{stamped} and {typeset} bytes");
}

#[test]
fn a_scanner_reads_a_code_longer_than_a_signed_token() {
    let document = TicketDocument { code: "A1b2-C3d4_".repeat(20), ..ticket() };
    for pdf in a4(&document) {
        assert_eq!(readers::scan_at(&pdf, 150), document.code);
    }
}
