//! The shipped fonts as Typst wants them, and fonts of a bundle beside them.

use std::sync::{Arc, LazyLock};

use stampede_render::compiled::FontSource;
use stampede_render::fonts::shipped;
use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

use crate::Bundle;

/// Fonts that a template may use.
pub(crate) struct Fonts {
    /// What each font is called and covers.
    pub(crate) book: LazyHash<FontBook>,
    /// The fonts, in the order of the book; the shipped ones first.
    pub(crate) faces: Vec<Font>,
}

/// Parsed once per process: constant data, only too large to parse for every template.
static SHIPPED: LazyLock<Arc<Fonts>> = LazyLock::new(|| {
    let faces: Vec<Font> =
        shipped().iter().flat_map(|font| Font::iter(Bytes::new(font.bytes))).collect();
    Arc::new(Fonts { book: LazyHash::new(FontBook::from_fonts(faces.iter())), faces })
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
    /// The shipped fonts and those in the bundle; names of files that are no fonts are the error.
    pub(crate) fn with_bundle(bundle: &Bundle) -> Result<Arc<Self>, Vec<String>> {
        if bundle.fonts().next().is_none() {
            return Ok(Arc::clone(&SHIPPED));
        }
        let mut faces = SHIPPED.faces.clone();
        let mut broken = Vec::new();
        for (name, bytes) in bundle.fonts() {
            let before = faces.len();
            faces.extend(Font::iter(Bytes::new(bytes.to_vec())));
            if faces.len() == before {
                broken.push(name.to_owned());
            }
        }
        if !broken.is_empty() {
            return Err(broken);
        }
        let book = LazyHash::new(FontBook::from_fonts(faces.iter()));
        Ok(Arc::new(Self { book, faces }))
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
