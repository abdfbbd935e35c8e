//! Many tickets in one PDF.

use std::io::Write;
use std::sync::Arc;

use stampede_render::compiled::{FieldKind, ObjectPlace, StaticPdf};
use stampede_render::{MergeError, Merged, Prepared, Values, piece};
use stampede_testkit::{pdf_pages, pdf_text};

use crate::look::{assert_sound, codes, info, unpacked};
use crate::sample::{TOKEN, base, field, stream, template, text, ticket};
use crate::stamping::NAMES;

#[test]
fn every_ticket_is_a_page_with_its_own_text() {
    let template = ticket();
    let mut merged = Merged::new(Vec::new(), "Order 42");
    for (_, name) in NAMES {
        let fields = [("name", name), ("seat", "A-12"), ("code", TOKEN)];
        merged.add(&template, &Values { id: name, fields: &fields }).unwrap();
    }
    let pdf = merged.finish().unwrap();
    assert_sound(&pdf, "merged");
    assert_eq!(pdf_pages(&pdf), NAMES.len());
    let text = pdf_text(&pdf);
    for (page, (script, name)) in text.split('\u{c}').zip(NAMES) {
        assert!(page.contains(name) && page.contains("Static headline"), "{script}: {page:?}");
    }
    assert_eq!(codes(&pdf), [TOKEN]);
    assert_eq!(info(&pdf, "Title").as_deref(), Some("Order 42"));
    assert_eq!(unpacked(&pdf).matches("(Static headline)").count(), 1);
}

#[test]
fn an_empty_document_is_sound_too() {
    let pdf = Merged::new(Vec::new(), "Nothing").finish().unwrap();
    // A document without pages is all that qpdf has to say about it.
    assert!(pdf.starts_with(b"%PDF-1.7"));
}

/// The sample template with another headline, its objects packed into a deflated object stream.
fn packed(headline: &str) -> Arc<Prepared> {
    let mut other = template(vec![
        field("name", 20.0, 60.0, FieldKind::Text(text(360.0, 20.0))),
        field("code", 20.0, 90.0, FieldKind::Qr { side: 90.0, fill: [0.0; 3], background: None }),
    ]);
    let content = stream(&format!("BT /F1 10 Tf 20 270 Td ({headline}) Tj ET"));
    let plain = base(&[&content]);
    let inner =
        "<</Type/Font/Subtype/Type1/BaseFont/Courier/FontDescriptor 4 0 R>><</Note(5 0 R)>>";
    let head = format!("2 0 4 {} ", inner.find("<</Note").unwrap());
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let data = format!("{head}{inner}");
    let mut zipped = vec![0; compressor.zlib_compress_bound(data.len())];
    let length = compressor.zlib_compress(data.as_bytes(), &mut zipped).unwrap();
    zipped.truncate(length);
    let mut bytes = plain.bytes;
    let third = bytes.len() as u32;
    bytes.extend_from_slice(
        format!(
            "3 0 obj\n<</Type/ObjStm/N 2/First {}/Filter/FlateDecode/Length {length}>>stream\n",
            head.len()
        )
        .as_bytes(),
    );
    bytes.extend_from_slice(&zipped);
    bytes.extend_from_slice(b"\nendstream\nendobj\n");
    let in_stream = |index| ObjectPlace::InStream { stream: 3, index };
    let objects = vec![plain.objects[0], in_stream(0), ObjectPlace::At(third), in_stream(1)];
    other.base = StaticPdf { bytes, objects };
    Arc::new(Prepared::new(other).unwrap())
}

#[test]
fn templates_can_be_mixed() {
    let (first, second, third) = (ticket(), packed("Second design"), packed("Third design"));
    let mut merged = Merged::new(Vec::new(), "Mixed");
    for round in 0..10 {
        let name = format!("Guest {round}");
        let fields = [("name", name.as_str()), ("code", TOKEN)];
        let template = [&first, &second, &third][round % 3];
        merged.add(template, &Values { id: &name, fields: &fields }).unwrap();
    }
    let pdf = merged.finish().unwrap();
    assert_sound(&pdf, "mixed");
    let text = pdf_text(&pdf);
    for (round, page) in text.split('\u{c}').take(10).enumerate() {
        let headline = ["Static headline", "Second design", "Third design"][round % 3];
        assert!(page.contains(headline), "{round}: {page}");
        assert!(page.contains(&format!("Guest {round}")), "{round}: {page}");
    }
    let plain = unpacked(&pdf);
    assert_eq!(plain.matches("(Third design)").count(), 1);
    assert_eq!(plain.matches("(5 0 R)").count(), 2, "a string is no reference");
}

