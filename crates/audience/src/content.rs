//! The texts that recipients get: templates in Liquid, checked when they are saved and filled for every recipient.
//!
//! ```text
//! source ──scan.rs──▶ tags, fields, all mistakes with line and column ──▶ safe source ──▶ liquid ──▶ Compiled ──▶ Filled
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `compile.rs` | the parts of one template, and which of them a channel needs |
//! | `known.rs` | all mistakes of a template, fields that no recipient has among them |
//! | `scan.rs` | the guard, and pieces of a template: texts, outputs, tags |
//! | `tokens.rs` | the words inside of one output or tag |
//! | `grammar.rs` | which outputs and tags there are; writes them for the crate `liquid` |
//! | `html.rs` | the places in HTML at which a field would be code or an address |
//! | `filters.rs` | `truncate`, and the escaping of HTML |
//!
//! The language is Liquid without loops, assignments and includes, so time and memory follow from the length of template and
//! fields: blocks `if unless case comment raw`, filters `default upcase downcase capitalize truncate date strip`.
//!
//! The crate `liquid` never sees what people wrote, only what `grammar.rs` writes from checked tokens. The reasons: its parser
//! overflows the stack on deep nesting, its names are ASCII only (columns are called `имя`, too), it knows no line of a field,
//! and it takes an empty text for true. Fields are texts: a field that is empty or absent is false in a condition.

mod compile;
mod filters;
mod grammar;
mod html;
mod known;
mod scan;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use liquid::model::{Object, Value};

use stampede_model::campaign::{Channel, Template};

use self::compile::compile;
pub use self::known::check_template;
use crate::visible::{is_blank, visible};

/// Most outputs and tags of one part of a template.
pub const MOST_TAGS: usize = 200;
/// Longest part of a template, in bytes.
pub const LONGEST_TEMPLATE: usize = 64 << 10;
/// Most values of a WhatsApp template.
const MOST_VALUES: usize = 50;

/// Fields that every recipient has.
pub const BUILT_INS: [&str; 3] = ["address", "ticketUrl", "unsubscribeUrl"];

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The part: `subject`, `text`, `html`, `whatsappValues[0]`.
    pub part: String,
    /// The line, from 1; 0: the mistake is about the whole part.
    pub line: usize,
    /// The character in the line, from 1; 0: the mistake is about the whole part.
    pub column: usize,
    /// What is wrong, and what to do.
    pub message: String,
    /// The name that was probably meant.
    pub nearest: Option<String>,
}

/// Values of the fields that every recipient has. They go before fields of a file with the same name.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIns<'v> {
    /// The recipient's address.
    pub address: &'v str,
    /// Where the recipient's ticket is.
    pub ticket_url: Option<&'v str>,
    /// Where the recipient says stop.
    pub unsubscribe_url: Option<&'v str>,
}

impl<'v> BuiltIns<'v> {
    /// The value of a built-in field; `None`: the name is that of another field.
    fn get(&self, name: &str) -> Option<&'v str> {
        match name {
            "address" => Some(self.address),
            "ticketUrl" => Some(self.ticket_url.unwrap_or_default()),
            "unsubscribeUrl" => Some(self.unsubscribe_url.unwrap_or_default()),
            _ => None,
        }
    }
}

/// A filled template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled {
    /// The subject, on one line.
    pub subject: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The text as HTML.
    pub html: Option<String>,
    /// The values of a WhatsApp template, each on one line.
    pub whatsapp_values: Vec<String>,
}

/// Why a template could not be filled for one recipient.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFilled {
    /// The part has no visible character: providers refuse it.
    #[error("{part} is empty for this recipient")]
    Empty {
        /// The part.
        part: String,
    },
    /// The template itself could not be filled.
    #[error("{part} cannot be filled: {why}")]
    Broken {
        /// The part.
        part: String,
        /// Why.
        why: String,
    },
}

/// One compiled part.
struct Part {
    name: String,
    template: liquid::Template,
}

