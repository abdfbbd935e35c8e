//! Reads settings one by one and collects every mistake.

use std::fmt;

use super::given::Texts;
use super::row::{Fallback, Row, Secrecy};

/// A setting that cannot be used: the variable, its value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) right: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.name, without_secret(&self.value), self.right)
    }
}

/// The value without the text before an `@`, which may be a password.
fn without_secret(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((before, after)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://***@{after}"),
            None => format!("***@{after}"),
        },
        None => value.to_owned(),
    }
}

/// Reads settings and remembers the mistakes.
pub(super) struct Reader<'a> {
    texts: &'a Texts,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(texts: &'a Texts) -> Self {
        Self { texts, mistakes: Vec::new() }
    }

    /// Notes a setting that cannot be used.
    pub(super) fn mistake(
        &mut self,
        name: &'static str,
        value: impl ToString,
        right: impl Into<String>,
    ) {
        let mistake = Mistake { name, value: value.to_string(), right: right.into() };
        self.mistakes.push(mistake);
    }

    /// Whether somebody has set the variable.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.texts.get(name).is_some()
    }

    /// Reads one setting. A wrong text is noted, and the default is used instead of it. `None`: the
    /// default of the table is wrong, and this is noted.
    pub(super) fn value<T>(&mut self, row: &Row<T>) -> Option<T> {
        let setting = &row.setting;
        let ignored = setting.ignored_beside.is_some_and(|other| self.is_given(other));
        if let Some(text) = self.texts.get(setting.name).filter(|_| !ignored) {
            // Spaces may be part of a password.
            let hidden = setting.secrecy == Secrecy::Hidden;
            match (row.parse)(if hidden { text } else { text.trim() }) {
                Ok(value) => return Some(value),
                Err(right) => {
                    self.mistake(setting.name, if hidden { "…" } else { text.trim() }, right)
                }
            }
        }
        match &row.fallback {
            Fallback::Computed(value) => Some(value()),
            Fallback::Text(text) => (row.parse)(text)
                .map_err(|right| self.mistake(setting.name, text, format!("the default: {right}")))
                .ok(),
        }
    }

    /// Whether a variable that begins so was found wrong.
    pub(super) fn blames(&self, beginning: &str) -> bool {
        self.mistakes.iter().any(|mistake| mistake.name.starts_with(beginning))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_wrong_values_are_not_shown() {
        for value in ["mysql://u:secret@h/db", "http://:secret@h", "u:secret@h"] {
            let shown = without_secret(value);
            assert!(
                !shown.contains("secret") && shown.ends_with(value.rsplit('@').next().unwrap()),
                "{shown}"
            );
        }
        assert_eq!(without_secret("localhost:6379"), "localhost:6379");
    }
}
