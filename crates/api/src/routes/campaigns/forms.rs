//! Forms that campaigns and accounts share: pacing, content, recipients; and the words of closed sets.

use std::borrow::Cow;
use std::fmt;

use jiff::civil::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde_json::Value;
use stampede_campaign::RecipientRow;
use stampede_model::campaign::{
    AutoPause, Channel, Content, Day, Pacing, QuietHours, Rate, Rest, Spacing, SuppressionReason,
    Template, WarmUp,
};

use crate::forms::{
    Decimal, Flag, Form, Given, List, Mistakes, Parsed, Part, Payload, Reading, Text, Texts, Whole,
    form, text,
};

/// Longest window and longest pause: a month.
const LONGEST_MS: u64 = 31 * 24 * 3_600_000;
/// Most of anything that is counted in 32 bits.
const MOST: u64 = u32::MAX as u64;
/// Most values of a template of WhatsApp.
const MOST_VALUES: usize = 50;
/// Longest text and longest HTML of a message, in bytes; longer templates are refused by the reader of templates, too.
const LONGEST_TEXT: usize = 64 << 10;
/// The fields of a recipient that name its address.
const ADDRESSES: [&str; 4] = ["phoneNumber", "email", "chatId", "address"];

/// Declares a type for a word of a closed set, whose schema says what the words are.
macro_rules! inline_word {
    ($(#[doc = $doc:literal])* $name:ident of $value:ty { $($word:literal => $variant:expr,)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(pub(crate) $value);

        impl $name {
            /// The words.
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl std::str::FromStr for $name {
            type Err = $crate::routes::campaigns::forms::NoWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self($variant)),)*
                    _ => Err($crate::routes::campaigns::forms::NoWord(Self::WORDS)),
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}

pub(crate) use inline_word;

/// The text is none of the words.
pub(crate) struct NoWord(pub(crate) &'static [&'static str]);

impl fmt::Display for NoWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [all @ .., last] => write!(f, "must be {} or {last}", all.join(", ")),
            [] => Ok(()),
        }
    }
}

inline_word! {
    /// How messages travel.
    ChannelWord of Channel {
        "console" => Channel::Console,
        "webhook" => Channel::Webhook,
        "smtp" => Channel::Smtp,
        "telegram" => Channel::Telegram,
        "whatsapp" => Channel::Whatsapp,
        "sms" => Channel::Sms,
    }
}

inline_word! {
    /// Why an address gets nothing any more.
    ReasonWord of SuppressionReason {
        "stop" => SuppressionReason::Stop,
        "bounce" => SuppressionReason::Bounce,
        "complaint" => SuppressionReason::Complaint,
        "blocked" => SuppressionReason::Blocked,
        "manual" => SuppressionReason::Manual,
    }
}

inline_word! {
    /// A day of the week.
    DayWord of Day {
        "monday" => Day::Monday,
        "tuesday" => Day::Tuesday,
        "wednesday" => Day::Wednesday,
        "thursday" => Day::Thursday,
        "friday" => Day::Friday,
        "saturday" => Day::Saturday,
        "sunday" => Day::Sunday,
    }
}

/// Whether recipients bring their own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Own,
    Template,
}

inline_word! {
    /// What is sent.
    ContentWord of ContentKind {
        "own" => ContentKind::Own,
        "template" => ContentKind::Template,
    }
}

form! {
    /// Messages in any window.
    pub(crate) struct RateForm {
        /// Most messages in any window; 0 stops everything.
        max: Whole<0, MOST> = "max" required,
        /// The window in milliseconds.
        per_ms: Whole<1, LONGEST_MS> = "perMs" required,
    }
}

form! {
    /// A pause of random length after every message of the account.
    pub(crate) struct SpacingForm {
        /// The shortest pause in milliseconds.
        min_ms: Whole<0, LONGEST_MS> = "minMs" required,
        /// The longest pause in milliseconds.
        max_ms: Whole<0, LONGEST_MS> = "maxMs" required,
    }
}

form! {
    /// A long pause after so many messages of the account.
    pub(crate) struct RestForm {
        /// After how many messages.
        every: Whole<1, MOST> = "every" required,
        /// For how many milliseconds.
        for_ms: Whole<0, LONGEST_MS> = "forMs" required,
    }
}

