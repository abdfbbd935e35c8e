//! What a template's failure looks like, and that it stays with its ticket.

use stampede_model::TicketDocument;
use stampede_template::Error;

use crate::{ticket, typesetter};

#[test]
fn a_template_that_refuses_one_ticket_prints_the_others() {
    let typesetter = typesetter(
        "#let t = json(\"ticket.json\")\n#if t.seat == \"BROKEN\" { panic(\"no such seat\") }\n#t.name",
    );
    let broken = TicketDocument { seat: Some("BROKEN".into()), ..ticket() };
    assert!(typesetter.render(&ticket()).is_ok());
    for _ in 0..2 {
        let message = typesetter.render(&broken).unwrap_err().to_string();
        assert_eq!(message, "template.typ:2:26: panicked with: no such seat");
        assert!(typesetter.render(&ticket()).is_ok());
    }
}

#[test]
fn a_message_has_the_position_and_the_hint() {
    let message =
        typesetter("Hello\n\n  #let x-y = 1\n#z-a").render(&ticket()).unwrap_err().to_string();
    assert!(message.starts_with("template.typ:4:2: unknown variable: z-a (hint: "), "{message}");
}

#[test]
fn all_mistakes_are_in_the_message() {
    let message = typesetter("#let\n#(1").render(&ticket()).unwrap_err().to_string();
    assert!(
        message.contains("template.typ:1:") && message.contains("; template.typ:2:"),
        "{message}"
    );
}

#[test]
fn a_code_that_fits_no_qr_symbol_is_an_error() {
    let document = TicketDocument { code: "x".repeat(4_000), ..ticket() };
    let error = typesetter("hello").render(&document).unwrap_err();
    assert_eq!(error, Error::CodeTooLong { length: 4_000 });
}

#[test]
fn a_template_of_its_own_gets_the_title_too() {
    let pdf = typesetter("#image(\"qr.svg\")").render(&ticket()).unwrap();
    let title = crate::readers::info(&pdf, "Title");
    assert_eq!(title.as_deref(), Some("Midsummer Night Festival – Amelia Hartmann"));
}
