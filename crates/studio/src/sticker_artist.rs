//! The artist of the product: the crate `sticker`.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use stampede_sticker::{self as sticker, Text};

use crate::artist::{Artist, Draw, Format, NotDrawn, Variant};

/// Fonts that are parsed once and shared by all threads, or why they cannot be.
type Fonts = Arc<OnceLock<Result<sticker::Studio, sticker::Error>>>;

/// Draws with the crate `sticker`. Fonts are parsed when the first drawer is made.
#[derive(Default)]
pub struct StickerArtist {
    fonts: Fonts,
}

impl Artist for StickerArtist {
    fn version(&self) -> u32 {
        sticker::VERSION
    }

    fn text(&self, text: &str) -> Result<String, String> {
        Text::new(text).map(|text| text.as_str().to_owned()).map_err(|error| told(&error))
    }

    fn variants(&self) -> Vec<Variant> {
        sticker::shipped().iter().map(shipped).collect()
    }

    fn variant(&self, name_or_look: &Value) -> Result<Variant, String> {
        match name_or_look {
            Value::String(name) => {
                sticker::by_name(name).map(shipped).map_err(|error| unknown(&error))
            }
            Value::Object(_) => {
                let variant: sticker::Variant = serde_json::from_value(name_or_look.clone())
                    .map_err(|error| format!("describes no variant: {error}"))?;
                Ok(described(None, &variant))
            }
            _ => Err("must be the name of a variant, or an object that describes one".to_owned()),
        }
    }

    fn drawer(&self) -> Box<dyn Draw> {
        let fonts = self.fonts.clone();
        if let Err(error) = fonts.get_or_init(sticker::Studio::new) {
            panic!("{error}");
        }
        Box::new(Drawer { fonts })
    }
}

fn shipped(shipped: &sticker::Shipped) -> Variant {
    described(Some(shipped.name.to_owned()), &shipped.variant)
}

fn described(name: Option<String>, variant: &sticker::Variant) -> Variant {
    // A struct of words and colours always serialises.
    let look = serde_json::to_value(variant).unwrap_or_default();
    Variant { name, look, config_id: variant.config_id() }
}

/// Draws with the shared fonts.
struct Drawer {
    fonts: Fonts,
}

impl Draw for Drawer {
    fn draw(&mut self, text: &str, variant: &Variant, format: Format) -> Result<Vec<u8>, NotDrawn> {
        let defect = |reason: &str| NotDrawn::Defect(format!("a sticker was not drawn: {reason}"));
        let Some(Ok(studio)) = self.fonts.get() else { return Err(defect("there are no fonts")) };
        let text = Text::new(text).map_err(|error| NotDrawn::Impossible(told(&error)))?;
        let variant = serde_json::from_value(variant.look.clone())
            .map_err(|error| defect(&error.to_string()))?;
        let format = match format {
            Format::Webp => sticker::Format::Webp,
            Format::Png => sticker::Format::Png,
            Format::Tgs => sticker::Format::Tgs,
        };
        studio.draw(&text, &variant, format).map_err(|error| match error {
            sticker::Error::Defect(reason) => defect(reason),
            error => NotDrawn::Impossible(told(&error)),
        })
    }
}

/// A message about an unknown name, to be put after the field's name.
fn unknown(error: &sticker::Error) -> String {
    let message = error.to_string();
    let parts = message.strip_prefix("there is no variant ").and_then(|it| it.rsplit_once("; "));
    match parts {
        Some((name, hint)) => format!("{name} is not one that ships; {hint}"),
        None => message,
    }
}

/// A message about a text, to be put after the field's name.
fn told(error: &sticker::Error) -> String {
    let message = error.to_string();
    match message.strip_prefix("the text ") {
        Some(rest) => rest.to_owned(),
        None => format!("cannot be drawn: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shipped_variants_are_known_by_name_and_by_description() {
        let artist = StickerArtist::default();
        let variants = artist.variants();
        assert_eq!(variants.len(), 8);
        for variant in variants {
            let by_name = artist.variant(&json!(variant.name)).unwrap();
            assert_eq!(by_name, variant);
            let by_look = artist.variant(&variant.look).unwrap();
            assert_eq!((by_look.config_id, by_look.look), (variant.config_id, variant.look));
        }
        for (wrong, told) in [
            (json!("noen"), "\"noen\" is not one that ships; did you mean neon?"),
            (json!({ "palette": "red" }), "describes no variant: "),
            (json!(7), "must be the name of a variant"),
        ] {
            let message = artist.variant(&wrong).unwrap_err();
            assert!(message.contains(told), "{message}");
        }
    }

    #[test]
    fn mistakes_are_told_after_the_name_of_the_field() {
        let artist = StickerArtist::default();
        assert!(artist.text(" ").unwrap_err().starts_with("has nothing to draw"));
        let control = artist.text("a\u{7}").unwrap_err();
        assert!(control.starts_with("cannot be drawn: character 2 of the text"), "{control}");
        assert_eq!(artist.text("  Hello ").unwrap(), "Hello");
    }

    #[test]
    fn a_text_is_drawn_in_every_format_and_the_files_are_whole() {
        let artist = StickerArtist::default();
        let mut drawer = artist.drawer();
        let variant = &artist.variants()[2];
        for format in Format::ALL {
            let drawn = drawer.draw("Hello 👋", variant, format).unwrap();
            assert!(format.is_whole(&drawn), "{format}");
            assert_eq!(drawn, artist.drawer().draw("Hello 👋", variant, format).unwrap());
        }
        let unknown = drawer.draw("\u{13000}", variant, Format::Tgs).unwrap_err();
        assert!(matches!(unknown, NotDrawn::Impossible(_)), "{unknown}");
    }
}
