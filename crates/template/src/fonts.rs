//! The embedded fonts. They are part of the output's bytes, so they are part of the binary:
//! the fonts installed on a node are never looked at.
//!
//! Adding a font? Also touch `assets/fonts/README.md` and the font list in `default_ticket.typ`.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

macro_rules! embedded {
    ($($file:literal),* $(,)?) => {
        &[$(include_bytes!(concat!("../../../assets/fonts/", $file)) as &[u8]),*]
    };
}

/// The bytes of every font file; the order decides between fonts that fit equally well.
pub(crate) const FILES: &[&[u8]] = embedded![
    "Inter-Regular.ttf",
    "Inter-Medium.ttf",
    "Inter-SemiBold.ttf",
    "Inter-ExtraBold.ttf",
    "NotoSansArabic-Regular.ttf",
    "NotoSansArabic-Bold.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansHebrew-Bold.ttf",
    "NotoSansArmenian-Regular.ttf",
    "NotoSansArmenian-Bold.ttf",
    "NotoSansGeorgian-Regular.ttf",
    "NotoSansGeorgian-Bold.ttf",
];

/// The embedded fonts as Typst wants them.
pub(crate) struct Fonts {
    /// What each font is called and covers.
    pub(crate) book: LazyHash<FontBook>,
    /// The fonts, in the order of the book.
    pub(crate) faces: Vec<Font>,
}

/// Parsed once per process: constant data, only too large to parse for every template.
pub(crate) static FONTS: LazyLock<Fonts> = LazyLock::new(|| {
    let faces: Vec<Font> = FILES.iter().flat_map(|file| Font::iter(Bytes::new(*file))).collect();
    Fonts { book: LazyHash::new(FontBook::from_fonts(faces.iter())), faces }
});

/// SHA-256 over all font files.
pub(crate) static DIGEST: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for file in FILES {
        hash.update((file.len() as u64).to_le_bytes());
        hash.update(file);
    }
    hash.finalize().into()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_holds_exactly_one_face() {
        assert_eq!(FONTS.faces.len(), FILES.len());
    }

    #[test]
    fn the_families_are_those_the_default_template_names() {
        let mut families: Vec<&str> = FONTS.book.families().map(|(name, _)| name).collect();
        families.sort_unstable();
        assert_eq!(
            families,
            [
                "Inter",
                "Noto Sans Arabic",
                "Noto Sans Armenian",
                "Noto Sans Georgian",
                "Noto Sans Hebrew"
            ]
        );
        let source = include_str!("default_ticket.typ");
        assert!(families.iter().all(|family| source.contains(&format!("\"{family}\""))));
    }
}
