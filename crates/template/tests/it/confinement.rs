//! A template sees its ticket and nothing else.

use stampede_template::Error;

use crate::{ticket, typesetter};

fn refusal(source: &str) -> String {
    match typesetter(source).render(&ticket()) {
        Err(Error::Template { message }) => message,
        other => panic!("{source} gave {other:?}"),
    }
}

#[test]
fn a_template_reads_no_file_but_its_own() {
    for source in [
        "#read(\"/etc/passwd\")",
        "#read(\"other.txt\")",
        "#read(\"../../etc/passwd\")",
        "#image(\"../x.png\")",
        "#image(\"logo.png\")",
        "#include \"other.typ\"",
        "#plugin(\"x.wasm\")",
    ] {
        let message = refusal(source);
        assert!(message.starts_with("template.typ:1:"), "{message}");
    }
    assert!(
        refusal("#read(\"a.txt\")").contains("a template can read only ticket.json and qr.svg")
    );
}

#[test]
fn a_template_loads_no_package() {
    let message = refusal("#import \"@preview/cetz:0.3.0\": canvas");
    assert!(message.starts_with("template.typ:1:"), "{message}");
}

#[test]
fn a_template_has_no_clock() {
    refusal("#datetime.today().display()");
}

#[test]
fn a_template_uses_no_font_of_the_system() {
    let pdf = typesetter("#set text(font: \"DejaVu Sans\")\nHello").render(&ticket()).unwrap();
    let fonts = crate::readers::fonts(&pdf);
    assert!(fonts.contains("Inter") && !fonts.contains("DejaVu"), "{fonts}");
}