form! {
    /// Most messages of a day, which grow from day to day: min(max, start × factor^day).
    pub(crate) struct WarmUpForm {
        /// Most messages of the first day.
        start: Whole<1, MOST> = "start" required,
        /// How they grow from one day to the next; at least 1.
        factor: Decimal = "factor" required,
        /// The end of the growth.
        max: Whole<1, MOST> = "max" required,
    }
}

form! {
    /// Hours in which nothing is sent.
    pub(crate) struct QuietHoursForm {
        /// The first quiet minute, such as `21:00`.
        from: Text<20> = "from" required,
        /// The first minute that is not quiet any more, such as `09:00`.
        to: Text<20> = "to" required,
        /// The days on which quiet hours begin; every day if absent.
        days: List<Parsed<DayWord>, 7> = "days",
        /// The time zone, such as `Europe/Berlin`.
        time_zone: Text<100> = "timeZone",
    }
}

form! {
    /// How fast messages leave; what is absent does not limit.
    pub(crate) struct PacingForm {
        /// Messages in any window.
        limit: RateForm = "limit",
        /// A pause after every message.
        spacing: SpacingForm = "spacing",
        /// A long pause after so many messages.
        rest: RestForm = "rest",
        /// Most messages in any 24 hours.
        daily_cap: Whole<0, MOST> = "dailyCap",
        /// Most messages of a day that grow from day to day.
        warm_up: WarmUpForm = "warmUp",
        /// Hours in which nothing is sent.
        quiet_hours: QuietHoursForm = "quietHours",
    }
}

form! {
    /// When a campaign pauses by itself; what is absent has its usual value.
    pub(crate) struct AutoPauseForm {
        /// So many temporary failures in a row; 0: never.
        in_a_row: Whole<0, 10_000> = "inARow",
        /// More than this share of the last 100 attempts failed, in percent; 100: never.
        failed_percent: Whole<0, 100> = "failedPercent",
        /// More than this share of the last 500 attempts were hard bounces, in percent; 100: never.
        bounced_percent: Whole<0, 100> = "bouncedPercent",
    }
}

form! {
    /// What is sent.
    pub(crate) struct ContentForm {
        /// `own`: every recipient has a message of its own; `template`: one for all. `template` if any of the other fields is given.
        kind: Parsed<ContentWord> = "kind",
        /// The subject of a mail, in Liquid.
        subject: Text<2_000> = "subject",
        /// The text, in Liquid.
        text: Text<LONGEST_TEXT> = "text",
        /// The text as HTML, in Liquid.
        html: Text<LONGEST_TEXT> = "html",
        /// The name of a template that WhatsApp has approved.
        whatsapp_template: Text<512> = "whatsappTemplate",
        /// The language of that template, such as `en_US`.
        whatsapp_language: Text<20> = "whatsappLanguage",
        /// The values of that template, each in Liquid.
        whatsapp_values: List<Text<4_096>, MOST_VALUES> = "whatsappValues",
        /// Whether the PDF of the recipient's ticket is attached.
        attach_ticket: Flag = "attachTicket",
        /// Values for fields that a recipient does not have.
        defaults: Texts = "defaults",
    }
}

/// Reads an object inside another one; its mistakes are told with `path`, which ends in a dot.
fn inside<F: Form, V>(
    mistakes: &mut Mistakes,
    given: Given<F>,
    path: &str,
    read: impl FnOnce(&mut Mistakes, F) -> Option<V>,
) -> Option<V> {
    let form = mistakes.value(given)?;
    let mut own = Mistakes::nested(path);
    own.only(&form);
    let value = read(&mut own, form);
    mistakes.absorb(own);
    value
}

