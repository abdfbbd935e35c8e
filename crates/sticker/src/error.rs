//! Why there is no sticker. Every message says what to do.

use std::fmt;

use crate::studio::Format;

/// Clusters without a glyph that are named at most.
const MAX_NAMED: usize = 20;

/// Why a sticker cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty, or nothing of it would be seen.
    #[error("the text has nothing to draw; write at least one letter or emoji")]
    Empty,
    /// The text consists of combining marks.
    #[error("the text has only combining marks; write the letters that they belong to")]
    OnlyMarks,
    /// More graphemes than a sticker has.
    #[error("the text has more than {} characters; shorten it", crate::MAX_GRAPHEMES)]
    TooLong,
    /// One grapheme with more marks or joined parts than any language needs.
    #[error(
        "one character of the text is made of more than {} parts; remove marks or joiners from it",
        crate::text::MAX_PARTS
    )]
    TooManyParts,
    /// More line breaks than a sticker has lines.
    #[error("the text has {0} lines; use at most {max}", max = crate::MAX_LINES)]
    TooManyLines(usize),
    /// A character that controls devices and is not drawn.
    #[error("character {position} of the text is a control character (U+{code:04X}); remove it", code = *character as u32)]
    ControlCharacter {
        /// The character.
        character: char,
        /// Its place, counted from 1 in Unicode characters.
        position: usize,
    },
    /// Characters that no shipped font has.
    #[error("no font has a glyph for {0}; write it differently or leave it out")]
    UnknownGlyphs(Unknown),
    /// No shipped variant is called so.
    #[error("there is no variant {name:?}; {}", hint(*nearest, known))]
    UnknownVariant {
        /// The name, cut if it is long.
        name: String,
        /// The variant that was probably meant.
        nearest: Option<&'static str>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// A colour that is not written as `#rrggbb`.
    #[error("{0:?} is not a colour; write it as #rrggbb, for example #ff5f6d")]
    NotAColour(String),
    /// The sticker has more bytes than Telegram takes, even with fewer details.
    #[error(
        "the {format} sticker has {bytes} bytes even with fewer details, and at most {most} are allowed; use a shorter text or fewer different emoji"
    )]
    TooLarge {
        /// Which format.
        format: Format,
        /// How many bytes the smallest attempt had.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// A defect of this program, not of the text.
    #[error("the sticker could not be drawn: {0}; please report it with the text")]
    Defect(&'static str),
}

/// Parts of a text that no font has a glyph for, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub Vec<String>);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, cluster) in self.0.iter().take(MAX_NAMED).enumerate() {
            let codes: Vec<String> =
                cluster.chars().map(|c| format!("U+{:04X}", c as u32)).collect();
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{cluster} ({})", codes.join(" "))?;
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn hint(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(name) => format!("did you mean {name}?"),
        None => format!("use one of {}", known.join(", ")),
    }
}
