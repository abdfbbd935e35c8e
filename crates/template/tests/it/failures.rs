//! What the failure of a template that is typeset looks like, and that it stays with its ticket.

use stampede_model::TicketDocument;

use crate::{both_ways, ticket, typeset_source};

fn failure(source: &str, ticket: &TicketDocument) -> String {
    let mistakes = typeset_source(source, ticket).unwrap_err();
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_template_that_refuses_one_ticket_prints_the_others() {
    let source = "#let t = json(\"ticket.json\")\n#if t.seat == \"BROKEN\" { panic(\"no such seat\") }\n#t.name";
    let broken = TicketDocument { seat: Some("BROKEN".into()), ..ticket() };
    assert!(typeset_source(source, &ticket()).is_ok());
    for _ in 0..2 {
        let message = failure(source, &broken);
        assert_eq!(message, "template.typ:2:26: panicked with: no such seat");
        assert!(typeset_source(source, &ticket()).is_ok());
    }
}

#[test]
fn a_message_has_the_position_and_the_hint() {
    let message = failure("Hello\n\n  #let x-y = 1\n#z-a", &ticket());
    assert!(message.starts_with("template.typ:4:2: unknown variable: z-a (hint: "), "{message}");
}

#[test]
fn all_mistakes_are_told() {
    let message = failure("#let\n#(1", &ticket());
    assert!(
        message.contains("template.typ:1:") && message.contains("; template.typ:2:"),
        "{message}"
    );
}

#[test]
fn a_code_that_fits_no_qr_symbol_is_an_error() {
    let document = TicketDocument { code: "x".repeat(4_000), ..ticket() };
    let message = failure("hello", &document);
    assert_eq!(message, "the ticket's code has 4000 bytes, too many for a QR code");
}

#[test]
fn a_template_may_choose_the_title_and_gets_one_if_it_does_not() {
    let title = |source: &str| {
        crate::readers::info(&typeset_source(source, &ticket()).unwrap(), "Title").unwrap()
    };
    assert_eq!(title("#image(\"qr.svg\")"), "Midsummer Night Festival – Amelia Hartmann");
    assert_eq!(title("#set document(title: \"Mine\")\nHello"), "Mine");
    for design in stampede_template::shipped() {
        for pdf in both_ways(design, &ticket()) {
            let title = crate::readers::info(&pdf, "Title").unwrap();
            assert_eq!(title, "Midsummer Night Festival – Amelia Hartmann", "{}", design.name);
        }
    }
}

#[test]
fn parts_of_typst_that_tickets_do_without_say_so() {
    let plugin = failure("#let p = plugin(bytes((0, 97, 115, 109)))", &ticket());
    assert!(plugin.contains("ticket templates have no WebAssembly plug-ins"), "{plugin}");
    let works = failure("#bibliography(bytes(\"a:\\n  type: Book\"))\n@a", &ticket());
    assert!(works.contains("ticket templates have no bibliographies"), "{works}");
}
