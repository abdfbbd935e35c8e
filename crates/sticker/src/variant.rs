//! A variant: everything about a sticker but its text.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Palette;

/// The design of a sticker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its colours.
    pub palette: Palette,
    /// How letters are filled; with a shape, how the shape is.
    pub fill: Fill,
    /// The line around letters; with a shape, around the shape.
    pub outline: Outline,
    /// What lies below everything.
    pub shadow: Shadow,
    /// What the text stands on.
    pub shape: Shape,
    /// The weight of letters.
    pub font: Font,
    /// How an animated sticker moves.
    pub animation: Animation,
}

/// How letters are filled; with a shape, how the shape is: the letters on it have one colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// With one colour.
    Solid,
    /// From `ink` (or `shape`) to `accent`.
    Gradient,
}

/// The line around letters or shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outline {
    /// None.
    None,
    /// A thin one.
    Thin,
    /// A thick one, as cut out of paper.
    Thick,
}

/// What lies below everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shadow {
    /// Nothing.
    None,
    /// A soft shadow.
    Soft,
    /// A second cut-out, moved down and to the right.
    Hard,
    /// Light around the letters.
    Glow,
}

/// What the text stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Nothing.
    None,
    /// A speech bubble.
    Bubble,
    /// A ribbon with folded ends.
    Ribbon,
}

/// The weight of letters. Scripts that have fewer weights take the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Font {
    /// 400.
    Regular,
    /// 500.
    Medium,
    /// 600.
    SemiBold,
    /// 800.
    ExtraBold,
}

/// How an animated sticker moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Animation {
    /// Not at all.
    None,
    /// Letters hop, one after the other.
    Bounce,
    /// A wave runs through the letters.
    Wave,
    /// Everything beats like a heart.
    Pulse,
    /// Everything shakes.
    Shake,
    /// Letters appear as if they were typed.
    Type,
    /// Everything fades away and returns.
    Fade,
}

impl Variant {
    /// The variant as JSON with sorted keys and no spaces: equal variants give equal texts.
    pub fn canonical_json(&self) -> String {
        // serde_json sorts the keys of a `Value`, and a plain struct cannot fail.
        serde_json::to_value(self).map(|value| value.to_string()).unwrap_or_default()
    }

    /// Names the design: the first 32 digits of the SHA-256 of [`Variant::canonical_json`].
    pub fn config_id(&self) -> String {
        let mut id = hex::encode(Sha256::digest(self.canonical_json()));
        id.truncate(32);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{by_name, shipped};

    #[test]
    fn the_id_depends_on_the_values_only() {
        let classic = by_name("classic").unwrap().variant;
        let json = classic.canonical_json();
        assert!(
            json.starts_with(
                r##"{"animation":"bounce","fill":"gradient","font":"extra-bold","outline""##
            ),
            "{json}"
        );
        let mut fields: Vec<String> = Vec::new();
        let serde_json::Value::Object(object) = serde_json::to_value(classic).unwrap() else {
            panic!()
        };
        for (name, value) in object.iter().rev() {
            fields.push(format!("{name:?} : {value}"));
        }
        let reordered: Variant =
            serde_json::from_str(&format!("{{ {} }}", fields.join(" , "))).unwrap();
        assert_eq!(reordered.config_id(), classic.config_id());
        assert_eq!(classic.config_id().len(), 32);
        let other = Variant { shadow: Shadow::Hard, ..classic };
        assert_ne!(other.config_id(), classic.config_id());
    }

    #[test]
    fn every_shipped_variant_has_an_id_of_its_own_and_survives_json() {
        let mut ids = Vec::new();
        for shipped in shipped() {
            let json = serde_json::to_string(&shipped.variant).unwrap();
            assert_eq!(serde_json::from_str::<Variant>(&json).unwrap(), shipped.variant);
            ids.push(shipped.variant.config_id());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 8);
    }

    #[test]
    fn unknown_and_wrong_fields_are_refused() {
        let good = serde_json::to_value(by_name("neon").unwrap().variant).unwrap();
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = good.clone();
            change(&mut value);
            serde_json::from_value::<Variant>(value).unwrap_err().to_string()
        };
        assert!(refused(&|value| value["colour"] = 1.into()).contains("unknown field `colour`"));
        assert!(
            refused(&|value| value["palette"]["glow"] = "#000000".into())
                .contains("unknown field `glow`")
        );
        assert!(
            refused(&|value| value["animation"] = "spin".into()).contains("unknown variant `spin`")
        );
        assert!(
            refused(&|value| value["palette"]["ink"] = "red".into())
                .contains("write it as #rrggbb")
        );
        assert!(refused(&|value| *value = serde_json::json!({})).contains("missing field"));
    }
}
