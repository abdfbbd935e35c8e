//! Single tickets.

use std::sync::Arc;

use stampede_render::compiled::{
    Field, FieldKind, Fill, ImageChoice, ObjectPlace, Page, StaticPdf, TextField,
};
use stampede_render::{Deflate, Prepared, Stamper, Values, stamp};
use stampede_testkit::{pdf_pages, pdf_text};

use crate::look::{assert_sound, codes, info, pixels, unpacked};
use crate::sample::{TOKEN, base, field, prepared, stream, template, text, ticket};

/// A name in every script that tickets must be able to show.
pub(crate) const NAMES: [(&str, &str); 17] = [
    ("Latin", "Ann-Sofie Ærø fi ffl Łukasz"),
    ("Vietnamese", "Nguyễn Thị Ánh"),
    ("Cyrillic", "Анна Ёлкина"),
    ("Greek", "Ελένη Παπαδοπούλου"),
    ("Armenian", "Արամ Խաչատրյան"),
    ("Georgian", "შოთა რუსთაველი"),
    ("Arabic", "محمد عبد الله"),
    ("Arabic ligatures", "علاء الدين سلام"),
    ("vowelled Arabic", "مُحَمَّد لَا"),
    ("Persian", "لیلا پژمان"),
    ("Hebrew", "דוד בן־גוריון"),
    ("pointed Hebrew", "שָׁלוֹם"),
    ("Devanagari", "क्षत्रिय श्री हिन्दी"),
    ("Thai", "สมชาย ใจดี กำลัง"),
    ("Chinese and Japanese", "王小明 渡邊 さくら サクラ"),
    ("Korean", "김철수 뷁"),
    ("emoji", "Ann 🎉 👩‍👩‍👧 ❤️"),
];

#[test]
fn texts_of_all_scripts_can_be_copied() {
    let template = ticket();
    for (script, name) in NAMES.into_iter().chain([("marks", "Zoe\u{308} q\u{307}")]) {
        let fields = [("name", name), ("seat", "A-12"), ("code", TOKEN)];
        for deflate in [Deflate::Off, Deflate::On] {
            let mut pdf = Vec::new();
            let mut stamper = Stamper::new(Arc::clone(&template)).with_deflate(deflate);
            stamper.stamp(&Values { id: "t1", fields: &fields }, &mut pdf).unwrap();
            // For people to look at: RENDER_LOOK=folder cargo nextest run …
            if let Ok(folder) = std::env::var("RENDER_LOOK") {
                std::fs::write(format!("{folder}/{script}.pdf"), &pdf).unwrap();
            }
            assert_sound(&pdf, script);
            let text = pdf_text(&pdf);
            assert!(text.contains(name), "{script}: {name:?} is not in {text:?}");
        }
    }
}

#[test]
fn nothing_of_a_name_is_drawn_as_a_box() {
    let template = ticket();
    for (script, name) in NAMES {
        let values = Values { id: "t1", fields: &[("name", name)] };
        assert_eq!(stampede_render::preflight(&template, &values), [], "{script}");
    }
}

#[test]
fn a_scanner_reads_the_code_at_100_dots_per_inch() {
    let template = ticket();
    for code in [TOKEN, "A", "https://example.org/t/42?x=y&z", &"long text ".repeat(40)] {
        let pdf = stamp(&template, &Values { id: "1", fields: &[("code", code)] }).unwrap();
        if code.len() <= 200 {
            assert_eq!(codes(&pdf), [code]);
        }
        assert_sound(&pdf, code);
    }
    let small = prepared(vec![field(
        "code",
        20.0,
        100.0,
        FieldKind::Qr { side: 84.0, fill: [0.0; 3], background: Some([1.0; 3]) },
    )]);
    let pdf = stamp(&small, &Values { id: "1", fields: &[("code", TOKEN)] }).unwrap();
    assert_eq!(codes(&pdf), [TOKEN], "29 mm for a token");
}

