//! A template sees its bundle, its event and its ticket, and nothing else, in both ways.

use stampede_template::{Bundle, EventData, compile};

use crate::{ticket, typeset_source};

/// What is said when it is published, and when a ticket is typeset.
fn refusals(source: &str) -> [String; 2] {
    let published = compile(&Bundle::of_source(source).unwrap(), &EventData::sample());
    let typeset = typeset_source(source, &ticket());
    let told = |mistakes: Option<Vec<stampede_template::Diagnostic>>| {
        mistakes.unwrap_or_else(|| panic!("{source} is accepted"))[0].to_string()
    };
    [told(published.err()), told(typeset.err())]
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
        for message in refusals(source) {
            assert!(message.starts_with("template.typ:1:"), "{message}");
        }
    }
    for message in refusals("#read(\"a.txt\")") {
        assert!(message.contains("a template can read only files of its bundle"), "{message}");
    }
}

#[test]
fn a_template_loads_no_package() {
    for message in refusals("#import \"@preview/cetz:0.3.0\": canvas") {
        assert!(message.starts_with("template.typ:1:"), "{message}");
    }
}

#[test]
fn a_template_has_no_clock() {
    for message in refusals("#datetime.today().display()") {
        assert!(message.starts_with("template.typ:1:"), "{message}");
    }
}

#[test]
fn a_template_uses_no_font_of_the_system() {
    let source = "#set text(font: \"DejaVu Sans\")\nHello #field(\"name\") #qr(20mm)";
    let stamped = crate::stamp_ticket(&crate::published(source), &ticket());
    for pdf in [stamped, typeset_source(source, &ticket()).unwrap()] {
        let fonts = crate::readers::fonts(&pdf);
        assert!(fonts.contains("Inter") && !fonts.contains("DejaVu"), "{fonts}");
    }
}
