//! Compiles the parts of one template, and says which parts a channel needs.

use stampede_model::campaign::{Channel, Template};

use super::known::Use;
use super::{MOST_VALUES, Mistake, Part, filters, first_line, grammar, scan};

/// Whether the values of a part are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    Html,
    No,
}

/// The parts of one template that could be compiled.
pub(super) struct Parts {
    pub(super) subject: Option<Part>,
    pub(super) text: Option<Part>,
    pub(super) html: Option<Part>,
    pub(super) whatsapp_values: Vec<Part>,
}

/// Compiles a template for a channel. The compiler has the mistakes in it.
pub(super) fn compile(template: &Template, channel: Channel) -> (Compiler, Parts) {
    let mut compiler = Compiler::default();
    let subject = compiler.part("subject", template.subject.as_deref(), Escape::No);
    let text = compiler.part("text", template.text.as_deref(), Escape::No);
    let html = compiler.part("html", template.html.as_deref(), Escape::Html);
    let values = template.whatsapp_values.iter().take(MOST_VALUES).enumerate();
    let values: Vec<Option<Part>> = values
        .map(|(index, value)| {
            compiler.part(&format!("whatsappValues[{index}]"), Some(value), Escape::No)
        })
        .collect();
    compiler.check_parts(template, channel);
    let whatsapp_values = values.into_iter().flatten().collect();
    (compiler, Parts { subject, text, html, whatsapp_values })
}

/// Compiles the parts of one template.
#[derive(Default)]
pub(super) struct Compiler {
    /// Fields in the order in which `liquid` knows them.
    pub(super) fields: Vec<String>,
    /// Where the parts read them.
    pub(super) uses: Vec<Use>,
    pub(super) mistakes: Vec<Mistake>,
}

impl Compiler {
    fn part(&mut self, name: &str, source: Option<&str>, escape: Escape) -> Option<Part> {
        let source = source?;
        let written = grammar::write(source, escape, &mut self.fields);
        let located = |(place, told): (scan::Place, grammar::Told)| Mistake {
            part: name.to_owned(),
            line: place.line,
            column: place.column,
            message: told.message,
            nearest: told.nearest,
        };
        if !written.mistakes.is_empty() {
            self.mistakes.extend(written.mistakes.into_iter().map(located));
            return None;
        }
        let uses = written.uses.into_iter().map(|(place, field)| Use {
            part: name.to_owned(),
            line: place.line,
            column: place.column,
            name: field,
        });
        self.uses.extend(uses);
        match filters::parse(&written.source) {
            Ok(template) => Some(Part { name: name.to_owned(), template }),
            Err(error) => {
                self.whole(name, first_line(&error));
                None
            }
        }
    }

    /// Refuses parts that the channel cannot send, and templates without the parts that it needs.
    fn check_parts(&mut self, template: &Template, channel: Channel) {
        let has_text = template.text.is_some();
        let has_html = template.html.is_some();
        match channel {
            Channel::Smtp if template.subject.is_none() => {
                self.whole("subject", "is missing: a mail needs one")
            }
            Channel::Smtp | Channel::Telegram if !has_text && !has_html => {
                self.whole("text", "is missing: the message needs a text or html");
            }
            Channel::Whatsapp if !has_text && template.whatsapp_template.is_none() => {
                self.whole(
                    "whatsappTemplate",
                    "is missing: name a template that WhatsApp has approved",
                );
            }
            Channel::Sms | Channel::Webhook | Channel::Console if !has_text => {
                self.whole("text", "is missing: the message needs one");
            }
            _ => {}
        }
        if template.whatsapp_template.is_some() && template.whatsapp_language.is_none() {
            self.whole(
                "whatsappLanguage",
                "is missing: name the language of the template, such as en_US",
            );
        }
        if template.whatsapp_values.len() > MOST_VALUES {
            self.whole("whatsappValues", format!("has more than {MOST_VALUES} values"));
        }
    }

    fn whole(&mut self, part: &str, message: impl Into<String>) {
        let (part, message) = (part.to_owned(), message.into());
        self.mistakes.push(Mistake { part, line: 0, column: 0, message, nearest: None });
    }
}
