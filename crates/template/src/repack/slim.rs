//! Leaves out what no reader needs: profiles of plain colours, names inside fonts, comments in maps.

use super::content::number;
use super::parse::{Document, Object};

/// Tables of a TrueType font that a PDF needs; the character map is in the PDF itself.
const TABLES: &[&[u8; 4]] =
    &[b"cvt ", b"fpgm", b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp", b"prep"];

/// The device's colour space for a profile, by its number of components: Typst's profiles are sRGB and
/// its grey, which is what screens and the stamper take device colours for.
pub(super) fn device_space(document: &Document<'_>, space: &Object) -> Option<&'static str> {
    let Object::Array(items) = document.resolve(space).ok()? else { return None };
    let [Object::Name(kind), Object::Reference(profile)] = &items[..] else { return None };
    if kind != b"ICCBased" {
        return None;
    }
    let Object::Dict(profile) = &document.get(*profile).ok()?.value else { return None };
    match profile.get("N")? {
        Object::Number(1.0) => Some("/DeviceGray"),
        Object::Number(3.0) => Some("/DeviceRGB"),
        _ => None,
    }
}

/// A TrueType font with nothing but the tables that are needed; whatever is not understood stays.
pub(super) fn font(file: Vec<u8>) -> Vec<u8> {
    slim_font(&file).unwrap_or(file)
}

fn slim_font(file: &[u8]) -> Option<Vec<u8>> {
    let u32_at = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    if u32_at(0)? != 0x0001_0000 {
        return None;
    }
    let count = u16::from_be_bytes(file.get(4..6)?.try_into().ok()?);
    let mut tables = Vec::new();
    for entry in (0..usize::from(count)).map(|index| 12 + 16 * index) {
        let tag = file.get(entry..entry + 4)?;
        if TABLES.iter().any(|table| table.as_slice() == tag) {
            let (sum, at, length) = (u32_at(entry + 4)?, u32_at(entry + 8)?, u32_at(entry + 12)?);
            tables.push((tag, sum, file.get(at as usize..at.checked_add(length)? as usize)?));
        }
    }
    let kept = u16::try_from(tables.len()).ok()?;
    let power = kept.checked_ilog2()?;
    let search = 16 << power;
    let mut out = 0x0001_0000_u32.to_be_bytes().to_vec();
    for value in [kept, search, power as u16, 16 * kept - search] {
        out.extend(value.to_be_bytes());
    }
    let mut at = 12 + 16 * u32::from(kept);
    for (tag, sum, bytes) in &tables {
        out.extend(*tag);
        out.extend(sum.to_be_bytes());
        out.extend(at.to_be_bytes());
        out.extend((bytes.len() as u32).to_be_bytes());
        at += (bytes.len() as u32).next_multiple_of(4);
    }
    for (_, _, bytes) in &tables {
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    Some(out)
}

/// A character map with only its ranges and characters.
pub(super) fn character_map(map: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&map) else { return map };
    let (Some(start), Some(end)) = (text.find("begincodespacerange"), text.rfind("endbf")) else {
        return map;
    };
    let start = text[..start].rfind('\n').unwrap_or(0);
    let end = text[end..].find('\n').map_or(text.len(), |length| end + length);
    let body: String = text[start..end].trim().replace("> <", "><");
    format!(
        "/CIDInit/ProcSet findresource begin 12 dict begin begincmap/CMapType 2 def\n{body}\n\
         endcmap CMapName currentdict/CMap defineresource pop end end\n"
    )
    .replace("/CMapType 2 def\n", "/CMapName/C def/CMapType 2 def\n")
    .into_bytes()
}

/// `[0 0 500 1 1 600]` as `[0[500 600]]`.
pub(super) fn widths(array: &[Object]) -> Option<String> {
    let numbers: Vec<f64> = array
        .iter()
        .map(|item| if let Object::Number(value) = item { Some(*value) } else { None })
        .collect::<Option<_>>()?;
    let mut text = String::from("[");
    let mut next = None;
    for range in numbers.chunks(3) {
        let [first, last, width] = range[..] else { return None };
        if last < first || last - first > 65_535.0 {
            return None;
        }
        if next != Some(first) {
            text.push_str(if next.is_some() { "]" } else { "" });
            text.push_str(&format!("{}[", number(first)));
        }
        // A tenth of a thousandth of the size.
        let width = number((width * 10.0).round() / 10.0);
        for _ in 0..=(last - first) as u32 {
            let space = if text.ends_with('[') { "" } else { " " };
            text.push_str(&format!("{space}{width}"));
        }
        next = Some(last + 1.0);
    }
    text.push_str(if next.is_some() { "]]" } else { "]" });
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_in_a_row_are_written_in_a_row() {
        let array = |list: &[f64]| list.iter().map(|v| Object::Number(*v)).collect::<Vec<_>>();
        let text = widths(&array(&[0.0, 0.0, 500.0, 1.0, 2.0, 600.26, 9.0, 9.0, 1.0])).unwrap();
        assert_eq!(text, "[0[500 600.3 600.3]9[1]]");
        assert_eq!(widths(&array(&[])).unwrap(), "[]");
        assert_eq!(widths(&array(&[1.0, 2.0])), None);
    }

    #[test]
    fn fonts_keep_their_glyphs_and_lose_their_names() {
        let font = stampede_render::fonts::shipped()[0].bytes;
        let slim = font_of(font);
        let face = ttf_parser::RawFace::parse(&slim, 0).unwrap();
        let whole = ttf_parser::RawFace::parse(font, 0).unwrap();
        let tag = ttf_parser::Tag::from_bytes;
        assert_eq!(face.table(tag(b"glyf")), whole.table(tag(b"glyf")));
        assert!(face.table(tag(b"name")).is_none() && whole.table(tag(b"name")).is_some());
    }

    fn font_of(bytes: &[u8]) -> Vec<u8> {
        font(bytes.to_vec())
    }

    #[test]
    fn what_is_not_understood_stays() {
        assert_eq!(font(b"OTTO and more".to_vec()), b"OTTO and more");
        assert_eq!(font(vec![0, 1, 0, 0, 0, 9]), [0, 1, 0, 0, 0, 9]);
        assert_eq!(character_map(b"no map".to_vec()), b"no map");
    }

    #[test]
    fn maps_keep_their_characters() {
        let map = b"%!PS\n/A def\n1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n1 beginbfchar\n<0001> <0045>\nendbfchar\nendcmap\n%%EOF";
        let slim = String::from_utf8(character_map(map.to_vec())).unwrap();
        assert!(slim.contains("1 beginbfchar\n<0001><0045>\nendbfchar\nendcmap"), "{slim}");
        assert!(!slim.contains('%'));
    }
}