#[test]
fn the_same_ticket_has_the_same_bytes_in_every_thread_and_order() {
    let template = ticket();
    let stamp_one = |name: &str| {
        let fields = [("name", name), ("seat", "A-12"), ("code", TOKEN)];
        stamp(&template, &Values { id: "t1", fields: &fields }).unwrap()
    };
    let expected: Vec<Vec<u8>> = NAMES.iter().map(|(_, name)| stamp_one(name)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (template, expected) = (Arc::clone(&template), &expected);
            scope.spawn(move || {
                let mut stamper = Stamper::new(template);
                let mut out = b"left over".to_vec();
                for round in 0..3 * NAMES.len() {
                    let index = (round * (thread + 1) + thread) % NAMES.len();
                    let fields = [("name", NAMES[index].1), ("seat", "A-12"), ("code", TOKEN)];
                    stamper.stamp(&Values { id: "t1", fields: &fields }, &mut out).unwrap();
                    assert_eq!(out, expected[index], "{}", NAMES[index].0);
                }
            });
        }
    });
}

/// Run as a process of its own by the test below.
#[test]
#[ignore = "a part of another test"]
fn prints_the_checksum_of_its_tickets() {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    let template = ticket();
    for (_, name) in NAMES {
        let fields = [("name", name), ("seat", "A-12"), ("code", TOKEN)];
        hash.update(stamp(&template, &Values { id: "t1", fields: &fields }).unwrap());
    }
    println!("checksum {:?}", hash.finalize());
}

#[test]
fn two_processes_write_the_same_bytes() {
    let checksum = || {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--nocapture", "prints_the_checksum_of_its_tickets"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains("checksum Array")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no checksum in {text}"))
    };
    assert_eq!(checksum(), checksum());
}

#[test]
fn documents_have_title_and_language_and_no_time() {
    let pdf = stamp(&ticket(), &Values { id: "1", fields: &[("name", "Анна (A)\n")] }).unwrap();
    assert_eq!(info(&pdf, "Title").as_deref(), Some("Ticket Анна (A)"));
    assert_eq!(info(&pdf, "CreationDate"), None);
    assert_eq!(info(&pdf, "ModDate"), None);
    let text = unpacked(&pdf);
    assert!(text.contains("/Lang (en)") && text.contains("/DisplayDocTitle true"));
}

#[test]
fn different_tickets_have_different_ids() {
    let id_of = |id: &str, name: &str| {
        let fields = [("name", name)];
        let pdf = stamp(&ticket(), &Values { id, fields: &fields }).unwrap();
        let at = pdf.windows(4).position(|bytes| bytes == b"/ID[").unwrap();
        pdf[at..at + 38].to_vec()
    };
    assert_eq!(id_of("1", "Ann"), id_of("1", "Ann"));
    assert_ne!(id_of("1", "Ann"), id_of("2", "Ann"));
    assert_ne!(id_of("1", "Ann"), id_of("1", "Bob"));
}

#[test]
fn absent_and_empty_values_draw_nothing() {
    let template = ticket();
    let empty = stamp(&template, &Values { id: "1", fields: &[] }).unwrap();
    assert_sound(&empty, "no values");
    let (_, _, nothing) = pixels(&empty, 40);
    for fields in [&[("name", "")][..], &[("name", " \n\0"), ("unknown", "x")]] {
        let pdf = stamp(&template, &Values { id: "1", fields }).unwrap();
        assert_sound(&pdf, "empty values");
        assert_eq!(pixels(&pdf, 40).2, nothing);
    }
}

#[test]
fn the_id_is_a_value_of_its_own() {
    let template = prepared(vec![field("id", 20.0, 60.0, FieldKind::Text(text(300.0, 20.0)))]);
    let pdf = stamp(&template, &Values { id: "tk_42", fields: &[] }).unwrap();
    assert!(pdf_text(&pdf).contains("tk_42"));
}

#[test]
fn only_the_glyphs_of_the_ticket_are_embedded() {
    let pdf = stamp(&ticket(), &Values { id: "1", fields: &[("name", "Ann")] }).unwrap();
    assert!(pdf.len() < 6000, "{} bytes for three letters", pdf.len());
    let fonts = unpacked(&pdf);
    assert_eq!(fonts.matches("/FontFile2").count(), 1);
    assert!(fonts.contains("+Inter-SemiBold"));
}

