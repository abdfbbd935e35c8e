//! Settings and credentials of an account, as people give them: all mistakes are told at once.
//!
//! What is read is written again in its own form, without fields that were left out. Reading that form gives the same again, so
//! a change can be laid over what is stored.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use stampede_model::campaign::Channel;
use url::Url;

use crate::{console, sms, smtp, telegram, webhook, whatsapp};

/// Names longer than this are shown cut.
const SHOWN: usize = 40;
/// Most secrets of one kind: the present one, and former ones while it is changed.
const MOST_SECRETS: usize = 3;
/// Most bytes of a secret.
pub(crate) const LONGEST_SECRET: usize = 4_096;

/// A field that is wrong. The reason never holds a value of the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The field, such as `settings.url` or `credentials.token`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// Reads settings and credentials of an account; both are `null` or objects. Returns both as they are stored: settings as JSON
/// without secrets, credentials as JSON.
pub fn read_settings(
    channel: Channel,
    settings: &Value,
    credentials: &Value,
) -> Result<(String, Vec<u8>), Vec<Mistake>> {
    let mut reader = Reader::new(settings, credentials);
    let read = match channel {
        Channel::Console => console::read(&mut reader).map(stored),
        Channel::Webhook => webhook::read(&mut reader).map(stored),
        Channel::Smtp => smtp::read(&mut reader).map(stored),
        Channel::Telegram => telegram::read(&mut reader).map(stored),
        Channel::Whatsapp => whatsapp::read(&mut reader).map(stored),
        Channel::Sms => sms::read(&mut reader).map(stored),
    };
    match (reader.finish(), read) {
        (mistakes, Some(read)) if mistakes.is_empty() => Ok(read),
        (mistakes, _) => Err(mistakes),
    }
}

fn stored<S: Serialize, C: Serialize>((settings, credentials): (S, C)) -> (String, Vec<u8>) {
    // Both are structs with text keys: they can always be written.
    let settings = serde_json::to_string(&settings).unwrap_or_default();
    (settings, serde_json::to_vec(&credentials).unwrap_or_default())
}

/// Where a field belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Settings,
    Credentials,
}

use Part::{Credentials, Settings};

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Settings => "settings",
            Credentials => "credentials",
        }
    }
}

/// Takes fields out of settings and credentials, and notes mistakes.
pub(crate) struct Reader {
    settings: Map<String, Value>,
    credentials: Map<String, Value>,
    known: Vec<(Part, &'static str)>,
    mistakes: Vec<Mistake>,
}

impl Reader {
    fn new(settings: &Value, credentials: &Value) -> Self {
        let mut mistakes = Vec::new();
        let mut object = |part: Part, value: &Value| match value {
            Value::Object(object) => object.clone(),
            Value::Null => Map::new(),
            _ => {
                let reason = "must be an object, such as {}".to_owned();
                mistakes.push(Mistake { field: part.as_str().to_owned(), reason });
                Map::new()
            }
        };
        let (settings, credentials) =
            (object(Settings, settings), object(Credentials, credentials));
        Self { settings, credentials, known: Vec::new(), mistakes }
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, part: Part, name: &str, reason: impl Into<String>) {
        let field = format!("{}.{name}", part.as_str());
        self.mistakes.push(Mistake { field, reason: reason.into() });
    }

    fn take(&mut self, part: Part, name: &'static str) -> Option<Value> {
        self.known.push((part, name));
        let object = match part {
            Settings => &mut self.settings,
            Credentials => &mut self.credentials,
        };
        object.remove(name).filter(|value| !value.is_null())
    }

    /// A text; spaces around it are cut off. One that is empty is absent.
    pub(crate) fn text(&mut self, part: Part, name: &'static str, most: usize) -> Option<String> {
        let Value::String(text) = self.take(part, name)? else {
            self.wrong(part, name, "must be a text");
            return None;
        };
        let text = text.trim();
        if text.len() > most {
            self.wrong(part, name, format!("must have at most {most} bytes, has {}", text.len()));
            return None;
        }
        if text.chars().any(char::is_control) {
            self.wrong(part, name, "must have no control characters and no line breaks");
            return None;
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A text that must be there and pass a check, whose error says what would be right.
    pub(crate) fn checked<T>(
        &mut self,
        part: Part,
        name: &'static str,
        most: usize,
        check: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let noted = self.mistakes.len();
        match self.text(part, name, most).map(|text| check(&text)) {
            Some(Ok(value)) => Some(value),
            Some(Err(reason)) => {
                self.wrong(part, name, reason);
                None
            }
            None => {
                if self.mistakes.len() == noted {
                    self.wrong(part, name, "is missing");
                }
                None
            }
        }
    }

    /// A text that may be absent, and passes a check if it is there.
    pub(crate) fn checked_if_given<T>(
        &mut self,
        part: Part,
        name: &'static str,
        most: usize,
        check: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match check(&self.text(part, name, most)?) {
            Ok(value) => Some(value),
            Err(reason) => {
                self.wrong(part, name, reason);
                None
            }
        }
    }

    /// A template of many lines that must be there.
    pub(crate) fn template(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let checked = match self.take(Settings, name) {
            Some(Value::String(text)) => check(&text).map(|()| text),
            Some(_) => Err("must be a text".to_owned()),
            None => Err("is missing".to_owned()),
        };
        checked.map_err(|reason| self.wrong(Settings, name, reason)).ok()
    }

    /// A truth value; absent is `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        match self.take(Settings, name) {
            Some(Value::Bool(flag)) => flag,
            None => false,
            Some(_) => {
                self.wrong(Settings, name, "must be true or false");
                false
            }
        }
    }

