//! What is ordered: a checked text, a variant, a format; and the name that follows from them.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Studio;
use crate::artist::{Format, Variant};

/// The hash of everything that the bytes of a sticker depend on: the version of the artist, text, variant and format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    fn of(version: u32, text: &str, variant: &Variant, format: Format) -> Self {
        let mut hash = Sha256::new();
        hash.update(version.to_le_bytes());
        for part in [text, &variant.look.to_string(), format.as_str()] {
            // With its length: no two lists of parts have the same bytes.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of a sticker: its key and its format, such as `3f…9c.webp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StickerName {
    /// The key.
    pub key: Key,
    /// The format.
    pub format: Format,
}

impl StickerName {
    /// The name of its file, with the folder.
    pub fn file(&self) -> String {
        let key = self.key.to_string();
        format!("stickers/{}/{key}.{}", &key[..2], self.format)
    }

    /// The path under which the API answers with it.
    pub fn path(&self) -> String {
        format!("/api/stickers/{self}")
    }
}

impl fmt::Display for StickerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.key, self.format)
    }
}

/// A text that is the name of no sticker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not the name of a sticker")]
pub struct NoName;

impl FromStr for StickerName {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let (key, format) = text.split_once('.').ok_or(NoName)?;
        // Each sticker has one name: upper case would be another.
        if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(NoName);
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(key, &mut bytes).map_err(|_| NoName)?;
        let format = Format::from_word(format).ok_or(NoName)?;
        Ok(Self { key: Key(bytes), format })
    }
}

/// A sticker that can be drawn, as far as can be told without drawing it.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The text as it is drawn.
    pub text: String,
    /// How it looks.
    pub variant: Variant,
    /// The name that follows from text, variant and format.
    pub name: StickerName,
}

/// What is wrong with one field of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The field.
    pub field: &'static str,
    /// What is wrong, to be put after the field's name.
    pub message: String,
}

impl Mistake {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

impl Studio {
    /// The order for a text in a variant, by name or description; `None`: the usual one. All mistakes are told at once.
    pub fn order(
        &self,
        text: &str,
        variant: Option<&Value>,
        format: Format,
    ) -> Result<Order, Vec<Mistake>> {
        let text = self.text(text);
        let variant = match variant {
            Some(variant) => self.variant(variant),
            None => Ok(self.usual_variant()),
        };
        match (text, variant) {
            (Ok(text), Ok(variant)) => Ok(self.order_of(text, variant, format)),
            (text, variant) => Err(text.err().into_iter().chain(variant.err()).collect()),
        }
    }

    /// The text as it is drawn.
    pub fn text(&self, text: &str) -> Result<String, Mistake> {
        self.artist().text(text).map_err(|message| Mistake::new("text", message))
    }

    /// The variant of this name or description.
    pub fn variant(&self, variant: &Value) -> Result<Variant, Mistake> {
        self.artist().variant(variant).map_err(|message| Mistake::new("variant", message))
    }

    /// The variant of orders that name none.
    pub fn usual_variant(&self) -> Variant {
        let nothing = || Variant { name: None, look: Value::Null, config_id: String::new() };
        self.artist().variants().into_iter().next().unwrap_or_else(nothing)
    }

    /// The order of a checked text and variant.
    pub fn order_of(&self, text: String, variant: Variant, format: Format) -> Order {
        let key = Key::of(self.artist().version(), &text, &variant, format);
        Order { text, variant, name: StickerName { key, format } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variant(look: Value) -> Variant {
        Variant { name: None, look, config_id: String::new() }
    }

    #[test]
    fn a_key_depends_on_everything_that_the_bytes_depend_on() {
        let (red, blue) = (variant(json!({ "fill": "red" })), variant(json!({ "fill": "blue" })));
        let key = Key::of(1, "Hello", &red, Format::Webp);
        assert_eq!(key, Key::of(1, "Hello", &red, Format::Webp));
        // The name of a variant is not its look.
        let named = Variant { name: Some("neon".to_owned()), ..red.clone() };
        assert_eq!(key, Key::of(1, "Hello", &named, Format::Webp));
        for other in [
            Key::of(2, "Hello", &red, Format::Webp),
            Key::of(1, "Hello!", &red, Format::Webp),
            Key::of(1, "Hello", &blue, Format::Webp),
            Key::of(1, "Hello", &red, Format::Tgs),
            Key::of(1, "", &red, Format::Webp),
        ] {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn a_sticker_has_one_name() {
        let key = Key::of(1, "Hello", &variant(json!({})), Format::Tgs);
        let name = StickerName { key, format: Format::Tgs };
        let text = name.to_string();
        assert_eq!(text.parse(), Ok(name));
        assert_eq!(name.file(), format!("stickers/{}/{text}", &text[..2]));
        assert_eq!(name.path(), format!("/api/stickers/{text}"));
        for wrong in [
            text.to_uppercase(),
            text.replace("tgs", "TGS"),
            text.replace("tgs", "gif"),
            text[1..].to_owned(),
            format!("{text}.tgs"),
            format!("../{text}"),
            "variants".to_owned(),
            String::new(),
        ] {
            assert_eq!(wrong.parse::<StickerName>(), Err(NoName), "{wrong}");
        }
    }
}
