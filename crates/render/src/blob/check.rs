//! Whether a compiled template is consistent: every index points at something, every number is
//! one, every piece of PDF closes what it opens.

use crate::compiled::{
    Color, Field, FieldKind, Fill, FontSource, ObjectPlace, Page, Stamped, StaticPdf, TextField,
};
use crate::fonts;
use crate::pdf::syntax::{check_entries, is_regular};

/// Most pages of a ticket.
pub(crate) const MAX_PAGES: usize = 100;
/// Most fields of a ticket.
pub(crate) const MAX_FIELDS: usize = 500;
/// Most fonts of a template.
pub(crate) const MAX_FONTS: usize = 64;
/// Most objects of the static part.
pub(crate) const MAX_OBJECTS: usize = 100_000;
/// Largest side of a page, and largest coordinate: what readers promise to support.
const MAX_LENGTH: f32 = 14_400.0;
const MAX_LINES: u32 = 100;

type Check = Result<(), String>;

/// Checks all of it; the message says what is wrong.
pub(crate) fn check(stamped: &Stamped) -> Check {
    let last = stamped.base.objects.len() as u32;
    ensure(is_language(&stamped.lang), "its language is no language tag")?;
    ensure(stamped.title.len() <= 1000, "its title is too long")?;
    base(&stamped.base)?;
    ensure((1..=MAX_PAGES).contains(&stamped.pages.len()), "it has no pages, or too many")?;
    for (index, entry) in stamped.pages.iter().enumerate() {
        page(entry, last).map_err(|problem| format!("page {}: {problem}", index + 1))?;
    }
    ensure(stamped.fonts.len() <= MAX_FONTS, "it has too many fonts")?;
    for font in &stamped.fonts {
        if let FontSource::Shipped(sha256) = font {
            ensure(
                fonts::by_sha256(sha256).is_some(),
                "it uses a shipped font that this version does not have; publish it again",
            )?;
        }
    }
    ensure(stamped.fields.len() <= MAX_FIELDS, "it has too many fields")?;
    for entry in &stamped.fields {
        field(entry, stamped, last)
            .map_err(|problem| format!("field {:?}: {problem}", entry.name))?;
    }
    Ok(())
}

fn ensure(holds: bool, problem: &str) -> Check {
    if holds { Ok(()) } else { Err(problem.to_owned()) }
}

fn base(base: &StaticPdf) -> Check {
    ensure(base.bytes.starts_with(b"%PDF-1."), "its static part is no PDF")?;
    // Offsets are 32 bits wide.
    ensure(base.bytes.len() < 1 << 30, "its static part is too large")?;
    ensure(base.bytes.last() == Some(&b'\n'), "its static part ends within a line")?;
    ensure(base.objects.len() <= MAX_OBJECTS, "its static part has too many objects")?;
    for (index, place) in base.objects.iter().enumerate() {
        let number = index + 1;
        match *place {
            ObjectPlace::At(at) => {
                let begin = format!("{number} 0 obj");
                let there = base.bytes.get(at as usize..).unwrap_or_default();
                ensure(
                    there.starts_with(begin.as_bytes()),
                    &format!("object {number} is not where it should be"),
                )?;
            }
            ObjectPlace::InStream { stream, index } => {
                let holder = (stream as usize).checked_sub(1).and_then(|at| base.objects.get(at));
                ensure(
                    matches!(holder, Some(ObjectPlace::At(_))) && index <= u32::from(u16::MAX),
                    &format!("object {number} is in no stream"),
                )?;
            }
        }
    }
    Ok(())
}

fn page(page: &Page, last: u32) -> Check {
    let side = |length: f32| (1.0..=MAX_LENGTH).contains(&length);
    ensure(side(page.width) && side(page.height), "its size is not possible")?;
    ensure((1..=last).contains(&page.content), "its content does not exist")?;
    for (entries, what) in
        [(&page.resources, "resources"), (&page.fonts, "fonts"), (&page.entries, "entries")]
    {
        check_entries(entries, last).map_err(|_| format!("its {what} are no PDF"))?;
    }
    Ok(())
}

fn field(field: &Field, stamped: &Stamped, last: u32) -> Check {
    ensure(field.name.len() <= 200, "its name is too long")?;
    ensure((field.page as usize) < stamped.pages.len(), "its page does not exist")?;
    let [a, b, c, d, e, f] = field.transform;
    ensure(
        [a, b, c, d].iter().all(|part| part.abs() <= 1000.0)
            && [e, f].iter().all(|part| part.abs() <= 2.0 * MAX_LENGTH),
        "its transform is not possible",
    )?;
    match &field.kind {
        FieldKind::Text(text) => text_field(text, stamped.fonts.len()),
        FieldKind::Qr { side, fill, background } => {
            ensure(length(*side), "its side is not possible")?;
            color(fill)?;
            background.as_ref().map_or(Ok(()), color)
        }
        FieldKind::Image { width, height, choices } => {
            ensure(length(*width) && length(*height), "its size is not possible")?;
            for choice in choices {
                ensure((1..=last).contains(&choice.object), "its image does not exist")?;
                ensure(choice.width > 0 && choice.height > 0, "its image is empty")?;
            }
            Ok(())
        }
    }
}

fn text_field(text: &TextField, fonts: usize) -> Check {
    ensure(length(text.width), "its width is not possible")?;
    let sizes = 0.1..=2000.0;
    ensure(
        sizes.contains(&text.size) && sizes.contains(&text.min_size),
        "its size is not possible",
    )?;
    ensure(text.min_size <= text.size, "its least size is larger than its size")?;
    ensure((1..=MAX_LINES).contains(&text.lines), "its lines are not possible")?;
    ensure((0.0..=100.0).contains(&text.line_height), "its line height is not possible")?;
    ensure((-1.0..=100.0).contains(&text.tracking), "its tracking is not possible")?;
    ensure(text.features.len() <= 64, "it has too many features")?;
    ensure(text.lang.is_empty() || is_language(&text.lang), "its language is no language tag")?;
    ensure((1..=MAX_FONTS).contains(&text.fonts.len()), "it has no fonts, or too many")?;
    ensure(text.fonts.iter().all(|&font| (font as usize) < fonts), "its font does not exist")?;
    match &text.fill {
        Fill::Solid(fill, opacity) => {
            color(fill)?;
            ensure((0.0..=1.0).contains(opacity), "its opacity is not possible")
        }
        Fill::Pattern(name) => ensure(
            !name.is_empty()
                && name.len() <= 100
                && name.bytes().all(|byte| is_regular(byte) && byte.is_ascii_graphic()),
            "its pattern has no proper name",
        ),
    }
}

fn length(length: f32) -> bool {
    (0.1..=MAX_LENGTH).contains(&length)
}

fn color(color: &Color) -> Check {
    ensure(color.iter().all(|part| (0.0..=1.0).contains(part)), "its colour is not possible")
}

fn is_language(tag: &str) -> bool {
    (1..=35).contains(&tag.len())
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
