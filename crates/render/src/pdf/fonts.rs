//! The five objects of an embedded font: Type 0 font, CID font, descriptor, file, ToUnicode map.

use crate::face::{Face, Outlines};
use crate::pdf::content::FaceUse;
use crate::pdf::objects::Objects;
use crate::pdf::write::{hex16, integer, number, reference, utf16_digits};

/// Objects that [`write()`] makes; the first is the font that pages refer to.
pub(crate) const OBJECTS: u32 = 5;

/// Writes the used part of a face as the objects `first` to `first + 4`.
pub(crate) fn write(
    objects: &mut Objects<'_>,
    first: u32,
    face: &Face,
    used: &mut FaceUse,
    texts: &str,
    scratch: &mut Vec<u8>,
) {
    let (cid_font, descriptor, file, to_unicode) = (first + 1, first + 2, first + 3, first + 4);
    scratch.clear();
    let cff = match &face.outlines {
        Outlines::TrueType(glyf) => {
            used.subset.write_truetype(face, glyf, scratch);
            false
        }
        Outlines::Cff(_) => {
            scratch.extend_from_slice(&cff_subset(face, used.subset.glyphs()));
            true
        }
    };
    let mut entries = Vec::with_capacity(24);
    if cff {
        entries.extend_from_slice(b"/Subtype/CIDFontType0C");
    } else {
        entries.extend_from_slice(b"/Length1 ");
        integer(&mut entries, scratch.len() as u64);
    }
    objects.stream(file, &entries, scratch);

    let tag = tag_of(used.subset.glyphs());
    let name = |out: &mut Vec<u8>| {
        out.extend_from_slice(&tag);
        out.push(b'+');
        out.extend_from_slice(face.name.as_bytes());
    };
    objects.object(first, |out| {
        out.extend_from_slice(b"<</Type/Font/Subtype/Type0/Encoding/Identity-H/BaseFont/");
        name(out);
        out.extend_from_slice(b"/DescendantFonts[");
        reference(out, cid_font);
        out.extend_from_slice(b"]/ToUnicode ");
        reference(out, to_unicode);
        out.extend_from_slice(b">>");
    });
    objects.object(cid_font, |out| {
        out.extend_from_slice(b"<</Type/Font/Subtype/CIDFontType");
        out.extend_from_slice(if cff { b"0" } else { b"2/CIDToGIDMap/Identity" });
        out.extend_from_slice(b"/BaseFont/");
        name(out);
        out.extend_from_slice(
            b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor ",
        );
        reference(out, descriptor);
        out.extend_from_slice(b"/DW 0/W[0[");
        for &glyph in used.subset.glyphs() {
            number(out, face.width(glyph));
            out.push(b' ');
        }
        out.extend_from_slice(b"]]>>");
    });
    objects.object(descriptor, |out| {
        out.extend_from_slice(b"<</Type/FontDescriptor/FontName/");
        name(out);
        out.extend_from_slice(face.descriptor.as_bytes());
        out.extend_from_slice(if cff { b"/FontFile3 " } else { b"/FontFile2 " });
        reference(out, file);
        out.extend_from_slice(b">>");
    });
    scratch.clear();
    write_to_unicode(scratch, &used.texts, texts);
    objects.stream(to_unicode, b"", scratch);
}

/// Six letters that tell subsets of the same font apart.
fn tag_of(glyphs: &[u16]) -> [u8; 6] {
    // FNV-1a: any fixed function of the glyphs does.
    let mut hash = glyphs.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &glyph| {
        (hash ^ u64::from(glyph)).wrapping_mul(0x0100_0000_01B3)
    });
    std::array::from_fn(|_| {
        let letter = b'A' + (hash % 26) as u8;
        hash /= 26;
        letter
    })
}

fn write_to_unicode(out: &mut Vec<u8>, places: &[(u32, u32)], texts: &str) {
    out.extend_from_slice(
        b"/CIDInit/ProcSet findresource begin 12 dict begin begincmap\n\
        /CIDSystemInfo<</Registry(Adobe)/Ordering(UCS)/Supplement 0>>def\n\
        /CMapName/U def/CMapType 2 def\n\
        1 begincodespacerange<0000><FFFF>endcodespacerange\n",
    );
    let has_text = |number: usize| places.get(number).is_some_and(|(start, end)| start < end);
    let mut number = 0;
    while number < places.len() {
        if !has_text(number) {
            number += 1;
            continue;
        }
        // A range has the same high byte throughout, and each of its numbers a text.
        let last = (number | 0xFF).min(places.len() - 1);
        let end = (number..=last).find(|&number| !has_text(number)).unwrap_or(last + 1);
        out.extend_from_slice(b"1 beginbfrange<");
        hex16(out, number as u16);
        out.extend_from_slice(b"><");
        hex16(out, end as u16 - 1);
        out.extend_from_slice(b">[");
        for &(start, end) in &places[number..end] {
            out.push(b'<');
            utf16_digits(out, texts.get(start as usize..end as usize).unwrap_or_default());
            out.push(b'>');
        }
        out.extend_from_slice(b"]endbfrange\n");
        number = end;
    }
    out.extend_from_slice(b"endcmap CMapName currentdict/CMap defineresource pop end end");
}

/// The used glyphs of an organiser's OpenType font, as bare CFF. A font that cannot be subset gives
/// an empty file, which draws nothing; preparing the template has tried it before.
fn cff_subset(face: &Face, glyphs: &[u16]) -> Vec<u8> {
    let mut mapper = subsetter::GlyphRemapper::new();
    for &glyph in glyphs {
        mapper.remap(glyph);
    }
    let Ok(font) = subsetter::subset(face.data(), face.index, &mapper) else { return Vec::new() };
    ttf_parser::RawFace::parse(&font, 0)
        .ok()
        .and_then(|font| font.table(ttf_parser::Tag::from_bytes(b"CFF ")))
        .unwrap_or(&font)
        .to_vec()
}
