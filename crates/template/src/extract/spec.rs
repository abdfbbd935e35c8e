//! Reads what the prelude wrote about a field.
//!
//! A template could write the like itself, so nothing here trusts the shape: what does not fit is no field.

use stampede_render::compiled::{Align, Color};
use typst::foundations::{Dict, Value};

use super::fill::rgb;

/// What `field` says.
pub(super) struct TextSpec {
    pub(super) name: String,
    pub(super) align: Align,
    pub(super) min: f64,
    pub(super) lines: u32,
    pub(super) upper: bool,
    pub(super) families: Vec<String>,
    /// Whether a family is restricted to some characters.
    pub(super) has_coverage: bool,
    pub(super) tracking: f64,
    pub(super) features: Vec<([u8; 4], u32)>,
    pub(super) lang: String,
}

impl TextSpec {
    pub(super) fn read(dict: &Dict) -> Option<Self> {
        let align = match text(dict, "align")?.as_str() {
            "left" => Align::Left,
            "center" => Align::Center,
            "right" => Align::Right,
            _ => Align::Start,
        };
        let families = list(dict, "families");
        Some(Self {
            name: name(dict)?,
            align,
            min: number(dict, "min")?.clamp(0.05, 1.0),
            lines: (number(dict, "lines")? as u32).clamp(1, 20),
            upper: matches!(dict.get("upper"), Ok(Value::Bool(true))),
            has_coverage: families.iter().any(|family| !matches!(family, Value::Str(_))),
            families: families
                .into_iter()
                .filter_map(|family| match family {
                    Value::Str(name) => Some(name.to_string()),
                    _ => None,
                })
                .collect(),
            tracking: number(dict, "tracking")?,
            features: list(dict, "features").iter().filter_map(feature).collect(),
            lang: text(dict, "lang")?,
        })
    }
}

/// What `qr` says.
pub(super) struct CodeSpec {
    pub(super) name: String,
    pub(super) fill: Color,
    pub(super) background: Option<Color>,
}

impl CodeSpec {
    pub(super) fn read(dict: &Dict) -> Option<Self> {
        let color = |key| match dict.get(key) {
            Ok(Value::Color(color)) => Some(rgb(color).0),
            _ => None,
        };
        Some(Self { name: name(dict)?, fill: color("fill")?, background: color("background") })
    }
}

/// What `image-field` says.
pub(super) struct ImageSpec {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

impl ImageSpec {
    pub(super) fn read(dict: &Dict) -> Option<Self> {
        let values = list(dict, "values").into_iter().filter_map(|value| match value {
            Value::Str(text) => Some(text.to_string()),
            _ => None,
        });
        Some(Self { name: name(dict)?, values: values.collect() })
    }
}

/// The name of the value it shows.
pub(super) fn name(dict: &Dict) -> Option<String> {
    text(dict, "name")
}

fn text(dict: &Dict, key: &str) -> Option<String> {
    match dict.get(key) {
        Ok(Value::Str(text)) => Some(text.to_string()),
        _ => None,
    }
}

fn number(dict: &Dict, key: &str) -> Option<f64> {
    match dict.get(key) {
        Ok(Value::Int(number)) => Some(*number as f64),
        Ok(Value::Float(number)) if number.is_finite() => Some(*number),
        _ => None,
    }
}

fn list(dict: &Dict, key: &str) -> Vec<Value> {
    match dict.get(key) {
        Ok(Value::Array(array)) => array.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn feature(value: &Value) -> Option<([u8; 4], u32)> {
    let Value::Array(pair) = value else { return None };
    let mut pair = pair.iter();
    match (pair.next()?, pair.next()?) {
        (Value::Str(tag), Value::Int(on)) => {
            Some((tag.as_bytes().try_into().ok()?, u32::try_from(*on).ok()?))
        }
        _ => None,
    }
}