/// A compiled template. Cheap to fill, and filled from many threads at once.
pub struct Compiled {
    channel: Channel,
    subject: Option<Part>,
    text: Option<Part>,
    html: Option<Part>,
    whatsapp_values: Vec<Part>,
    /// Fields in the order in which `liquid` knows them: `f0`, `f1` …
    fields: Vec<String>,
    defaults: BTreeMap<String, String>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled")
            .field("channel", &self.channel)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    /// Compiles a template for a channel; else all mistakes in it.
    pub fn new(template: &Template, channel: Channel) -> Result<Self, Vec<Mistake>> {
        let (compiler, parts) = compile(template, channel);
        if !compiler.mistakes.is_empty() {
            return Err(compiler.mistakes);
        }
        Ok(Self {
            channel,
            subject: parts.subject,
            text: parts.text,
            html: parts.html,
            whatsapp_values: parts.whatsapp_values,
            fields: compiler.fields,
            defaults: template.defaults.clone(),
        })
    }

    /// The names of all fields that the template reads, built-in ones too.
    pub fn fields(&self) -> BTreeSet<&str> {
        self.fields.iter().map(String::as_str).collect()
    }

    /// Fields that this recipient does not have, or has empty, and for which there is no default.
    pub fn missing<'c>(&'c self, fields: &BTreeMap<String, String>) -> Vec<&'c str> {
        let is_missing = |name: &&String| {
            !BUILT_INS.contains(&name.as_str())
                && self.value(name, fields, &BuiltIns::default()).is_empty()
        };
        self.fields.iter().filter(is_missing).map(String::as_str).collect()
    }

    /// Fills the template with the fields of one recipient.
    pub fn fill(
        &self,
        fields: &BTreeMap<String, String>,
        built_ins: &BuiltIns<'_>,
    ) -> Result<Filled, NotFilled> {
        let mut values = Object::new();
        for (index, name) in self.fields.iter().enumerate() {
            let value = self.value(name, fields, built_ins).to_owned();
            values.insert(grammar::field_name(index).into(), Value::scalar(value));
        }
        let render = |part: &Part| part.render(&values);
        let filled = Filled {
            subject: self.subject.as_ref().map(render).transpose()?.map(|text| one_line(&text)),
            text: self.text.as_ref().map(render).transpose()?,
            html: self.html.as_ref().map(render).transpose()?,
            whatsapp_values: self
                .whatsapp_values
                .iter()
                .map(|part| Ok(one_line(&render(part)?)))
                .collect::<Result<_, NotFilled>>()?,
        };
        filled.check(self.channel)?;
        Ok(filled)
    }

    fn value<'v>(
        &'v self,
        name: &str,
        fields: &'v BTreeMap<String, String>,
        built_ins: &BuiltIns<'v>,
    ) -> &'v str {
        let given = || fields.get(name).map(String::as_str).filter(|text| !text.trim().is_empty());
        let default = || self.defaults.get(name).map(String::as_str);
        built_ins.get(name).or_else(given).or_else(default).unwrap_or_default()
    }
}

impl Part {
    fn render(&self, values: &Object) -> Result<String, NotFilled> {
        self.template.render(values).map_err(|error| NotFilled::Broken {
            part: self.name.clone(),
            why: first_line(&error.to_string()),
        })
    }
}

impl Filled {
    /// Refuses parts that no provider takes. How long they may be is a matter of the channel.
    fn check(&self, channel: Channel) -> Result<(), NotFilled> {
        // One of the two is enough for a mail; but then the other is not to be blank by mistake either.
        let is_empty_html = |html: &str| {
            // A mail may be a picture.
            is_blank(html) || channel == Channel::Telegram && is_blank(&visible(html))
        };
        if self.text.as_deref().is_some_and(is_blank) {
            return Err(NotFilled::Empty { part: "text".to_owned() });
        }
        if self.html.as_deref().is_some_and(is_empty_html) {
            return Err(NotFilled::Empty { part: "html".to_owned() });
        }
        if let Some(index) = self.whatsapp_values.iter().position(|value| is_blank(value)) {
            return Err(NotFilled::Empty { part: format!("whatsappValues[{index}]") });
        }
        if channel == Channel::Smtp && self.subject.as_deref().is_some_and(is_blank) {
            return Err(NotFilled::Empty { part: "subject".to_owned() });
        }
        Ok(())
    }
}

/// The first line of an error of `liquid`; the others repeat the template.
fn first_line(error: &str) -> String {
    error.lines().next().unwrap_or_default().trim_start_matches("liquid: ").to_owned()
}

/// A text on one line: each run of white space and control characters is one space.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
