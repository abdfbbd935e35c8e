//! What an organiser hands in: `template.typ` and the images, fonts and texts it uses.
//!
//! Names and sizes are checked before anything is compiled; what is inside is judged later, in the
//! sandbox. Images are only measured here, by their headers, so that a small file cannot unpack into
//! gigabytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Diagnostic;

/// The file every bundle must have.
pub const MAIN_FILE: &str = "template.typ";

/// Names that belong to Stampede; a bundle cannot replace them.
pub(crate) const RESERVED: &[&str] = &[
    "stampede.typ",
    "stampede.json",
    "event.json",
    "ticket.json",
    "values.json",
    "qr.json",
    "qr.svg",
    "words.json",
    "pieces.json",
];

const MOST_FILES: usize = 100;
const LONGEST_NAME: usize = 120;
const MOST_BYTES: usize = 16 << 20;
const MOST_SOURCE_BYTES: usize = 1 << 20;
const MOST_PIXELS: usize = 40_000_000;
const FONT_ENDINGS: &[&str] = &[".ttf", ".otf", ".ttc", ".otc"];
const IMAGE_ENDINGS: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A template with everything it uses.
///
/// At most 100 files of 16 MiB together; Typst sources of at most 1 MiB each; images of at most 40
/// million pixels. Names are relative paths of letters, digits, `.`, `-`, `_`, spaces and `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Files", into = "Files")]
pub struct Bundle {
    files: BTreeMap<String, Vec<u8>>,
}

type Files = BTreeMap<String, Vec<u8>>;

impl Bundle {
    /// Checks names, counts and sizes; every mistake is told.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, Vec<Diagnostic>> {
        let mut mistakes = Vec::new();
        if !files.contains_key(MAIN_FILE) {
            mistakes.push(
                Diagnostic::error(None, format!("the bundle has no {MAIN_FILE}"))
                    .hint(format!("name the file with the design {MAIN_FILE}")),
            );
        }
        if files.len() > MOST_FILES {
            mistakes.push(Diagnostic::error(
                None,
                format!("the bundle has {} files, more than {MOST_FILES}", files.len()),
            ));
        }
        let bytes: usize = files.values().map(Vec::len).sum();
        if bytes > MOST_BYTES {
            mistakes.push(Diagnostic::error(
                None,
                format!("the bundle has {bytes} bytes, more than {MOST_BYTES}"),
            ));
        }
        mistakes.extend(files.iter().filter_map(|(name, bytes)| mistake_in(name, bytes)));
        if mistakes.is_empty() { Ok(Self { files }) } else { Err(mistakes) }
    }

    /// A bundle of nothing but a design.
    pub fn of_source(source: &str) -> Result<Self, Vec<Diagnostic>> {
        Self::new(BTreeMap::from([(MAIN_FILE.to_owned(), source.as_bytes().to_vec())]))
    }

    /// All files by name.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// The design's source.
    pub fn source(&self) -> &str {
        // Both were checked by `new`.
        self.files.get(MAIN_FILE).and_then(|file| std::str::from_utf8(file).ok()).unwrap_or("")
    }

    /// Its fonts: name and bytes.
    pub(crate) fn fonts(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let fonts = self.files.iter().filter(|(name, _)| has_ending(name, FONT_ENDINGS));
        fonts.map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }
}

impl TryFrom<Files> for Bundle {
    type Error = String;

    fn try_from(files: Files) -> Result<Self, String> {
        Self::new(files).map_err(|mistakes| stampede_model::Diagnostic::join(&mistakes))
    }
}

impl From<Bundle> for Files {
    fn from(bundle: Bundle) -> Self {
        bundle.files
    }
}

fn mistake_in(name: &str, bytes: &[u8]) -> Option<Diagnostic> {
    let error = |message: &str| Some(Diagnostic::error(Some(name), message));
    if !is_plain_path(name) {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        return Some(
            Diagnostic::error(None, format!("{shown:?} is no name for a file of a bundle"))
                .hint("relative paths of letters, digits, . - _ and / are"),
        );
    }
    if RESERVED.contains(&name) {
        return error("this name belongs to Stampede: choose another");
    }
    if name.ends_with(".typ") {
        if bytes.len() > MOST_SOURCE_BYTES {
            return error("is larger than 1 MiB");
        }
        if std::str::from_utf8(bytes).is_err() {
            return error("is not a text in UTF-8");
        }
    }
    if has_ending(name, IMAGE_ENDINGS) {
        return match imagesize::blob_size(bytes) {
            Ok(size) if size.width.saturating_mul(size.height) > MOST_PIXELS => error(&format!(
                "the image has {} × {} pixels, more than 40 million",
                size.width, size.height
            )),
            Ok(_) => None,
            Err(_) => error("is not an image of this kind, or is damaged"),
        };
    }
    None
}

fn is_plain_path(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.split('/').all(|part| {
            !part.is_empty()
                && !part.starts_with('.')
                && !part.ends_with(' ')
                && part.chars().all(|c| c.is_alphanumeric() || ".-_ ".contains(c))
        })
}

fn has_ending(name: &str, endings: &[&str]) -> bool {
    let name = name.to_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(files: &[(&str, &[u8])]) -> String {
        let files =
            files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        Bundle::new(files)
            .map(|_| String::new())
            .unwrap_or_else(|all| stampede_model::Diagnostic::join(&all))
    }

    #[test]
    fn a_bundle_is_a_template_and_what_it_uses() {
        assert_eq!(
            mistakes(&[("template.typ", b"hi"), ("parts/head 2.typ", b""), ("a.txt", b"\xff")]),
            ""
        );
        assert!(mistakes(&[("other.typ", b"hi")]).contains("no template.typ"));
    }

    #[test]
    fn names_cannot_leave_the_bundle_or_replace_what_is_ours() {
        for name in ["../x", "/etc/passwd", "a//b", "a/../b", ".hidden", "a\0", "a\\b", "", "c:x"] {
            assert!(mistakes(&[("template.typ", b""), (name, b"")]).contains("no name"), "{name}");
        }
        assert!(
            mistakes(&[("template.typ", b""), ("qr.svg", b"")]).contains("belongs to Stampede")
        );
    }

    #[test]
    fn images_are_measured_before_they_are_unpacked() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        png.extend(60_000_u32.to_be_bytes());
        png.extend(60_000_u32.to_be_bytes());
        png.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert!(
            mistakes(&[("template.typ", b""), ("a.png", &png)]).contains("60000 × 60000 pixels")
        );
        assert!(mistakes(&[("template.typ", b""), ("a.png", b"no image")]).contains("damaged"));
    }

    #[test]
    fn sizes_and_counts_have_limits() {
        let large = vec![b' '; MOST_BYTES + 1];
        assert!(mistakes(&[("template.typ", b""), ("a.bin", &large)]).contains("more than"));
        let names: Vec<String> = (0..MOST_FILES + 1).map(|n| format!("{n}.txt")).collect();
        let mut files: Vec<(&str, &[u8])> =
            names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        files.push(("template.typ", b""));
        assert!(mistakes(&files).contains("102 files"));
    }
}
