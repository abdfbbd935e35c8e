//! Reading settings one by one, and collecting every mistake.

use std::fmt;

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

/// Whatever stands before an `@` may be a password.
fn without_secret(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((before, after)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://***@{after}"),
            None => format!("***@{after}"),
        },
        None => value.to_owned(),
    }
}

/// Where settings without a flag come from.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads settings and remembers what was wrong.
pub(super) struct Reader<'a> {
    pub(super) environment: Environment<'a>,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(environment: Environment<'a>) -> Self {
        Self { environment, mistakes: Vec::new() }
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

    /// Reads one setting; an empty one counts as not given.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        given: Option<&str>,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> T {
        let Some(value) = given.map(str::trim).filter(|value| !value.is_empty()) else {
            return default;
        };
        parse(value).unwrap_or_else(|right| {
            self.mistakes.push(Mistake { name, value: value.to_owned(), right });
            default
        })
    }

    /// Reads a whole number within bounds.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        given: Option<&str>,
        default: u64,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        self.read(name, given, default, |value| {
            value.parse().ok().filter(|n| bounds.contains(n)).ok_or_else(|| {
                format!("must be a whole number from {} to {}", bounds.start(), bounds.end())
            })
        })
    }

    /// Whether a variable that begins so was found wrong.
    pub(super) fn blames(&self, beginning: &str) -> bool {
        self.mistakes.iter().any(|mistake| mistake.name.starts_with(beginning))
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.trim().is_empty())
    }

    /// A setting of the product that this version cannot honour: better to stop than to ignore it.
    pub(super) fn refuse(&mut self, name: &'static str, right: &str) {
        if let Some(value) = self.variable(name) {
            self.mistakes.push(Mistake { name, value, right: right.to_owned() });
        }
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