    /// A number within bounds.
    pub(crate) fn number(&mut self, name: &'static str, most: f64) -> Option<f64> {
        let number = self.take(Settings, name)?.as_f64();
        let fits = number.filter(|number| (0.0..=most).contains(number));
        if fits.is_none() {
            self.wrong(Settings, name, format!("must be a number from 0 to {most}"));
        }
        fits
    }

    /// Secrets of one kind: a text, or a list of the present one and former ones while it is changed.
    pub(crate) fn secrets(
        &mut self,
        name: &'static str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Vec<String> {
        let given = match self.take(Credentials, name) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(one) => vec![one],
        };
        if given.len() > MOST_SECRETS {
            let reason = format!("must be at most {MOST_SECRETS}: the present one and former ones");
            self.wrong(Credentials, name, reason);
            return Vec::new();
        }
        let mut secrets = Vec::new();
        for value in given {
            let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
            let fits = text.filter(|text| text.len() <= LONGEST_SECRET);
            match fits.ok_or_else(|| "must be a text, or a list of texts".to_owned()) {
                Ok(text) => match check(text) {
                    Ok(()) => secrets.push(text.to_owned()),
                    Err(reason) => self.wrong(Credentials, name, reason),
                },
                Err(reason) => self.wrong(Credentials, name, reason),
            }
        }
        secrets
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, name: &'static str, most: usize) -> Option<Vec<String>> {
        let read = match self.take(Settings, name)? {
            Value::Array(list) if list.len() <= most => list
                .iter()
                .map(|value| value.as_str().map(|text| text.trim().to_owned()))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        if read.is_none() {
            self.wrong(Settings, name, format!("must be a list of at most {most} texts"));
        }
        read
    }

    /// Names and texts.
    pub(crate) fn pairs(&mut self, part: Part, name: &'static str) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        match self.take(part, name) {
            None => {}
            Some(Value::Object(object)) if object.len() <= 100 => {
                for (key, value) in object {
                    match value {
                        Value::String(text) => {
                            pairs.insert(key, text);
                        }
                        _ => self.wrong(part, &format!("{name}.{}", shown(&key)), "must be a text"),
                    }
                }
            }
            Some(_) => self.wrong(part, name, "must be an object with texts as its values"),
        }
        pairs
    }

    /// All mistakes, those of unknown fields among them.
    fn finish(mut self) -> Vec<Mistake> {
        let given = [(Settings, &self.settings), (Credentials, &self.credentials)];
        for (part, object) in given {
            for name in object.keys().take(20) {
                let field = format!("{}.{}", part.as_str(), shown(name));
                self.mistakes.push(Mistake { field, reason: unknown(part, name, &self.known) });
            }
        }
        self.mistakes
    }
}

/// What to say about a field that the channel does not have.
fn unknown(part: Part, name: &str, known: &[(Part, &'static str)]) -> String {
    let elsewhere = known.iter().find(|(other, known)| *other != part && *known == name);
    match (part, elsewhere) {
        (Settings, Some(_)) => return "is a secret: it belongs into credentials".to_owned(),
        (Credentials, Some(_)) => return "is no secret: it belongs into settings".to_owned(),
        _ => {}
    }
    let here: Vec<&str> =
        known.iter().filter(|(other, _)| *other == part).map(|(_, name)| *name).collect();
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let distance = |known: &str| strsim::osa_distance(&plain(name), &plain(known));
    let best = here.iter().map(|known| (distance(known), *known)).min();
    match best {
        Some((distance, closest))
            if name.len() <= SHOWN && distance <= (closest.len() / 3).max(1) =>
        {
            format!("is not known here; did you mean {closest}?")
        }
        Some(_) => format!("is not known here; known are {}", here.join(", ")),
        None => "is not known here: nothing is expected".to_owned(),
    }
}

/// A name as it is shown: short, without control characters.
pub(crate) fn shown(name: &str) -> String {
    let cut: String = name.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if cut.len() < name.len() { format!("{cut}…") } else { cut }
}

/// A URL in stored settings: its text.
pub(crate) mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use url::Url;

    pub(crate) fn serialize<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(url.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Checks the URL of an endpoint that the account's owner chose. Which addresses may be reached is checked on every call.
pub(crate) fn endpoint(text: &str) -> Result<Url, String> {
    let everything = "*".parse().unwrap_or_default();
    stampede_outbound::address::parse(text, &everything)
}

/// Checks a word of letters, digits and some others.
pub(crate) fn word(text: &str, others: &str, fewest: usize) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    match text.len() >= fewest && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false if others.is_empty() => {
            Err(format!("must be at least {fewest} letters (a to z) or digits"))
        }
        false => {
            Err(format!("must be at least {fewest} letters (a to z), digits or any of {others:?}"))
        }
    }
}

#[cfg(test)]
mod tests;
