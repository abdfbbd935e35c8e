//! Compiled templates as bytes.

use sha2::{Digest, Sha256};
use stampede_render::blob::{self, Error, VERSION};
use stampede_render::compiled::{Compiled, FieldKind, FontSource, ObjectPlace, Stamped, Typeset};
use stampede_render::{Prepared, Values, decode, encode};

use crate::sample::{TOKEN, field, template, text};

fn sample() -> Stamped {
    template(vec![
        field("name", 20.0, 60.0, FieldKind::Text(text(200.0, 20.0))),
        field("code", 20.0, 90.0, FieldKind::Qr { side: 90.0, fill: [0.0; 3], background: None }),
    ])
}

fn stamped() -> Compiled {
    Compiled::Stamped(Box::new(sample()))
}

/// Gives a body the header that it would have.
fn with_right_hash(body: &[u8]) -> Vec<u8> {
    let mut blob = b"STPL".to_vec();
    blob.extend_from_slice(&VERSION.to_le_bytes());
    blob.extend_from_slice(&Sha256::digest(body));
    blob.extend_from_slice(body);
    blob
}

#[test]
fn a_template_survives_the_way_through_bytes() {
    let typeset = Compiled::Typeset(Typeset {
        reason: "template.typ:12:4: reads ticket.json".to_owned(),
        files: vec![("template.typ".to_owned(), b"#let x = 1".to_vec())],
    });
    for compiled in [stamped(), typeset] {
        let blob = encode(&compiled);
        assert_eq!(decode(&blob), Ok(compiled.clone()));
        assert_eq!(encode(&compiled), blob);
        assert_eq!(blob::content_hash(&blob).len(), 32);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let blob = encode(&stamped());
    for at in 0..blob.len() {
        for bit in 0..8 {
            let mut damaged = blob.clone();
            damaged[at] ^= 1 << bit;
            assert!(decode(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
    for length in 0..blob.len() {
        assert!(decode(&blob[..length]).is_err(), "cut to {length} bytes");
    }
}

#[test]
fn another_version_is_named() {
    let mut blob = encode(&stamped());
    blob[4..6].copy_from_slice(&7_u16.to_le_bytes());
    assert_eq!(decode(&blob), Err(Error::OtherVersion { found: 7 }));
    assert!(Error::OtherVersion { found: 7 }.to_string().contains("format 7"));
    assert_eq!(decode(b"%PDF-1.7"), Err(Error::NotATemplate));
}

#[test]
fn nonsense_with_a_right_hash_is_refused_or_harmless() {
    let body = encode(&stamped())[38..].to_vec();
    let mut random = fastrand::Rng::with_seed(4);
    let mut read = 0;
    for _ in 0..3000 {
        let mut damaged = body.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..damaged.len());
            damaged[at] = random.u8(..);
        }
        if let Ok(Compiled::Stamped(stamped)) = decode(&with_right_hash(&damaged))
            && let Ok(prepared) = Prepared::new(*stamped)
        {
            read += 1;
            let fields = [("name", "Ann محمد"), ("code", TOKEN)];
            stampede_render::stamp(&prepared.into(), &Values { id: "1", fields: &fields }).ok();
        }
    }
    assert!(read > 100, "only {read} could be read: the test looks at too little");
}

#[test]
fn inconsistent_templates_are_refused() {
    type Spoil = fn(&mut Stamped);
    let spoilers: [(&str, Spoil); 24] = [
        ("no pages", |t| t.pages.clear()),
        ("content beyond the objects", |t| t.pages[0].content = 3),
        ("content 0", |t| t.pages[0].content = 0),
        ("page of no width", |t| t.pages[0].width = 0.0),
        ("page of no number", |t| t.pages[0].height = f32::NAN),
        ("resources that end the page", |t| t.pages[0].resources = ">>endobj".into()),
        ("fonts with unknown objects", |t| t.pages[0].fonts = "/F1 9 0 R".into()),
        ("entries that open", |t| t.pages[0].entries = "/A<<".into()),
        ("no PDF", |t| t.base.bytes[0] = b'x'),
        ("an object elsewhere", |t| t.base.objects[1] = ObjectPlace::At(3)),
        ("an object far away", |t| t.base.objects[1] = ObjectPlace::At(u32::MAX)),
        ("an object in itself", |t| {
            t.base.objects[1] = ObjectPlace::InStream { stream: 2, index: 0 };
        }),
        ("an unknown font", |t| t.fonts[0] = FontSource::Shipped([1; 32])),
        ("a field on no page", |t| t.fields[0].page = 1),
        ("a transform of no number", |t| t.fields[0].transform[2] = f32::INFINITY),
        ("a font that is not there", |t| text_of(t).fonts = vec![99]),
        ("no font", |t| text_of(t).fonts.clear()),
        ("no lines", |t| text_of(t).lines = 0),
        ("a size of no number", |t| text_of(t).size = f32::NAN),
        ("a negative width", |t| text_of(t).width = -1.0),
        ("a least size above the size", |t| text_of(t).min_size = 21.0),
        ("a pattern that is more", |t| {
            text_of(t).fill = stampede_render::compiled::Fill::Pattern("p scn/x".into());
        }),
        ("a language that is more", |t| t.lang = "en)/A(".into()),
        ("a colour that is none", |t| {
            t.fields[1].kind = FieldKind::Qr { side: 9.0, fill: [2.0; 3], background: None };
        }),
    ];
    for (what, spoil) in spoilers {
        let mut spoilt = sample();
        spoil(&mut spoilt);
        assert!(Prepared::new(spoilt.clone()).is_err(), "{what}");
        let blob = encode(&Compiled::Stamped(Box::new(spoilt)));
        assert!(matches!(decode(&blob), Err(Error::Inconsistent(_))), "{what}");
    }
}

fn text_of(template: &mut Stamped) -> &mut stampede_render::compiled::TextField {
    match &mut template.fields[0].kind {
        FieldKind::Text(text) => text,
        FieldKind::Qr { .. } | FieldKind::Image { .. } => panic!("the first field is a text"),
    }
}

#[test]
fn a_damaged_font_is_refused_or_harmless() {
    let bytes = stampede_render::fonts::shipped()[0].bytes;
    let mut random = fastrand::Rng::with_seed(11);
    let mut usable = 0;
    for round in 0..60 {
        let mut bytes = bytes.to_vec();
        // The directory and the small tables at the front are where damage hurts most.
        let reach = if round % 2 == 0 { 2000 } else { bytes.len() };
        for _ in 0..random.usize(1..30) {
            let at = random.usize(..reach);
            bytes[at] = random.u8(..);
        }
        if round % 5 == 0 {
            bytes.truncate(random.usize(..bytes.len()));
        }
        let mut own = sample();
        own.fonts = vec![FontSource::Own { bytes, face: 0 }];
        text_of(&mut own).fonts = vec![0];
        if let Ok(prepared) = Prepared::new(own) {
            usable += 1;
            let fields = [("name", "Ann Éxample fi 12"), ("code", TOKEN)];
            stampede_render::stamp(&prepared.into(), &Values { id: "1", fields: &fields }).ok();
        }
    }
    assert!(usable > 10, "only {usable} fonts could be used: the test looks at too little");
}
