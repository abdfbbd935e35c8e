//! The shipped fonts as Typst wants them, and fonts of a bundle beside them.

use std::sync::{Arc, LazyLock};

use stampede_render::compiled::FontSource;
use stampede_render::fonts::shipped;
use stampede_render::{FontError, MOST_FACES, check_font};
use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

use crate::{Bundle, Diagnostic};

/// Fonts that a template may use.
pub(crate) struct Fonts {
    /// What each font is called and covers.
    pub(crate) book: LazyHash<FontBook>,
    /// The fonts, in the order of the book; the shipped ones first.
    pub(crate) faces: Vec<Font>,
    /// Files of the bundle that the faces after the shipped ones are in.
    files: Vec<String>,
}

/// Parsed once per process: constant data, only too large to parse for every template.
static SHIPPED: LazyLock<Arc<Fonts>> = LazyLock::new(|| {
    let faces: Vec<Font> =
        shipped().iter().flat_map(|font| Font::iter(Bytes::new(font.bytes))).collect();
    Arc::new(Fonts {
        book: LazyHash::new(FontBook::from_fonts(faces.iter())),
        faces,
        files: Vec::new(),
    })
});

/// Families of the shipped fonts, in the order in which they stand in for each other.
pub(crate) static FAMILIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut families: Vec<String> = Vec::new();
    for face in &SHIPPED.faces {
        if !families.contains(&face.info().family) {
            families.push(face.info().family.clone());
        }
    }
    families
});

impl Fonts {
    /// The shipped fonts and those in the bundle; the errors name files that are no fonts, and glyphs that unpack
    /// to more than they may.
    pub(crate) fn with_bundle(bundle: &Bundle) -> Result<Arc<Self>, Vec<Diagnostic>> {
        if bundle.fonts().next().is_none() {
            return Ok(Arc::clone(&SHIPPED));
        }
        let mistakes: Vec<_> =
            bundle.fonts().filter_map(|(name, bytes)| mistake_in(name, bytes)).collect();
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut faces = SHIPPED.faces.clone();
        let (mut files, mut broken) = (Vec::new(), Vec::new());
        for (name, bytes) in bundle.fonts() {
            let before = faces.len();
            faces.extend(Font::iter(Bytes::new(bytes.to_vec())));
            if faces.len() == before {
                broken.push(no_font(name));
            }
            files.resize(files.len() + faces.len() - before, name.to_owned());
        }
        if !broken.is_empty() {
            return Err(broken);
        }
        let book = LazyHash::new(FontBook::from_fonts(faces.iter()));
        Ok(Arc::new(Self { book, faces, files }))
    }

    /// The file of a face that can be varied: Typst varies it, the stamper has only its default.
    pub(crate) fn variable(&self, index: usize) -> Option<&str> {
        let file = self.files.get(index.checked_sub(shipped().len())?)?;
        let face = self.faces.get(index)?;
        let face = ttf_parser::RawFace::parse(face.data(), face.index()).ok()?;
        face.table(ttf_parser::Tag::from_bytes(b"fvar")).map(|_| file.as_str())
    }

    /// How a compiled template names the face.
    pub(crate) fn source(&self, index: usize) -> Option<FontSource> {
        let face = self.faces.get(index)?;
        Some(match shipped().get(index) {
            Some(font) => FontSource::Shipped(font.sha256),
            None => FontSource::Own { bytes: face.data().to_vec(), face: face.index() },
        })
    }
}

/// Why a font of a bundle cannot be used. What is damaged is left to Typst, which leaves out only what it must.
fn mistake_in(name: &str, bytes: &[u8]) -> Option<Diagnostic> {
    let faces = ttf_parser::fonts_in_collection(bytes).unwrap_or(1);
    if faces > MOST_FACES {
        let message = format!("the collection has {faces} fonts, more than {MOST_FACES}");
        return Some(Diagnostic::error(Some(name), message));
    }
    (0..faces).find_map(|face| match check_font(bytes, face) {
        Err(error @ FontError::TooLarge { .. }) => {
            let hint = "such a font would take gigabytes of memory: use another file of it";
            Some(Diagnostic::error(Some(name), error.to_string()).hint(hint))
        }
        Ok(()) | Err(FontError::NotShipped | FontError::Damaged(_)) => None,
    })
}

fn no_font(name: &str) -> Diagnostic {
    Diagnostic::error(Some(name), "is not a font, or is damaged")
        .hint("TrueType and OpenType fonts and their collections can be used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_holds_exactly_one_face() {
        assert_eq!(SHIPPED.faces.len(), shipped().len());
    }

    #[test]
    fn families_are_listed_once_with_inter_first() {
        assert_eq!(FAMILIES[0], "Inter");
        assert!(FAMILIES.contains(&"Noto Emoji".to_owned()));
        assert_eq!(FAMILIES.iter().filter(|family| *family == "Inter").count(), 1);
    }
}
