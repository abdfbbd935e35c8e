//! Values that want to be something else.

use std::time::{Duration, Instant};

use stampede_render::{Values, preflight, stamp};
use stampede_testkit::pdf_text;

use crate::look::assert_sound;
use crate::sample::{TOKEN, ticket};

fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "Robert'); DROP TABLE tickets;--",
        "<script>alert(1)</script>",
        "<iframe src=\"file:///etc/passwd\">",
        "../../etc/passwd",
        "#read(\"/etc/passwd\") #panic() $x^2$ @label *bold*",
        ") Tj ET Q endstream endobj 1 0 obj <</Type/Catalog>> trailer",
        ">>] TJ /S0 1 Tf (x",
        "\\) \\( \\\\ \\",
        "%PDF-1.7 startxref 0 %%EOF",
        "{{7*7}} ${7*7} %s %n",
        "a\0b\u{1}\u{1b}[31mred\u{7f}",
        "line\nbreak\r\nand\ttab\u{2028}and\u{85}more",
        "\u{202E}gnp.exe\u{202C}",
        "\u{2066}\u{2067}\u{2068}unclosed isolates",
        "محمد Ann דוד 12 (באר-שבע) 34",
        "\u{200D}\u{200D}\u{200D}",
        "\u{FFFD}\u{FFFE}\u{10FFFF}\u{E000}",
        "\u{301}\u{302}only marks",
        "👨‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿🇺🇦👍🏿",
        "𝕳𝖊𝖑𝖑𝖔 ﷽ ꧅",
        "க்ஷ ကြ ខ្មែរ",
    ]
    .map(str::to_owned)
    .to_vec();
    values.push(format!("a{}", "\u{301}".repeat(5000)));
    values.push("\u{200D}".repeat(5000));
    values.push("👩\u{200D}".repeat(2000));
    values.push("ا".repeat(5000));
    values.push("क्".repeat(3000));
    values.push("x".repeat(1_000_000));
    values.push(" ".repeat(1_000_000));
    values.push("\u{202E}\u{202D}".repeat(1000));
    values.push((0..5000).filter_map(|at| char::from_u32(0x300 + at * 7)).collect());
    values
}

#[test]
fn every_value_gives_a_sound_pdf_in_bounded_time_and_size() {
    let template = ticket();
    for value in values() {
        let what: String = value.chars().take(60).collect();
        let fields = [("name", value.as_str()), ("seat", value.as_str()), ("code", TOKEN)];
        let values = Values { id: &value, fields: &fields };
        let start = Instant::now();
        let pdf = stamp(&template, &values).unwrap();
        let warnings = preflight(&template, &values);
        assert!(start.elapsed() < Duration::from_secs(2), "{what:?}: {:?}", start.elapsed());
        assert!(pdf.len() < 400_000, "{what:?}: {} bytes", pdf.len());
        assert_sound(&pdf, &what);
        assert!(pdf_text(&pdf).contains("Static headline"), "{what:?}");
        for warning in warnings {
            assert!(warning.to_string().len() < 2000, "{what:?}");
        }
    }
}

#[test]
fn pdf_syntax_is_shown_as_it_was_typed() {
    let name = ") Tj ET Q endstream";
    let fields = [("name", name), ("seat", "\\) >> <<")];
    let pdf = stamp(&ticket(), &Values { id: ")", fields: &fields }).unwrap();
    let text = pdf_text(&pdf);
    assert!(text.contains(name) && text.contains("\\) >> <<"), "{text}");
}

#[test]
fn a_code_of_any_length_is_drawn_or_refused() {
    let template = ticket();
    for length in [1, 100, 500, 2000, 2331] {
        let code = "x".repeat(length);
        stamp(&template, &Values { id: "1", fields: &[("code", &code)] }).unwrap();
    }
    let code = "x".repeat(2332);
    let error = stamp(&template, &Values { id: "1", fields: &[("code", &code)] }).unwrap_err();
    assert_eq!(error, stampede_render::Error::CodeTooLong { field: "code".into() });
}
