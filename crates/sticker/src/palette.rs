//! Colours of a variant, written as `#rrggbb`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A colour without transparency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Colour {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

/// The colours of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Palette {
    /// Letters.
    pub ink: Colour,
    /// Where a gradient ends.
    pub accent: Colour,
    /// The outline.
    pub outline: Colour,
    /// Shadow or glow.
    pub shadow: Colour,
    /// Bubble or ribbon.
    pub shape: Colour,
}

impl Colour {
    /// The colour of three bytes: `0xff5f6d`.
    pub const fn of(code: u32) -> Self {
        Self { red: (code >> 16) as u8, green: (code >> 8) as u8, blue: code as u8 }
    }

    /// The colour, darkened: 0 is black, 1 leaves it as it is.
    pub(crate) fn shaded(self, light: f32) -> Self {
        let part = |value: u8| (f32::from(value) * light).round() as u8;
        Self { red: part(self.red), green: part(self.green), blue: part(self.blue) }
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> Self {
        colour.to_string()
    }
}

impl FromStr for Colour {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::NotAColour(text.chars().take(20).collect());
        let digits = text.strip_prefix('#').ok_or_else(wrong)?;
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u32::from_str_radix(digits, 16).map(Self::of).map_err(|_| wrong())
    }
}

impl TryFrom<String> for Colour {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_written_as_six_digits() {
        assert_eq!("#FF5f6d".parse::<Colour>().unwrap(), Colour::of(0xff5f6d));
        assert_eq!(Colour::of(0x00ff0a).to_string(), "#00ff0a");
        for wrong in ["", "red", "#fff", "ff5f6d", "#ff5f6g", "#+f5f6d", "#ff5f6d00"] {
            assert_eq!(wrong.parse::<Colour>(), Err(Error::NotAColour(wrong.to_owned())));
        }
    }
}
