//! Single tickets.

use stampede_render::{Values, stamp};
use stampede_testkit::pdf_text;

use crate::sample::{TOKEN, ticket};

#[test]
fn texts_of_all_scripts_can_be_copied() {
    let template = ticket();
    for (script, name) in [
        ("Latin", "Ann-Sofie Ærø fi ffl ﬁ"),
        ("Cyrillic", "Анна Ёлкина"),
        ("Greek", "Ελένη Παπαδοπούλου"),
        ("Arabic", "محمد عبد الله"),
        ("Hebrew", "דוד בן־גוריון"),
        ("Devanagari", "क्षत्रिय श्री हिन्दी"),
        ("Thai", "สมชาย ใจดี กำลัง"),
        ("Han", "王小明 渡邊"),
        ("Kana", "さくら サクラ"),
        ("Hangul", "김철수"),
        ("emoji", "Ann 🎉 👩‍👩‍👧"),
        ("mixed", "Ann محمد 12 דוד Bob"),
        ("marks", "Zoe\u{308} x\u{304}y"),
    ] {
        let fields = [("name", name), ("seat", "A-12"), ("code", TOKEN)];
        let pdf = stamp(&template, &Values { id: "t1", fields: &fields }).unwrap();
        if let Ok(folder) = std::env::var("RENDER_LOOK") {
            std::fs::write(format!("{folder}/{script}.pdf"), &pdf).unwrap();
        }
        let text = pdf_text(&pdf);
        assert!(text.contains(name), "{script}: {name:?} is not in {text:?}");
    }
}
