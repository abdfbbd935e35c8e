//! What would go wrong with a ticket on paper, before it is made.

use std::fmt;

use crate::compiled::{FieldKind, TextField};
use crate::draw::{Values, chosen, shown};
use crate::prepared::Prepared;
use crate::qr::{Encoder, QUIET_ZONE};
use crate::text::clean::loses_text;
use crate::text::fit::{Fitted, fit};
use crate::text::runs::is_ignorable;
use crate::text::shape::{Setting, Shaper, Workshop};

/// Smallest module of a QR code that phones read from paper reliably: four dots of a printer with
/// 300 dots per inch.
pub const MIN_MODULE_MM: f32 = 0.33;
const MM_PER_POINT: f32 = 25.4 / 72.0;
/// Missing characters that are named at most.
const MAX_NAMED: usize = 20;

/// Something that an organiser would want to know before tickets are printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// No font of the field has these characters: boxes are drawn in their place.
    MissingGlyphs {
        /// Name of the field.
        field: String,
        /// Each of them once, in the order of the text.
        characters: String,
    },
    /// The text is cut, even at its smallest size.
    DoesNotFit {
        /// Name of the field.
        field: String,
    },
    /// The text is longer than any that is set, or has more marks on a letter.
    TooLong {
        /// Name of the field.
        field: String,
    },
    /// The QR code's modules are too small to be read from paper.
    CodeTooSmall {
        /// Name of the field.
        field: String,
        /// Side of a module in millimetres.
        module_mm: f32,
    },
    /// No QR code holds the text: the ticket cannot be made.
    CodeTooLong {
        /// Name of the field.
        field: String,
    },
    /// The template has no image for the value: nothing is drawn.
    UnknownImage {
        /// Name of the field.
        field: String,
        /// The value.
        value: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingGlyphs { field, characters } => {
                write!(f, "the field {field:?} has characters that no font of the template has:")?;
                for c in characters.chars() {
                    write!(f, " {c} (U+{:04X})", c as u32)?;
                }
                write!(
                    f,
                    "; boxes are printed in their place. Write them differently, or add a font that has them to the template"
                )
            }
            Self::DoesNotFit { field } => write!(
                f,
                "the text of {field:?} does not fit its box even at its smallest size and is cut. Shorten it, or allow a smaller size or more lines in the template"
            ),
            Self::TooLong { field } => write!(
                f,
                "the text of {field:?} is too long or has too many marks on one letter; only a part of it is printed. Shorten it"
            ),
            Self::CodeTooSmall { field, module_mm } => write!(
                f,
                "the modules of the QR code {field:?} are {module_mm:.2} mm wide; phones need at least {MIN_MODULE_MM} mm on paper. Make the code larger in the template"
            ),
            Self::CodeTooLong { field } => {
                write!(f, "the value of {field:?} is too long for any QR code. Shorten it")
            }
            Self::UnknownImage { field, value } => write!(
                f,
                "the template has no image for the value {value:?} of {field:?}; nothing is printed there. Add the image, or use one of its values"
            ),
        }
    }
}

/// All warnings for one ticket, in the order of the fields.
pub fn preflight(template: &Prepared, values: &Values<'_>) -> Vec<Warning> {
    Preflight::new(template).check(values)
}

/// Checks many tickets of a template; keeps memory and shaping plans from one to the next.
pub struct Preflight<'a> {
    template: &'a Prepared,
    workshop: Workshop,
    fitted: Fitted,
    encoder: Encoder,
}

impl<'a> Preflight<'a> {
    /// A check for the tickets of this template.
    pub fn new(template: &'a Prepared) -> Self {
        Self {
            template,
            workshop: Workshop::default(),
            fitted: Fitted::default(),
            encoder: Encoder::new(),
        }
    }

    /// All warnings for one ticket, in the order of the fields.
    pub fn check(&mut self, values: &Values<'_>) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (index, entry) in self.template.stamped.fields.iter().enumerate() {
            let Some(value) = values.get(&entry.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let field = || entry.name.clone();
            match &entry.kind {
                FieldKind::Text(text) => {
                    if let Some(setting) = &self.template.settings[index] {
                        self.check_text(&entry.name, text, setting, value, &mut warnings);
                    }
                }
                FieldKind::Qr { side, .. } => match self.encoder.encode(value) {
                    Ok(symbol) => {
                        // A transform may shrink the square; the smaller of its sides counts.
                        let [a, b, c, d, ..] = entry.transform;
                        let scale = a.hypot(b).min(c.hypot(d));
                        let modules = (symbol.size() + 2 * QUIET_ZONE) as f32;
                        let module_mm = side * scale / modules * MM_PER_POINT;
                        if module_mm < MIN_MODULE_MM {
                            warnings.push(Warning::CodeTooSmall { field: field(), module_mm });
                        }
                    }
                    Err(_) => warnings.push(Warning::CodeTooLong { field: field() }),
                },
                FieldKind::Image { choices, .. } => {
                    if chosen(choices, value).is_none() {
                        let value = value.to_owned();
                        warnings.push(Warning::UnknownImage { field: field(), value });
                    }
                }
            }
        }
        warnings
    }

    fn check_text(
        &mut self,
        name: &str,
        field: &TextField,
        setting: &Setting,
        value: &str,
        warnings: &mut Vec<Warning>,
    ) {
        if loses_text(value) {
            warnings.push(Warning::TooLong { field: name.to_owned() });
        }
        let text = shown(field, value);
        if text.is_empty() {
            return;
        }
        let mut shaper = Shaper::new(&mut self.workshop, &self.template.faces);
        fit(&mut shaper, setting, field, &text, &mut self.fitted);
        let characters = self.missing(&text, setting);
        if !characters.is_empty() {
            warnings.push(Warning::MissingGlyphs { field: name.to_owned(), characters });
        }
        if self.fitted.cut {
            warnings.push(Warning::DoesNotFit { field: name.to_owned() });
        }
    }

    /// Characters in clusters that were shaped to `.notdef`, and that no font has. A cluster whose
    /// characters are in several fonts, but together in none, counts with those its font lacks.
    fn missing(&self, text: &str, setting: &Setting) -> String {
        let mut missing = String::new();
        let mut add = |c: char| {
            if !is_ignorable(c) && !missing.contains(c) && missing.chars().count() < MAX_NAMED {
                missing.push(c);
            }
        };
        for glyph in self.fitted.glyphs.iter().filter(|glyph| glyph.glyph == 0) {
            let range = glyph.start as usize..glyph.end as usize;
            let face = &self.template.faces[usize::from(glyph.face)];
            let cluster = self.fitted.text.get(range).unwrap_or_default();
            cluster.chars().filter(|&c| !face.has(c)).for_each(&mut add);
        }
        if self.fitted.cut {
            // What was cut off was not shaped.
            let known = |c: char| {
                let has = |&font: &u16| {
                    self.template.faces.get(usize::from(font)).is_some_and(|face| face.has(c))
                };
                setting.fonts().iter().any(has)
            };
            text.chars().filter(|&c| !known(c)).for_each(&mut add);
        }
        missing
    }
}
