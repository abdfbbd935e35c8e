//! Drawing the fields of a ticket: the part that single and merged PDFs have in common.

use crate::compiled::{Align, Field, FieldKind, ImageChoice, TextField};
use crate::error::Error;
use crate::pdf::content::{Glyphs, TextLine};
use crate::pdf::shapes;
use crate::prepared::Prepared;
use crate::qr::{Encoder, Symbol};
use crate::text::clean;
use crate::text::fit::{Fitted, fit};
use crate::text::shape::{Shaper, Workshop};

/// What a ticket says.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// Id of the ticket; also the value of a field named `id` that is not in the list.
    pub id: &'a str,
    /// Names of fields with their values; a field that is absent or empty draws nothing.
    pub fields: &'a [(&'a str, &'a str)],
}

impl<'a> Values<'a> {
    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let listed = self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
        listed.or_else(|| (name == "id").then_some(self.id))
    }
}

/// What the fields of a ticket draw, and the memory for it.
pub(crate) struct Drawing {
    /// By page.
    pub(crate) contents: Vec<Vec<u8>>,
    /// Which glyphs were drawn. Not forgotten by [`Self::draw`]: tickets may share fonts.
    pub(crate) glyphs: Glyphs,
    workshop: Workshop,
    encoder: Encoder,
    symbol: Symbol,
    /// Texts fitted of late, by field.
    recent: Vec<Recent>,
}

/// The texts a field showed last: neighbours often have the price or the section in common, and
/// shaping is the dearest part of a ticket.
#[derive(Default)]
struct Recent {
    fitted: [Fitted; RECENT],
    next: usize,
}

/// Texts remembered for each field.
const RECENT: usize = 2;

impl Recent {
    /// The text as it is fitted into its box.
    fn get(&mut self, text: &str, fit: impl FnOnce(&mut Fitted)) -> &Fitted {
        let known = self.fitted.iter().position(|fitted| fitted.of == text);
        let index = known.unwrap_or_else(|| {
            let oldest = self.next;
            self.next = (oldest + 1) % RECENT;
            fit(&mut self.fitted[oldest]);
            oldest
        });
        &self.fitted[index]
    }
}

impl Default for Drawing {
    fn default() -> Self {
        Self {
            contents: Vec::new(),
            glyphs: Glyphs::default(),
            workshop: Workshop::default(),
            encoder: Encoder::new(),
            symbol: Symbol::empty(),
            recent: Vec::new(),
        }
    }
}

impl Drawing {
    /// Draws all fields. Always to be called with the same template.
    pub(crate) fn draw(&mut self, template: &Prepared, values: &Values<'_>) -> Result<(), Error> {
        self.contents.resize_with(template.pages.len(), Vec::new);
        for content in &mut self.contents {
            content.clear();
        }
        self.recent.resize_with(template.stamped.fields.len(), Recent::default);
        let mut shaper = Shaper::new(&mut self.workshop, &template.faces);
        for (index, field) in template.stamped.fields.iter().enumerate() {
            let Some(value) = values.get(&field.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let height = template.stamped.pages[field.page as usize].height;
            let out = &mut self.contents[field.page as usize];
            match &field.kind {
                FieldKind::Text(text) => {
                    let value = shown(text, value);
                    let Some(setting) = &template.settings[index] else { continue };
                    if value.is_empty() {
                        continue;
                    }
                    let fitted = self.recent[index]
                        .get(&value, |out| fit(&mut shaper, setting, text, &value, out));
                    out.extend_from_slice(b"q ");
                    shapes::fill(out, &text.fill, template.resources[index].opacity);
                    draw_text(template, field, text, height, fitted, &mut self.glyphs, out);
                    out.extend_from_slice(b"Q\n");
                }
                FieldKind::Qr { side, fill, background } => {
                    self.encoder
                        .encode_into(value, &mut self.symbol)
                        .map_err(|_| Error::CodeTooLong { field: field.name.clone() })?;
                    let background = background.as_ref();
                    shapes::code(
                        out,
                        &self.symbol,
                        &field.transform,
                        height,
                        *side,
                        fill,
                        background,
                    );
                }
                FieldKind::Image { width, height: box_height, choices } => {
                    if let Some(choice) = chosen(choices, value) {
                        let name = template.resources[index].first_image + choice;
                        let pixels = (choices[choice].width, choices[choice].height);
                        let size = (*width, *box_height);
                        shapes::image(out, name, pixels, &field.transform, height, size);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Which image a value chooses; an empty choice stands for all values that have none of their own.
pub(crate) fn chosen(choices: &[ImageChoice], value: &str) -> Option<usize> {
    let find = |value| choices.iter().position(|choice| choice.value == value);
    find(value).or_else(|| find(""))
}

/// The text of a value as a field shows it.
pub(crate) fn shown<'a>(field: &TextField, value: &'a str) -> std::borrow::Cow<'a, str> {
    let value = clean(value);
    if field.upper { value.to_uppercase().into() } else { value }
}

fn draw_text(
    template: &Prepared,
    field: &Field,
    text: &TextField,
    page_height: f32,
    fitted: &Fitted,
    glyphs: &mut Glyphs,
    out: &mut Vec<u8>,
) {
    for (index, line) in fitted.lines.iter().enumerate() {
        let room = text.width - line.width;
        let x = match text.align {
            Align::Left => 0.0,
            Align::Right => room,
            Align::Center => room / 2.0,
            Align::Start if fitted.leftwards => room,
            Align::Start => 0.0,
        };
        TextLine {
            faces: &template.faces,
            transform: &field.transform,
            page_height,
            x,
            y: index as f32 * text.line_height * fitted.size,
            size: fitted.size,
            text: &fitted.text,
            glyphs: &fitted.glyphs[line.glyphs.clone()],
        }
        .draw(glyphs, out);
    }
}
