//! Forms that campaigns and accounts share: pacing, automatic pause, content.

use jiff::civil::Time;
use stampede_model::campaign::{
    AutoPause, Content, Pacing, QuietHours, Rate, Rest, Spacing, Template, WarmUp,
};

use super::words::{ContentKind, ContentWord, DayWord};
use crate::forms::{Decimal, Flag, Form, Given, List, Mistakes, Parsed, Text, Texts, Whole, form};

/// Longest window and longest pause: a month.
const LONGEST_MS: u64 = 31 * 24 * 3_600_000;
/// Most of anything that is counted in 32 bits.
const MOST: u64 = u32::MAX as u64;
/// Most values of a template of WhatsApp.
const MOST_VALUES: usize = 50;
/// Longest text and longest HTML of a message, in bytes; longer templates are refused by the reader of templates, too.
const LONGEST_TEXT: usize = 64 << 10;

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
                return None;
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