/// A whole number of 32 bits.
fn small<const MIN: u64>(Whole(number): Whole<MIN, MOST>) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How fast messages leave; `None`: nothing was given, or there are mistakes.
pub(crate) fn pacing(mistakes: &mut Mistakes, given: Given<PacingForm>) -> Option<Pacing> {
    inside(mistakes, given, "pacing.", |own, form| {
        let limit = inside(own, form.limit, "pacing.limit.", |own, form| {
            let (max, per) = (own.required(form.max), own.required(form.per_ms));
            Some(Rate { max: small(max?), per_ms: per?.0 })
        });
        let spacing = inside(own, form.spacing, "pacing.spacing.", |own, form| {
            let (min, max) = (own.required(form.min_ms), own.required(form.max_ms));
            let (Whole(min_ms), Whole(max_ms)) = (min?, max?);
            if max_ms < min_ms {
                own.wrong("maxMs", "must not be less than minMs");
            }
            Some(Spacing { min_ms, max_ms })
        });
        let rest = inside(own, form.rest, "pacing.rest.", |own, form| {
            let (every, for_ms) = (own.required(form.every), own.required(form.for_ms));
            Some(Rest { every: small(every?), for_ms: for_ms?.0 })
        });
        let warm_up = inside(own, form.warm_up, "pacing.warmUp.", |own, form| {
            let (start, max) = (own.required(form.start), own.required(form.max));
            let factor = own.required(form.factor).map(|Decimal(factor)| factor);
            if factor.is_some_and(|factor| factor < 1.0) {
                own.wrong("factor", "must be at least 1");
            }
            Some(WarmUp { start: small(start?), factor: factor?, max: small(max?) })
        });
        let daily_cap = own.value(form.daily_cap).map(small);
        let quiet_hours = inside(own, form.quiet_hours, "pacing.quietHours.", quiet_hours);
        Some(Pacing { limit, spacing, rest, daily_cap, warm_up, quiet_hours })
    })
}

fn quiet_hours(own: &mut Mistakes, form: QuietHoursForm) -> Option<QuietHours> {
    const A_TIME: &str = "must be a time such as 21:00";
    for (name, has_value) in [("from", form.from.has_value()), ("to", form.to.has_value())] {
        if !has_value {
            own.wrong(name, "is missing");
        }
    }
    let time = |Text(text): Text<20>| text.parse::<Time>().ok();
    let (from, to) = (own.ruled(form.from, A_TIME, time), own.ruled(form.to, A_TIME, time));
    let days = own.value(form.days).map(|List(entries)| {
        let mut days = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            match entry {
                Ok(Parsed(DayWord(day))) => days.push(day),
                Err(message) => own.wrong_entry(&format!("days[{index}]"), message),
            }
        }
        days
    });
    let time_zone = own.value(form.time_zone).map(|Text(zone)| zone);
    Some(QuietHours { from: from?, to: to?, days, time_zone })
}

/// When a campaign pauses by itself.
pub(crate) fn auto_pause(
    mistakes: &mut Mistakes,
    given: Given<AutoPauseForm>,
) -> Option<AutoPause> {
    inside(mistakes, given, "autoPause.", |own, form| {
        let usual = AutoPause::default();
        let in_a_row = own.value(form.in_a_row).map(|Whole(number)| number as u32);
        let failed = own.value(form.failed_percent).map(|Whole(number)| number as u32);
        let bounced = own.value(form.bounced_percent).map(|Whole(number)| number as u32);
        Some(AutoPause {
            in_a_row: in_a_row.unwrap_or(usual.in_a_row),
            failed_percent: failed.unwrap_or(usual.failed_percent),
            bounced_percent: bounced.unwrap_or(usual.bounced_percent),
        })
    })
}

/// What is sent.
pub(crate) fn content(mistakes: &mut Mistakes, given: Given<ContentForm>) -> Option<Content> {
    inside(mistakes, given, "content.", |own, form| {
        let is_template = [
            form.subject.has_value(),
            form.text.has_value(),
            form.html.has_value(),
            form.whatsapp_template.has_value(),
            form.whatsapp_language.has_value(),
            form.whatsapp_values.has_value(),
        ]
        .contains(&true);
        let kind = own.value(form.kind).map(|Parsed(ContentWord(kind))| kind);
        if kind == Some(ContentKind::Own) && is_template {
            own.wrong("kind", "must be template, because a template is given");
        }
        let mut values = Vec::new();
        if let Some(List(entries)) = own.value(form.whatsapp_values) {
            for (index, entry) in entries.into_iter().enumerate() {
                match entry {
                    Ok(Text(value)) => values.push(value),
                    Err(message) => own.wrong_entry(&format!("whatsappValues[{index}]"), message),
                }
            }
        }
        let template = Template {
            subject: own.value(form.subject).map(|Text(text)| text),
            text: own.value(form.text).map(|Text(text)| text),
            html: own.value(form.html).map(|Text(text)| text),
            whatsapp_template: own.value(form.whatsapp_template).map(|Text(text)| text),
            whatsapp_language: own.value(form.whatsapp_language).map(|Text(text)| text),
            whatsapp_values: values,
            attach_ticket: own.value(form.attach_ticket).is_some_and(|Flag(flag)| flag),
            defaults: own.value(form.defaults).map(|Texts(texts)| texts).unwrap_or_default(),
        };
        match kind {
            Some(ContentKind::Template) => Some(Content::Template(template)),
            None if is_template => Some(Content::Template(template)),
            Some(ContentKind::Own) | None => Some(Content::Own),
        }
    })
}

