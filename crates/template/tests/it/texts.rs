//! Texts typed by people: printed literally, in any covered script, and always inside the card.

use stampede_model::TicketDocument;

use crate::{a4, named, readers, ticket};

/// The card's edges on the page in points: 20 mm from every side of an A4 page.
const CARD: [f64; 4] = [56.6, 56.6, 538.6, 785.3];

/// Both ways: one page, nothing beyond the card's edges, and fixed texts whole. Fields may end in an
/// ellipsis, but begin as they should.
fn assert_inside_the_card(document: &TicketDocument) {
    for pdf in a4(document) {
        assert_eq!(readers::info(&pdf, "Pages").as_deref(), Some("1"));
        let printed = readers::unwrapped_text(&pdf);
        for (field, text) in document.typed_texts() {
            let text: String = text.split_whitespace().collect();
            let field_begins = || {
                let begin: String = text.chars().take(20).collect();
                matches!(field, "name" | "seat") && printed.contains(&begin)
            };
            let whole = printed.contains(&text);
            assert!(whole || (printed.contains('…') && field_begins()), "{field} in {printed}");
        }
        let [left, top, right, bottom] = CARD;
        for (x0, y0, x1, y1, word) in readers::boxes(&pdf) {
            let inside = x0 >= left && y0 >= top && x1 <= right && y1 <= bottom;
            assert!(inside, "{word} spills over: {x0} {y0} {x1} {y1}");
        }
    }
}

#[test]
fn names_that_look_like_markup_are_printed_literally() {
    for name in [
        "#let x = 1",
        "#panic(1) #t.id",
        "$a$ *b* _c_ `d`",
        "<script>alert(1)</script>",
        "../x/../../etc/passwd",
        "a -- b --- c",
        "wait ... what",
        "\"quoted\" and 'single'",
        "@x <label> = Heading",
        "- item + item / term: x",
        "2x2 -> 3 --> 4 => 5 != 6",
        "// no /* comment */",
        "\\u{41} \\n \\",
        "~ no-break -? shy",
        "https://example.com",
        "fi ffi fl",
    ] {
        for pdf in a4(&named(name)) {
            let text = readers::text(&pdf);
            assert!(text.contains(name), "{name} became:\n{text}");
        }
    }
}

#[test]
fn names_that_want_to_be_something_else_give_a_sound_pdf() {
    let marks = format!("a{}", "\u{301}".repeat(5_000));
    let joiners = "\u{200d}".repeat(5_000);
    for name in [
        "Ann\0 Example\u{1}\u{1b}[31m",
        marks.as_str(),
        joiners.as_str(),
        ") Tj ET Q endstream endobj 1 0 obj <</Type/Catalog>> trailer",
        "%PDF-1.7 startxref 0 %%EOF",
        "\u{202e}gnp.exe\u{2066}\u{2067} unclosed",
        "\u{301}\u{302} only marks",
        "line\nbreak\u{2028}and\u{85}more",
    ] {
        let what: String = name.chars().take(20).collect();
        for pdf in a4(&named(name)) {
            readers::check(&pdf);
            assert_eq!(readers::info(&pdf, "Pages").as_deref(), Some("1"), "{what:?}");
            let text = readers::text(&pdf);
            assert!(text.contains("Row C, Seat 14"), "{what:?}: {text}");
        }
    }
}

#[test]
fn long_texts_stay_inside_the_card() {
    let long = |text: &str, length: usize| -> String {
        text.chars().cycle().take(length).collect::<String>().trim().to_owned()
    };
    assert_inside_the_card(&TicketDocument {
        name: long("Maximiliane Wolfeschlegelsteinhausen ", 200),
        event: long("The Extraordinary Festival of Everything ", 200),
        location: long("Great Hall, Long Street 12345, ", 200),
        seat: Some(long("Balcony left, entrance ", 60)),
        ..ticket()
    });
}

#[test]
fn long_words_without_a_space_stay_inside_the_card() {
    assert_inside_the_card(&TicketDocument {
        name: "W".repeat(200),
        event: "Ж".repeat(200),
        location: "M".repeat(200),
        seat: Some("W".repeat(60)),
        price: Some("1234567890.00".into()),
        ..ticket()
    });
}

#[test]
fn a_long_right_to_left_title_stays_inside_the_card() {
    let event = "مهرجان ليلة منتصف الصيف ".repeat(8);
    for pdf in a4(&TicketDocument { event: event.trim().into(), ..ticket() }) {
        assert_eq!(readers::info(&pdf, "Pages").as_deref(), Some("1"));
        let [left, top, right, bottom] = CARD;
        for (x0, y0, x1, y1, word) in readers::boxes(&pdf) {
            assert!(x0 >= left && y0 >= top && x1 <= right && y1 <= bottom, "{word} spills over");
        }
    }
}

#[test]
fn arabic_and_hebrew_names_are_shaped_and_run_from_right_to_left() {
    for (name, font) in [("محمد الهاشمي", "NotoSansArabic"), ("יוסי כהן", "NotoSansHebrew")]
    {
        for pdf in a4(&named(name)) {
            let fonts = readers::fonts(&pdf);
            assert!(fonts.contains(font), "{fonts}");
            // The first word of the name is printed to the right of the last.
            let (first, last) = name.split_once(' ').unwrap();
            let words = readers::boxes(&pdf);
            // Poppler gives the letters of a word as they stand on the page, from left to right.
            let left_of = |word: &str| {
                let mirrored: String = word.chars().rev().collect();
                words.iter().find(|(.., found)| *found == mirrored).map(|found| found.0)
            };
            assert!(left_of(first).is_some() && left_of(last).is_some(), "{words:?}");
            assert!(left_of(first) > left_of(last), "{words:?}");
        }
    }
}
