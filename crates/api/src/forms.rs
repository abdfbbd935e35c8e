//! Forms: the bodies of requests as types. A body is read straight into its form, without a tree of JSON values.
//!
//! | file | holds |
//! |---|---|
//! | `form.rs` | `form!`, which declares a form; the reader of its fields |
//! | `given.rs` | one field of a form: absent, `null`, a value, or a mistake |
//! | `parts.rs` | the types of fields: lines of text, numbers, amounts, ids, lists |
//! | `payload.rs` | any JSON, as the payload of a job |
//! | `reading.rs` | the limits of one reading, and the memory it may take |
//! | `mistakes.rs` | the mistakes of a form, each with its field |
//! | `schema.rs` | the schemas of forms, for the description of the API |
//! | `texts.rs` | numbers with a fraction, objects of texts |
//! | `skip.rs` | values that are read over |
//! | `canonical.rs` | the text of a body whose fields are sorted, for idempotency keys |
//!
//! A wrong value does not end the reading: it becomes a mistake in its field, so that a client learns all mistakes at
//! once. An unknown field is kept as a name. What a value must be is in its type: the description of the
//! API is made from the forms.

mod canonical;
mod form;
mod given;
mod mistakes;
mod parts;
mod payload;
mod reading;
mod schema;
mod skip;
mod texts;

pub(crate) use canonical::canonical;
pub(crate) use form::{Changes, Form, Unknown, form, is_set, read_form};
pub(crate) use given::{Given, Seed, State};
pub(crate) use mistakes::Mistakes;
pub(crate) use parts::{
    Amount, Contact, Email, Flag, IdOf, Line, List, Parsed, Part, Quantity, Text, Whole,
    inline_schema,
};
pub(crate) use payload::Payload;
pub(crate) use reading::{Reading, ReadingLimits, parse};
pub(crate) use schema::{Field, form_schema};
pub(crate) use skip::{Skip, skip_list, skip_object};
pub(crate) use texts::{Decimal, Texts, text};