#[test]
fn pieces_from_elsewhere_and_tickets_of_this_process_make_one_document() {
    let (first, second) = (ticket(), packed("Second design"));
    let mut merged = Merged::new(Vec::new(), "Pieces");
    let names: Vec<String> = (0..300).map(|n| format!("Guest {n:03}")).collect();
    for (round, some) in names.chunks(50).enumerate() {
        let template = if round % 3 == 1 { &second } else { &first };
        let fields: Vec<_> =
            some.iter().map(|name| [("name", name.as_str()), ("code", "T")]).collect();
        let values: Vec<Values<'_>> =
            some.iter().zip(&fields).map(|(name, fields)| Values { id: name, fields }).collect();
        if round == 2 {
            values.iter().for_each(|values| merged.add(template, values).unwrap());
            continue;
        }
        let after = merged.continuation(Some(template)).unwrap();
        let made = piece(template, &values, &after).unwrap();
        assert_eq!(after, merged.continuation(Some(template)).unwrap());
        merged.append(Some(template), made.clone()).unwrap();
        let again = merged.append(Some(template), made);
        assert!(again.is_err(), "a piece fits into one place");
    }
    let pdf = merged.finish().unwrap();
    assert_sound(&pdf, "pieces");
    assert_eq!(pdf_pages(&pdf), 300);
    let text = pdf_text(&pdf);
    for (page, name) in text.split('\u{c}').zip(&names) {
        assert!(page.contains(name.as_str()), "{name}: {page}");
    }
    let plain = unpacked(&pdf);
    assert_eq!(plain.matches("(Static headline)").count(), 1, "static parts are written once");
    assert_eq!(plain.matches("(Second design)").count(), 1);
}

#[test]
fn a_ticket_that_cannot_be_made_leaves_the_others_alone() {
    let template = ticket();
    let mut merged = Merged::new(Vec::new(), "Some");
    let long = "x".repeat(3000);
    for code in [TOKEN, &long, TOKEN] {
        let added = merged.add(&template, &Values { id: "1", fields: &[("code", code)] });
        assert_eq!(added.is_err(), code == long);
    }
    let pdf = merged.finish().unwrap();
    assert_sound(&pdf, "one left out");
    assert_eq!(pdf_pages(&pdf), 2);
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let template = ticket();
    let mut merged = Merged::new(Full(100_000), "Full");
    let outcome = (0..1000)
        .try_for_each(|_| merged.add(&template, &Values { id: "1", fields: &[("code", TOKEN)] }));
    assert!(matches!(outcome, Err(MergeError::Write(_))));
}

#[test]
fn twenty_thousand_tickets_are_written_as_they_come() {
    /// Counts what it is given, and the largest piece.
    #[derive(Default)]
    struct Counter {
        bytes: Vec<u8>,
        largest: usize,
    }
    impl Write for &mut Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.largest = self.largest.max(bytes.len());
            self.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let template = ticket();
    let mut counter = Counter::default();
    let mut merged = Merged::new(&mut counter, "Everyone");
    // A short code keeps this quick without optimisation.
    for serial in 0..20_000 {
        let name = format!("{} {serial}", NAMES[serial % NAMES.len()].1);
        let fields = [("name", name.as_str()), ("seat", "A-12"), ("code", "T")];
        merged.add(&template, &Values { id: &name, fields: &fields }).unwrap();
    }
    merged.finish().unwrap();
    let Counter { bytes, largest } = counter;
    assert!(largest < 2_000_000, "a piece of {largest} bytes");
    assert!(bytes.len() < 20_000 * 2_500, "{} bytes", bytes.len());
    assert_eq!(pdf_pages(&bytes), 20_000);
    let folder = stampede_testkit::temp_dir();
    let file = folder.path().join("all.pdf");
    std::fs::write(&file, &bytes).unwrap();
    let last = std::process::Command::new("pdftotext")
        .args(["-f", "20000", "-layout"])
        .arg(&file)
        .arg("-")
        .output()
        .unwrap();
    // Beside leftward names, readers put the number where they like.
    let expected = NAMES[19_999 % NAMES.len()].1;
    let text = String::from_utf8_lossy(&last.stdout).into_owned();
    assert!(text.contains(expected) && text.contains("19999"), "{text}");
    let pages =
        std::process::Command::new("qpdf").arg("--show-npages").arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&pages.stdout).trim(), "20000");
}
