//! Hand-made templates: a page with a frame and a headline in a standard font, and fields on it.

use std::sync::Arc;

use stampede_render::Prepared;
use stampede_render::compiled::{
    Align, Field, FieldKind, Fill, FontSource, ObjectPlace, Page, Stamped, StaticPdf, TextField,
};
use stampede_render::fonts;

/// Fonts of every script, in the order in which templates list them.
pub(crate) const CHAIN: [&str; 10] = [
    "Inter-SemiBold.ttf",
    "NotoSansArabic-Bold.ttf",
    "NotoSansHebrew-Bold.ttf",
    "NotoSansArmenian-Bold.ttf",
    "NotoSansGeorgian-Bold.ttf",
    "NotoSansDevanagari-Bold.ttf",
    "NotoSansThai-Bold.ttf",
    "NotoSansSC-Regular.ttf",
    "NotoSansKR-Regular.ttf",
    "NotoEmoji-Regular.ttf",
];

pub(crate) fn shipped(name: &str) -> FontSource {
    let font = fonts::shipped().iter().find(|font| font.name == name).expect("a shipped font");
    FontSource::Shipped(font.sha256)
}

/// Objects one after the other, as a template compiler would write them.
pub(crate) fn base(objects: &[&[u8]]) -> StaticPdf {
    let mut bytes = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(ObjectPlace::At(bytes.len() as u32));
        bytes.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    StaticPdf { bytes, objects: places }
}

pub(crate) fn stream(data: &str) -> Vec<u8> {
    format!("<</Length {}>>stream\n{data}\nendstream", data.len()).into_bytes()
}

pub(crate) fn text(width: f32, size: f32) -> TextField {
    TextField {
        width,
        size,
        min_size: size,
        lines: 1,
        line_height: 1.2,
        align: Align::Start,
        upper: false,
        tracking: 0.0,
        features: Vec::new(),
        lang: String::new(),
        fonts: (0..CHAIN.len() as u32).collect(),
        fill: Fill::Solid([0.1, 0.1, 0.2], 1.0),
    }
}

pub(crate) fn field(name: &str, x: f32, y: f32, kind: FieldKind) -> Field {
    Field { name: name.to_owned(), page: 0, transform: [1.0, 0.0, 0.0, 1.0, x, y], kind }
}

/// A page of 400 × 300 points with these fields.
pub(crate) fn template(fields: Vec<Field>) -> Stamped {
    let content = stream(
        "q 0.9 0.9 0.95 rg 10 10 380 280 re f Q BT /F1 10 Tf 20 270 Td (Static headline) Tj ET",
    );
    let font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>";
    Stamped {
        lang: "en".to_owned(),
        title: "Ticket {name}".to_owned(),
        base: base(&[&content, font]),
        pages: vec![Page {
            width: 400.0,
            height: 300.0,
            content: 1,
            resources: String::new(),
            fonts: "/F1 2 0 R".to_owned(),
            entries: String::new(),
        }],
        fonts: CHAIN.iter().map(|name| shipped(name)).collect(),
        fields,
    }
}

pub(crate) fn prepared(fields: Vec<Field>) -> Arc<Prepared> {
    Arc::new(Prepared::new(template(fields)).expect("a sound template"))
}

/// A name, a seat and a code.
pub(crate) fn ticket() -> Arc<Prepared> {
    let black = [0.0, 0.0, 0.0];
    prepared(vec![
        field("name", 20.0, 60.0, FieldKind::Text(text(360.0, 20.0))),
        field("seat", 20.0, 90.0, FieldKind::Text(text(200.0, 12.0))),
        field(
            "code",
            20.0,
            110.0,
            FieldKind::Qr { side: 150.0, fill: black, background: Some([1.0; 3]) },
        ),
    ])
}

/// As long as a real token, in its alphabet.
pub(crate) const TOKEN: &str = "AEAZMFYQ5M7ZDCXSWJ2Q4UZ3AAAAAAIAAAABSAAAAABQ2T7WQY5EXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEABCDEFGH";