#[test]
fn fields_of_every_page_are_drawn_on_their_page() {
    let mut two = template(vec![
        field("name", 20.0, 60.0, FieldKind::Text(text(300.0, 20.0))),
        Field { page: 1, ..field("seat", 20.0, 60.0, FieldKind::Text(text(300.0, 20.0))) },
    ]);
    two.pages.push(Page { width: 100.0, ..two.pages[0].clone() });
    let template = Arc::new(Prepared::new(two).unwrap());
    let fields = [("name", "First"), ("seat", "Second")];
    let pdf = stamp(&template, &Values { id: "1", fields: &fields }).unwrap();
    assert_sound(&pdf, "two pages");
    assert_eq!(pdf_pages(&pdf), 2);
    let text = pdf_text(&pdf);
    let pages: Vec<&str> = text.split('\u{c}').collect();
    assert!(pages[0].contains("First") && pages[1].contains("Second"), "{pages:?}");
}

#[test]
fn images_are_chosen_by_the_value_and_patterns_fill_text() {
    let red = b"<</Type/XObject/Subtype/Image/Width 2/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 2>>stream\n\x00\x40\nendstream";
    let pattern = b"<</PatternType 2/Shading<</ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 400 0]/Function<</FunctionType 2/Domain[0 1]/C0[0]/C1[0]/N 1>>>>>>";
    let choice = |value: &str| ImageChoice { value: value.into(), object: 2, width: 2, height: 1 };
    let kind = |choices| FieldKind::Image { width: 80.0, height: 80.0, choices };
    let mut with_images = template(vec![
        field("seat", 100.0, 100.0, kind(vec![choice("VIP")])),
        field("any", 200.0, 100.0, kind(vec![choice("")])),
        field(
            "name",
            20.0,
            60.0,
            FieldKind::Text(TextField { fill: Fill::Pattern("Fp".into()), ..text(300.0, 20.0) }),
        ),
    ]);
    with_images.base = base(&[&stream("q Q"), red, pattern]);
    with_images.pages[0].fonts.clear();
    with_images.pages[0].resources = "/Pattern<</Fp 3 0 R>>".into();
    let template = Arc::new(Prepared::new(with_images).unwrap());
    let dark = |fields: &[(&str, &str)]| {
        let pdf = stamp(&template, &Values { id: "1", fields }).unwrap();
        assert_sound(&pdf, "images");
        let (width, _, values) = pixels(&pdf, 72);
        let at = |x: usize, y: usize| values[y * width + x] < 100;
        // In the middle of both boxes, and outside the image that is as wide as the box.
        (at(110, 140), at(210, 140), at(110, 105), values.iter().any(|value| *value < 50))
    };
    assert_eq!(dark(&[("seat", "VIP")]), (true, false, false, true));
    assert_eq!(dark(&[("seat", "other")]), (false, false, false, false));
    assert_eq!(dark(&[("any", "other")]), (false, true, false, true));
    assert_eq!(dark(&[("name", "Ann")]), (false, false, false, true));
}

#[test]
fn static_objects_may_lie_in_object_streams() {
    let inner = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>";
    let head = "2 0 ";
    let mut packed = template(vec![field("name", 20.0, 60.0, FieldKind::Text(text(300.0, 20.0)))]);
    let stream_object = format!(
        "<</Type/ObjStm/N 1/First {}/Length {}>>stream\n{head}{inner}\nendstream",
        head.len(),
        head.len() + inner.len()
    );
    let content = stream("BT /F1 10 Tf 20 270 Td (Static headline) Tj ET");
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let first = bytes.len() as u32;
    bytes.extend_from_slice(b"1 0 obj\n");
    bytes.extend_from_slice(&content);
    bytes.extend_from_slice(b"\nendobj\n");
    let third = bytes.len() as u32;
    bytes.extend_from_slice(format!("3 0 obj\n{stream_object}\nendobj\n").as_bytes());
    packed.base = StaticPdf {
        bytes,
        objects: vec![
            ObjectPlace::At(first),
            ObjectPlace::InStream { stream: 3, index: 0 },
            ObjectPlace::At(third),
        ],
    };
    let template = Arc::new(Prepared::new(packed).unwrap());
    let pdf = stamp(&template, &Values { id: "1", fields: &[("name", "Ann")] }).unwrap();
    assert_sound(&pdf, "object stream");
    let text = pdf_text(&pdf);
    assert!(text.contains("Static headline") && text.contains("Ann"), "{text}");
}
