//! What the crate `audience` knows of addresses and texts, in the words of this room.

use std::collections::{BTreeMap, BTreeSet};

use stampede_audience::{
    Alphabet, BuiltIns, Compiled, NotFilled, check_template, is_blank, segments, visible,
};
use stampede_channel as channel;
use stampede_model::campaign::{AddressKind, Channel, Content, Failure, Outcome};
use stampede_store::Campaign;
use stampede_wire::campaigns::TemplateMistake;

/// The content of a campaign, ready to be filled in.
#[derive(Debug)]
pub(crate) struct Ready {
    channel: Channel,
    source: Source,
}

/// Where the texts come from.
#[derive(Debug)]
enum Source {
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

/// Why a recipient has no texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTexts {
    /// It has no message of its own.
    #[error("the recipient has no message of its own")]
    NoMessage,
    /// Nothing is seen of this part.
    #[error("{0} is empty for this recipient")]
    Empty(String),
    /// The template is wrong for everybody.
    #[error("{0}")]
    Template(String),
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
    let source = match &campaign.content {
        Content::Own => Source::Own,
        Content::Template(template) => match Compiled::new(template, channel) {
            Ok(compiled) => Source::Template(Box::new(compiled)),
            Err(mistakes) => Source::Mistaken(mistakes.into_iter().map(told).collect()),
        },
    };
    Ready { channel, source }
}

/// All mistakes of the content of a campaign; `known`: the fields that its recipients have, if that is known.
pub(crate) fn mistakes(
    campaign: &Campaign,
    channel: Channel,
    known: Option<&BTreeSet<String>>,
) -> Vec<TemplateMistake> {
    match &campaign.content {
        Content::Own => Vec::new(),
        Content::Template(template) => {
            check_template(template, channel, known).into_iter().map(told).collect()
        }
    }
}

impl Ready {
    /// The texts of a recipient, or the outcome of a message that is not sent: no provider is asked to take what it refuses.
    pub(crate) fn fill(
        &self,
        own: Option<&str>,
        fields: &BTreeMap<String, String>,
        built_ins: &BuiltIns<'_>,
    ) -> Result<Texts, Outcome> {
        let texts = self.texts(own, fields, built_ins).map_err(|wrong| wrong.outcome())?;
        let size = size(self.channel, &texts);
        if size.length > size.most {
            let Size { length, most, .. } = size;
            let told = format!("the message has a length of {length}; the channel takes {most}");
            return Err(Outcome::Never(Failure::new("too_long", &told), None));
        }
        Ok(texts)
    }

    /// The texts of a recipient, however long they are.
    pub(crate) fn texts(
        &self,
        own: Option<&str>,
        fields: &BTreeMap<String, String>,
        built_ins: &BuiltIns<'_>,
    ) -> Result<Texts, NoTexts> {
        match &self.source {
            Source::Own => match own {
                Some(own) if is_blank(own) => Err(NoTexts::Empty("message".to_owned())),
                Some(own) => Ok(Texts { text: own.to_owned(), ..Texts::default() }),
                None => Err(NoTexts::NoMessage),
            },
            Source::Template(compiled) => match compiled.fill(fields, built_ins) {
                Ok(filled) => Ok(Texts {
                    subject: filled.subject,
                    text: filled.text.unwrap_or_default(),
                    html: filled.html,
                    whatsapp_values: filled.whatsapp_values,
                }),
                Err(NotFilled::Empty { part }) => Err(NoTexts::Empty(part)),
                Err(wrong @ NotFilled::Broken { .. }) => Err(NoTexts::Template(wrong.to_string())),
            },
            Source::Mistaken(mistakes) => {
                Err(NoTexts::Template(mistakes.first().map(sentence).unwrap_or_default()))
            }
        }
    }

    /// Mistakes in the template, as far as they do not depend on its recipients.
    pub(crate) fn mistakes(&self) -> &[TemplateMistake] {
        match &self.source {
            Source::Mistaken(mistakes) => mistakes,
            _ => &[],
        }
    }

    /// The fields that the template reads, without those that are made for every recipient.
    pub(crate) fn fields(&self) -> BTreeSet<&str> {
        let Source::Template(compiled) = &self.source else { return BTreeSet::new() };
        let is_own = |field: &&str| !stampede_audience::BUILT_INS.contains(field);
        compiled.fields().into_iter().filter(is_own).collect()
    }

    /// Whether the template reads the link to the recipient's ticket.
    pub(crate) fn links_ticket(&self) -> bool {
        let Source::Template(compiled) = &self.source else { return false };
        compiled.fields().contains("ticketUrl")
    }