/// A recipient in the body of a request: an address under one of four names, a message, a time zone, and fields; names that
/// are none of these are fields, too.
#[derive(Debug, Clone)]
pub(crate) struct RecipientEntry(pub(crate) RecipientRow);

impl JsonSchema for RecipientEntry {
    fn schema_name() -> Cow<'static, str> {
        "RecipientEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text =
            |about: &str| serde_json::json!({ "type": ["string", "null"], "description": about });
        let value = serde_json::json!({ "type": ["string", "number", "boolean", "null"] });
        json_schema!({
            "type": "object",
            "description": "A recipient: one address, a message of its own or fields for the template.",
            "properties": {
                "phoneNumber": { "type": ["string", "number", "null"], "description": "A telephone number." },
                "email": text("An address for mail."),
                "chatId": { "type": ["string", "number", "null"], "description": "A chat of Telegram." },
                "address": text("Any address of the channel."),
                "message": text("The recipient's own message."),
                "timeZone": text("The recipient's time zone, such as `Europe/Berlin`."),
                "fields": { "type": ["object", "null"], "additionalProperties": value },
            },
            "additionalProperties": value,
        })
    }
}

impl Part for RecipientEntry {
    const EXPECTED: &'static str =
        "must be an object such as {\"phoneNumber\": \"79991234567\", \"message\": \"Hello\"}";

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        Ok(Payload::object(object, reading)?.and_then(|payload| entry(payload.value)))
    }
}

fn entry(value: Value) -> Result<RecipientEntry, String> {
    let Value::Object(mut object) = value else {
        return Err(RecipientEntry::EXPECTED.to_owned());
    };
    let mut one = |name: &str| match object.remove(name).map(text) {
        None => Ok(None),
        Some(Some(text)) => Ok(text),
        Some(None) => Err(format!("has no text in {name}")),
    };
    let mut addresses = Vec::new();
    for name in ADDRESSES {
        addresses.extend(one(name)?.filter(|address| !address.trim().is_empty()));
    }
    let (message, time_zone) = (one("message")?, one("timeZone")?);
    let Texts(mut fields) = match object.remove("fields") {
        None | Some(Value::Null) => Texts::default(),
        Some(fields) => Texts::of(fields).map_err(|error| format!("fields {error}"))?,
    };
    fields.extend(Texts::of(Value::Object(object))?.0);
    match <[String; 1]>::try_from(addresses) {
        Ok([address]) => Ok(RecipientEntry(RecipientRow { address, fields, message, time_zone })),
        Err(none) if none.is_empty() => {
            Err(format!("has no address: give {}", ADDRESSES.join(", ")))
        }
        Err(_) => Err(format!("has several addresses: give one of {}", ADDRESSES.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recipient_has_one_address_and_everything_else_is_a_field() {
        let read = |value: Value| entry(value).map(|RecipientEntry(row)| row);
        let row = read(json!({ "phoneNumber": 79991234567u64, "message": "Привет!" })).unwrap();
        assert_eq!(
            (row.address.as_str(), row.message.as_deref()),
            ("79991234567", Some("Привет!"))
        );
        let row = read(json!({ "email": "a@example.com", "seat": 7, "fields": { "name": "Ann" } }));
        let fields = row.unwrap().fields;
        assert_eq!((fields["seat"].as_str(), fields["name"].as_str()), ("7", "Ann"));
        for (value, told) in [
            (json!({ "message": "x" }), "has no address"),
            (json!({ "email": "a@example.com", "phoneNumber": "1" }), "several addresses"),
            (json!({ "email": [] }), "no text in email"),
            (json!({ "email": "a@example.com", "tags": ["x"] }), "no text in tags"),
            (json!([]), "must be an object"),
        ] {
            assert!(read(value.clone()).unwrap_err().contains(told), "{value}");
        }
    }
}
