//! Any value in any box gives a PDF of bounded size, and the same one again.

use std::cell::RefCell;
use std::sync::Arc;

use stampede_render::compiled::{
    Align, Field, FieldKind, Fill, FontSource, ObjectPlace, Page, Stamped, StaticPdf, TextField,
};
use stampede_render::{Merged, Prepared, Stamper, Values, fonts, preflight, stamp};

/// Boxes of many kinds, all with the same value.
fn template() -> Stamped {
    let mut fields = Vec::new();
    for number in 0..8_u16 {
        let size = 6.0 + f32::from(number) * 3.0;
        let align = [Align::Start, Align::Left, Align::Center, Align::Right];
        fields.push(Field {
            name: "value".to_owned(),
            page: 0,
            transform: [1.0, 0.1, -0.2, 1.0, 20.0, 20.0 * f32::from(number + 1)],
            kind: FieldKind::Text(TextField {
                width: 20.0 + f32::from(number) * 30.0,
                size,
                min_size: size * (1.0 - f32::from(number % 4) * 0.2),
                lines: u32::from(number % 4) + 1,
                line_height: 1.2,
                align: align[usize::from(number % 4)],
                upper: number % 2 == 0,
                tracking: f32::from(number % 3) * 0.05,
                features: vec![(*b"tnum", 1)],
                lang: ["", "tr", "ar-EG", "zh-Hans"][usize::from(number % 4)].to_owned(),
                fonts: (0..fonts::shipped().len() as u32).collect(),
                fill: Fill::Solid([0.0; 3], 0.5),
            }),
        });
    }
    fields.push(Field {
        name: "value".to_owned(),
        page: 0,
        transform: [1.0, 0.0, 0.0, 1.0, 200.0, 200.0],
        kind: FieldKind::Qr { side: 90.0, fill: [0.0; 3], background: None },
    });
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let at = bytes.len() as u32;
    bytes.extend_from_slice(b"1 0 obj\n<</Length 0>>stream\n\nendstream\nendobj\n");
    Stamped {
        lang: "en".to_owned(),
        title: "{value}".to_owned(),
        base: StaticPdf { bytes, objects: vec![ObjectPlace::At(at)] },
        pages: vec![Page {
            width: 300.0,
            height: 300.0,
            content: 1,
            resources: String::new(),
            fonts: String::new(),
            entries: String::new(),
        }],
        fonts: fonts::shipped().iter().map(|font| FontSource::Shipped(font.sha256)).collect(),
        fields,
    }
}

thread_local! {
    static STAMPER: RefCell<Option<(Arc<Prepared>, Stamper)>> = const { RefCell::new(None) };
}

/// The entry: `data` is a value, made text if it is not.
pub(crate) fn run(data: &[u8]) {
    let value = String::from_utf8_lossy(data);
    let fields = [("value", value.as_ref())];
    let values = Values { id: "1", fields: &fields };
    STAMPER.with_borrow_mut(|kept| {
        let (template, stamper) = kept.get_or_insert_with(|| {
            let template = Arc::new(Prepared::new(template()).expect("the template is sound"));
            (Arc::clone(&template), Stamper::new(template))
        });
        let mut pdf = Vec::new();
        match stamper.stamp(&values, &mut pdf) {
            Ok(()) => {
                assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF\n"));
                assert!(pdf.len() < 4_000_000, "{} bytes", pdf.len());
                assert_eq!(stamp(template, &values).as_ref(), Ok(&pdf), "not the same again");
            }
            Err(_) => assert!(value.len() > 2000, "a value that must fit a QR code"),
        }
        for warning in preflight(template, &values) {
            assert!(!warning.to_string().is_empty());
        }
        let mut merged = Merged::new(Vec::new(), &value);
        merged.add(template, &values).ok();
        merged.finish().expect("memory can be written to");
    });
}
