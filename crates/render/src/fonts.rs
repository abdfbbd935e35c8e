//! The fonts that ship with Stampede. They are part of the output's bytes, so they are part of the
//! binary: the fonts installed on a node are never looked at.
//!
//! Compiled templates name them by the SHA-256 of their file, so a font that was replaced is noticed.
//! The sums come from `assets/fonts/SHA256SUMS`: computing them would touch nine megabytes at every
//! start, of which most tickets use a few pages.
//!
//! Adding a font? Also touch `assets/fonts/make` and `assets/fonts/README.md`.

use std::sync::LazyLock;

/// A font that ships with Stampede.
#[derive(Debug, Clone, Copy)]
pub struct ShippedFont {
    /// Name of its file.
    pub name: &'static str,
    /// The TrueType file: exactly one face.
    pub bytes: &'static [u8],
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
}

const SUMS: &str = include_str!("../../../assets/fonts/SHA256SUMS");

macro_rules! embedded {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_bytes!(concat!("../../../assets/fonts/", $file)) as &[u8])),*]
    };
}

/// The order decides between fonts that fit equally well.
const FILES: &[(&str, &[u8])] = embedded![
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
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansDevanagari-Bold.ttf",
    "NotoSansThai-Regular.ttf",
    "NotoSansThai-Bold.ttf",
    "NotoSansSC-Regular.ttf",
    "NotoSansKR-Regular.ttf",
    "NotoEmoji-Regular.ttf",
];

/// All shipped fonts.
pub fn shipped() -> &'static [ShippedFont] {
    static FONTS: LazyLock<Vec<ShippedFont>> = LazyLock::new(|| {
        FILES
            .iter()
            .filter_map(|&(name, bytes)| Some(ShippedFont { name, bytes, sha256: sum_of(name)? }))
            .collect()
    });
    &FONTS
}

/// The shipped font with this SHA-256.
pub fn by_sha256(sha256: &[u8; 32]) -> Option<&'static ShippedFont> {
    shipped().iter().find(|font| font.sha256 == *sha256)
}

fn sum_of(name: &str) -> Option<[u8; 32]> {
    let hex = SUMS.lines().find_map(|line| line.strip_suffix(name)?.split_whitespace().next())?;
    let mut sum = [0; 32];
    for (byte, digits) in sum.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn every_file_is_shipped_under_its_own_sum() {
        assert_eq!(shipped().len(), FILES.len());
        for font in shipped() {
            assert_eq!(<[u8; 32]>::from(Sha256::digest(font.bytes)), font.sha256, "{}", font.name);
        }
    }

    #[test]
    fn every_file_holds_exactly_one_truetype_face() {
        for font in shipped() {
            assert_eq!(ttf_parser::fonts_in_collection(font.bytes), None, "{}", font.name);
            let face = ttf_parser::Face::parse(font.bytes, 0).unwrap();
            assert!(face.tables().glyf.is_some(), "{}", font.name);
            assert!(!face.is_variable(), "{}", font.name);
        }
    }

    #[test]
    fn families_and_weights_are_what_templates_ask_for() {
        let described: Vec<(String, u16)> = shipped()
            .iter()
            .map(|font| {
                let face = ttf_parser::Face::parse(font.bytes, 0).unwrap();
                let name = |id| {
                    face.names()
                        .into_iter()
                        .find(|name| name.name_id == id && name.is_unicode())
                        .and_then(|name| name.to_string())
                };
                // A typographic family (16) goes before the family of four styles (1).
                (name(16).or_else(|| name(1)).unwrap(), face.weight().to_number())
            })
            .collect();
        let inter = [400, 500, 600, 800].map(|weight| ("Inter".to_owned(), weight));
        assert_eq!(described[..4], inter);
        for (index, script) in
            ["Arabic", "Hebrew", "Armenian", "Georgian", "Devanagari", "Thai"].iter().enumerate()
        {
            let family = format!("Noto Sans {script}");
            let pair = &described[4 + 2 * index..6 + 2 * index];
            assert_eq!(pair, [(family.clone(), 400), (family, 700)]);
        }
        let rest: Vec<&str> = described[16..].iter().map(|(family, _)| family.as_str()).collect();
        assert_eq!(rest, ["Noto Sans SC", "Noto Sans KR", "Noto Emoji"]);
    }

    #[test]
    fn an_unknown_sum_names_no_font() {
        assert!(by_sha256(&[0; 32]).is_none());
        assert_eq!(by_sha256(&shipped()[3].sha256).unwrap().name, "Inter-ExtraBold.ttf");
    }
}