    /// The fields that the template reads and this recipient does not have.
    pub(crate) fn missing(&self, fields: &BTreeMap<String, String>) -> Vec<String> {
        let Source::Template(compiled) = &self.source else { return Vec::new() };
        compiled.missing(fields).into_iter().map(str::to_owned).collect()
    }
}

impl NoTexts {
    /// One recipient's fields are at fault: all others go on. A broken template is everybody's.
    fn outcome(&self) -> Outcome {
        let failure = |code: &str| Failure::new(code, &self.to_string());
        match self {
            Self::NoMessage => Outcome::Never(failure("no_message"), None),
            Self::Empty(_) => Outcome::Never(failure("empty"), None),
            Self::Template(_) => Outcome::Content(failure("template")),
        }
    }
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
    let count = |text: &str| longest.unit.count(text);
    let html = texts.html.as_deref();
    let length = match channel {
        // It gets the HTML if there is some, and counts what is seen of it.
        Channel::Telegram => html.map_or_else(|| count(&texts.text), |html| count(&visible(html))),
        // A template has values, and no text is sent with it.
        Channel::Whatsapp if !texts.whatsapp_values.is_empty() => {
            texts.whatsapp_values.iter().map(|value| count(value)).sum()
        }
        _ => count(&texts.text).max(html.map_or(0, count)),
    };
    let parts = segments(&texts.text);
    Size {
        length: length as u64,
        most: longest.most as u64,
        segments: parts.segments as u64,
        is_unicode: parts.alphabet == Alphabet::Utf16,
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign::Template;

    use super::*;

    fn ready_of(template: Option<Template>, channel: Channel) -> Ready {
        let content = template.map_or(Content::Own, Content::Template);
        ready(&Campaign { content, ..crate::create::blank("ann".to_owned()) }, channel)
    }

    fn own(channel: Channel, message: &str) -> Result<(), String> {
        let filled =
            ready_of(None, channel).fill(Some(message), &BTreeMap::new(), &BuiltIns::default());
        filled.map(drop).map_err(|outcome| {
            assert_eq!(outcome.as_str(), "never", "all others go on: {outcome:?}");
            outcome.failure().unwrap().code.clone()
        })
    }

    #[test]
    fn a_message_of_ones_own_that_its_provider_would_refuse_is_not_sent() {
        for (channel, most, letter) in [
            (Channel::Telegram, 2_048, "😀"),
            (Channel::Whatsapp, 4_096, "😀"),
            (Channel::Sms, 1_600, "я"),
        ] {
            assert_eq!(own(channel, &letter.repeat(most)), Ok(()), "{channel:?}");
            let long = letter.repeat(most + 1);
            assert_eq!(own(channel, &long), Err("too_long".to_owned()), "{channel:?}");
            assert_eq!(own(channel, " \u{200b}\n"), Err("empty".to_owned()), "{channel:?}");
        }
        assert_eq!(own(Channel::Webhook, &"x".repeat(4_097)), Ok(()));
    }

    #[test]
    fn telegram_counts_what_is_seen_of_html() {
        let html = Template { html: Some("<b>{{ name }}</b>".to_owned()), ..Template::default() };
        let ready = ready_of(Some(html), Channel::Telegram);
        let fill = |name: String| {
            let fields = BTreeMap::from([("name".to_owned(), name)]);
            ready.fill(None, &fields, &BuiltIns::default()).map_err(|outcome| {
                outcome.failure().map(|failure| failure.code.clone()).unwrap_or_default()
            })
        };
        assert!(fill("&".repeat(4_096)).is_ok(), "an entity is one character");
        assert_eq!(fill("&".repeat(4_097)).unwrap_err(), "too_long");
        assert_eq!(fill(String::new()).unwrap_err(), "empty");
    }

    #[test]
    fn the_values_of_a_template_of_whatsapp_count_together() {
        let values = vec!["{{ name }}".to_owned(), "{{ name }}".to_owned()];
        let template = Template {
            whatsapp_template: Some("doors".to_owned()),
            whatsapp_language: Some("en".to_owned()),
            whatsapp_values: values,
            ..Template::default()
        };
        let ready = ready_of(Some(template), Channel::Whatsapp);
        let fill = |length: usize| {
            let fields = BTreeMap::from([("name".to_owned(), "я".repeat(length))]);
            ready.fill(None, &fields, &BuiltIns::default()).is_ok()
        };
        assert!(fill(2_048) && !fill(2_049));
    }
}
