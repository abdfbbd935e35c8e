//! What the crate `audience` knows of addresses and texts, in the words of this room.

use std::collections::{BTreeMap, BTreeSet};

use stampede_audience::{Alphabet, BuiltIns, Compiled, NotFilled, segments};
use stampede_channel as channel;
use stampede_model::campaign::{AddressKind, Channel, Content, Failure, Outcome};
use stampede_store::Campaign;
use stampede_wire::campaigns::TemplateMistake;

/// The content of a campaign, ready to be filled in.
#[derive(Debug)]
pub(crate) enum Ready {
    /// Every recipient has a message of its own.
    Own,
    /// A template.
    Template(Box<Compiled>),
    /// A template with mistakes.
    Mistaken(Vec<TemplateMistake>),
}

/// The texts of one recipient.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) subject: Option<String>,
    pub(crate) text: String,
    pub(crate) html: Option<String>,
    pub(crate) whatsapp_values: Vec<String>,
}

/// The size of a message as its channel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) length: u64,
    pub(crate) most: u64,
    /// Parts of a text message.
    pub(crate) segments: u64,
    /// It has letters outside the GSM alphabet.
    pub(crate) is_unicode: bool,
}

/// The address in the form in which it is kept; else what is wrong with it.
pub(crate) fn normalise(
    kind: AddressKind,
    country: Option<&str>,
    written: &str,
) -> Result<String, String> {
    stampede_audience::normalise(kind, written, country).map_err(|wrong| wrong.to_string())
}

/// Compiles the content of a campaign for a channel.
pub(crate) fn ready(campaign: &Campaign, channel: Channel) -> Ready {
    match &campaign.content {
        Content::Own => Ready::Own,
        Content::Template(template) => match Compiled::new(template, channel) {
            Ok(compiled) => Ready::Template(Box::new(compiled)),
            Err(mistakes) => Ready::Mistaken(mistakes.into_iter().map(told).collect()),
        },
    }
}

impl Ready {
    /// The texts of a recipient, or the outcome of a message that cannot be filled in.
    pub(crate) fn fill(
        &self,
        own: Option<&str>,
        fields: &BTreeMap<String, String>,
        built_ins: &BuiltIns<'_>,
    ) -> Result<Texts, Outcome> {
        match self {
            Self::Own => match own {
                Some(own) => Ok(Texts { text: own.to_owned(), ..Texts::default() }),
                None => {
                    let told = "the recipient has no message of its own";
                    Err(Outcome::Never(Failure::new("no_message", told), None))
                }
            },
            Self::Template(compiled) => match compiled.fill(fields, built_ins) {
                Ok(filled) => Ok(Texts {
                    subject: filled.subject,
                    text: filled.text.unwrap_or_default(),
                    html: filled.html,
                    whatsapp_values: filled.whatsapp_values,
                }),
                Err(wrong) => Err(refused(&wrong)),
            },
            Self::Mistaken(mistakes) => {
                let first = mistakes.first().map(sentence).unwrap_or_default();
                Err(Outcome::Content(Failure::new("template", &first)))
            }
        }
    }

    /// Mistakes in the template.
    pub(crate) fn mistakes(&self) -> &[TemplateMistake] {
        match self {
            Self::Mistaken(mistakes) => mistakes,
            _ => &[],
        }
    }

    /// The fields that the template reads, without those that are made for every recipient.
    pub(crate) fn fields(&self) -> BTreeSet<&str> {
        let Self::Template(compiled) = self else { return BTreeSet::new() };
        let is_own = |field: &&str| !stampede_audience::BUILT_INS.contains(field);
        compiled.fields().into_iter().filter(is_own).collect()
    }

    /// The fields that the template reads and this recipient does not have.
    pub(crate) fn missing(&self, fields: &BTreeMap<String, String>) -> Vec<String> {
        let Self::Template(compiled) = self else { return Vec::new() };
        compiled.missing(fields).into_iter().map(str::to_owned).collect()
    }
}

/// One recipient's fields are at fault: all others go on. A broken template is everybody's.
fn refused(wrong: &NotFilled) -> Outcome {
    let code = match wrong {
        NotFilled::Empty { .. } => "empty",
        NotFilled::TooLong { .. } => "too_long",
        NotFilled::Broken { .. } => {
            return Outcome::Content(Failure::new("template", &wrong.to_string()));
        }
    };
    Outcome::Never(Failure::new(code, &wrong.to_string()), None)
}

fn told(mistake: stampede_audience::Mistake) -> TemplateMistake {
    let place = |number: usize| u32::try_from(number).ok().filter(|number| *number > 0);
    TemplateMistake {
        part: mistake.part,
        line: place(mistake.line),
        column: place(mistake.column),
        message: mistake.message,
    }
}

/// A mistake as a sentence.
pub(crate) fn sentence(mistake: &TemplateMistake) -> String {
    let TemplateMistake { part, line, column, message } = mistake;
    match (line, column) {
        (Some(line), Some(column)) => format!("{part}, line {line}, column {column}: {message}"),
        _ => format!("{part} {message}"),
    }
}

/// The size of a message.
pub(crate) fn size(channel: Channel, texts: &Texts) -> Size {
    let longest = channel::longest(channel);
    let parts = segments(&texts.text);
    let html = texts.html.as_deref().unwrap_or_default();
    let text = if texts.text.is_empty() { html } else { &texts.text };
    Size {
        length: longest.unit.count(text) as u64,
        most: longest.most as u64,
        segments: parts.segments as u64,
        is_unicode: parts.alphabet == Alphabet::Utf16,
    }
}
