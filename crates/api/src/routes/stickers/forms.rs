//! The bodies of orders of stickers.

use stampede_studio::{Format, Mistake, Order, Priority, Studio};

use super::MOST;
use crate::forms::{Given, List, Mistakes, Parsed, Payload, Text, form};
use crate::problem::Problem;
use crate::routes::campaigns::words::inline_word;

/// Longest text that is looked at, in bytes; the artist's own limits are narrower.
const LONGEST_TEXT: usize = 32 << 10;

inline_word! {
    /// The form of a sticker's file.
    FormatWord of Format {
        "webp" => Format::Webp,
        "png" => Format::Png,
        "tgs" => Format::Tgs,
    }
}

inline_word! {
    /// How urgent a sticker is.
    PriorityWord of Priority {
        "vip" => Priority::Vip,
        "normal" => Priority::Normal,
        "batch" => Priority::Batch,
    }
}

form! {
    /// `POST /api/stickers`.
    pub(crate) struct StickerForm {
        /// The text: at most 200 characters on at most 8 lines.
        text: Text<LONGEST_TEXT> = "text" required,
        /// How it looks: the name of a variant that ships, or a description of one; the first that ships if absent.
        variant: Payload = "variant",
        /// Several variants: the answer is JSON with links.
        variants: List<Payload, MOST> = "variants",
        /// `webp` (if absent), `png` or `tgs`.
        format: Parsed<FormatWord> = "format",
        /// `vip`, `normal` (if absent) or `batch`.
        priority: Parsed<PriorityWord> = "priority",
    }
}

form! {
    /// A sticker of a batch.
    pub(crate) struct StickerEntryForm {
        /// The text: at most 200 characters on at most 8 lines.
        text: Text<LONGEST_TEXT> = "text" required,
        /// How it looks: the name of a variant that ships, or a description of one; the first that ships if absent.
        variant: Payload = "variant",
        /// `webp` (if absent), `png` or `tgs`.
        format: Parsed<FormatWord> = "format",
    }
}

form! {
    /// `POST /api/stickers/batch`.
    pub(crate) struct StickerBatchForm {
        /// The stickers.
        stickers: List<StickerEntryForm, MOST> = "stickers" required,
        /// `vip`, `normal` (if absent) or `batch`.
        priority: Parsed<PriorityWord> = "priority",
    }
}

/// What a request wants.
pub(super) enum Wanted {
    /// A file.
    One(Order),
    /// Links to several.
    Several(Vec<Order>),
}

/// Reads the body of `POST /api/stickers`; all mistakes are told at once.
pub(super) fn read(studio: &Studio, form: StickerForm) -> Result<(Wanted, Priority), Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let several = form.variants.has_value();
    if several && form.variant.has_value() {
        mistakes.wrong("variants", "cannot be given beside variant");
    }
    let text = text(&mut mistakes, studio, form.text);
    let format = format(&mut mistakes, form.format);
    let priority = priority(&mut mistakes, form.priority);
    let wanted = if several {
        let variants = variants(&mut mistakes, studio, form.variants);
        let order = |(text, variants): (String, Vec<_>)| {
            let order = |variant| studio.order_of(text.clone(), variant, format);
            Wanted::Several(variants.into_iter().map(order).collect())
        };
        text.zip(variants).map(order)
    } else {
        let variant = variant(&mut mistakes, studio, form.variant);
        text.zip(variant).map(|(text, variant)| Wanted::One(studio.order_of(text, variant, format)))
    };
    mistakes.finish(wanted).map(|wanted| (wanted, priority))
}

/// Reads the body of `POST /api/stickers/batch`.
pub(super) fn read_batch(
    mistakes: &mut Mistakes,
    studio: &Studio,
    form: StickerBatchForm,
) -> (Option<Vec<Order>>, Priority) {
    let priority = priority(mistakes, form.priority);
    let Some(List(entries)) = mistakes.required(form.stickers) else { return (None, priority) };
    if entries.is_empty() {
        mistakes.wrong("stickers", "is empty");
    }
    let mut orders = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(form) => {
                let mut own = Mistakes::nested(format!("stickers[{index}]."));
                own.only(&form);
                let text = text(&mut own, studio, form.text);
                let variant = variant(&mut own, studio, form.variant);
                let format = format(&mut own, form.format);
                let order = |(text, variant)| studio.order_of(text, variant, format);
                orders.extend(text.zip(variant).map(order));
                mistakes.absorb(own);
            }
            Err(message) => mistakes.wrong_entry(&format!("stickers[{index}]"), message),
        }
    }
    (Some(orders), priority)
}

fn text(
    mistakes: &mut Mistakes,
    studio: &Studio,
    given: Given<Text<LONGEST_TEXT>>,
) -> Option<String> {
    let Text(text) = mistakes.required(given)?;
    noted(mistakes, "text", studio.text(&text))
}

fn variant(
    mistakes: &mut Mistakes,
    studio: &Studio,
    given: Given<Payload>,
) -> Option<stampede_studio::Variant> {
    if !given.has_value() {
        return Some(studio.usual_variant());
    }
    let variant = mistakes.value(given)?;
    noted(mistakes, "variant", studio.variant(&variant.value))
}

fn variants(
    mistakes: &mut Mistakes,
    studio: &Studio,
    given: Given<List<Payload, MOST>>,
) -> Option<Vec<stampede_studio::Variant>> {
    let List(entries) = mistakes.value(given)?;
    if entries.is_empty() {
        mistakes.wrong("variants", "is empty");
    }
    let mut variants = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let field = format!("variants[{index}]");
        match entry {
            Ok(entry) => variants.extend(noted(mistakes, &field, studio.variant(&entry.value))),
            Err(message) => mistakes.wrong_entry(&field, message),
        }
    }
    Some(variants)
}

fn format(mistakes: &mut Mistakes, given: Given<Parsed<FormatWord>>) -> Format {
    mistakes.value(given).map(|Parsed(FormatWord(format))| format).unwrap_or_default()
}

fn priority(mistakes: &mut Mistakes, given: Given<Parsed<PriorityWord>>) -> Priority {
    mistakes.value(given).map(|Parsed(PriorityWord(priority))| priority).unwrap_or_default()
}

/// The value; otherwise its mistake is noted under the field's name in the request.
fn noted<T>(mistakes: &mut Mistakes, field: &str, found: Result<T, Mistake>) -> Option<T> {
    match found {
        Ok(value) => Some(value),
        Err(mistake) => {
            mistakes.wrong(field, mistake.message);
            None
        }
    }
}
