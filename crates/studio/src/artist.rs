//! What draws. The room knows nothing of fonts and formats: it asks an [`Artist`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of a sticker's file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A picture, losslessly compressed.
    #[default]
    Webp,
    /// A picture.
    Png,
    /// An animation: Lottie, compressed with gzip.
    Tgs,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Webp, Self::Png, Self::Tgs];
    /// The words for them, which are also the ends of file names.
    pub const WORDS: [&'static str; 3] = ["webp", "png", "tgs"];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The format that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Webp => "image/webp",
            Self::Png => "image/png",
            Self::Tgs => "application/x-tgsticker",
        }
    }

    /// Whether bytes begin and end as a whole file of this format does. A power cut can leave a file cut or empty.
    pub(crate) fn is_whole(self, bytes: &[u8]) -> bool {
        match self {
            Self::Webp => {
                let length = bytes.get(4..8).and_then(|length| length.try_into().ok());
                let length = length.map(u32::from_le_bytes).unwrap_or_default() as usize;
                bytes.starts_with(b"RIFF") && bytes.len() == length + 8
            }
            Self::Png => {
                bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xae\x42\x60\x82")
            }
            // The last four bytes are the length of the content, which is never empty.
            Self::Tgs => {
                bytes.starts_with(b"\x1f\x8b") && bytes.len() > 18 && !bytes.ends_with(&[0; 4])
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be webp, png or tgs")]
pub struct NoFormat;

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(text: &str) -> Result<Self, NoFormat> {
        Self::from_word(text).ok_or(NoFormat)
    }
}

/// How a sticker looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The name under which it ships; `None`: somebody described it.
    pub name: Option<String>,
    /// Its description: all fields, in the order of their names.
    pub look: Value,
    /// The hash of the description.
    pub config_id: String,
}

/// Why a text was not drawn in a variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDrawn {
    /// It cannot be: what is wrong with the text, to be put after the field's name.
    #[error("{0}")]
    Impossible(String),
    /// A defect of the artist.
    #[error("{0}")]
    Defect(String),
}

/// Draws. Made in the thread that uses it.
pub trait Draw {
    /// The bytes of a sticker: always the same for the same input.
    fn draw(&mut self, text: &str, variant: &Variant, format: Format) -> Result<Vec<u8>, NotDrawn>;
}

/// Knows texts and variants, and makes drawers.
pub trait Artist: Send + Sync + 'static {
    /// Changes whenever the bytes of any sticker do.
    fn version(&self) -> u32;

    /// The text as it is drawn, or what is wrong with it, to be put after the field's name.
    fn text(&self, text: &str) -> Result<String, String>;

    /// The variants that ship; the first is the usual one. There is at least one.
    fn variants(&self) -> Vec<Variant>;

    /// The variant of this name or description, or what is wrong with it, to be put after the field's name.
    fn variant(&self, name_or_look: &Value) -> Result<Variant, String>;

    /// Makes a drawer: loads fonts, and draws something to warm up. A failure is a panic, which the pool reports.
    fn drawer(&self) -> Box<dyn Draw>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_or_empty_is_not_whole() {
        let webp = b"RIFF\x06\0\0\0WEBPVP".to_vec();
        let png = b"\x89PNG\r\n\x1a\n....\0\0\0\0IEND\xae\x42\x60\x82".to_vec();
        let tgs = [&b"\x1f\x8b"[..], &[8; 20], &[9, 1, 0, 0]].concat();
        for (format, whole) in [(Format::Webp, webp), (Format::Png, png), (Format::Tgs, tgs)] {
            assert!(format.is_whole(&whole), "{format}");
            assert!(!format.is_whole(&[]), "{format}");
            assert!(!format.is_whole(&vec![0; whole.len()]), "{format}");
            if format != Format::Tgs {
                assert!(!format.is_whole(&whole[..whole.len() - 1]), "{format}");
            }
        }
    }

    #[test]
    fn formats_are_words() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
        }
        assert_eq!("gif".parse::<Format>().unwrap_err().to_string(), "must be webp, png or tgs");
    }
}
