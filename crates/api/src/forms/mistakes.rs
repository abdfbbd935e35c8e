//! The mistakes of a form, each with its field, so that a client learns all of them at once.

use stampede_model::{Currency, Money};

use super::form::{Form, Unknown};
use super::given::{Given, State};
use super::parts::Amount;
use crate::problem::{FieldError, Problem};
use crate::unknown;

/// Mistakes in one answer.
const MOST: usize = 100;
/// Mistakes in entries of lists: they must not hide those of other fields.
const MOST_IN_LISTS: usize = 80;
/// Unknown fields of one object that are told.
const MOST_UNKNOWN: usize = 20;

/// Collects the mistakes in the fields of one object.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    path: String,
    errors: Vec<FieldError>,
}

impl Mistakes {
    /// Mistakes of an object inside another one; `path` ends in a dot.
    pub(crate) fn nested(path: impl Into<String>) -> Self {
        Self { path: path.into(), errors: Vec::new() }
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, name: &str, message: impl std::fmt::Display) {
        if self.errors.len() < MOST {
            let field = format!("{}{name}", self.path);
            self.errors.push(FieldError::new(field, message.to_string()));
        }
    }

    /// Notes what a room has found, each with its field; fields whose values could not be read keep the mistake that they have.
    pub(crate) fn also(&mut self, found: impl IntoIterator<Item = (String, String)>) {
        let known: Vec<String> = self.errors.iter().map(|error| error.field.clone()).collect();
        for (name, message) in found {
            if !known.contains(&format!("{}{name}", self.path)) {
                self.wrong(&name, message);
            }
        }
    }

    /// Notes that an entry of a list is wrong.
    pub(crate) fn wrong_entry(&mut self, name: &str, message: impl std::fmt::Display) {
        if self.errors.len() < MOST_IN_LISTS {
            self.wrong(name, message);
        }
    }

    /// The value of a field; notes its mistake. A field that is absent or `null` is no mistake.
    pub(crate) fn value<T>(&mut self, given: Given<T>) -> Option<T> {
        match given.state {
            State::Is(value) => Some(value),
            State::Wrong(message) => {
                self.wrong(given.name, message);
                None
            }
            State::Absent | State::Null => None,
        }
    }

    /// The value of a field that must be given.
    pub(crate) fn required<T>(&mut self, given: Given<T>) -> Option<T> {
        self.required_or(given, "is missing")
    }

    /// The value of a field that must be given, or the message that explains what is missing.
    pub(crate) fn required_or<T>(&mut self, given: Given<T>, message: &str) -> Option<T> {
        if !given.has_value() {
            self.wrong(given.name, message);
        }
        self.value(given)
    }

    /// A value made of the field's value by a function; notes its mistake, and any other with the function's message.
    pub(crate) fn read<T, V, E: std::fmt::Display>(
        &mut self,
        given: Given<T>,
        read: impl FnOnce(T) -> Result<V, E>,
    ) -> Option<V> {
        let name = given.name;
        match read(self.value(given)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.wrong(name, message);
                None
            }
        }
    }

    /// The value of a field within a rule; a value of another kind is told by `rule`, too.
    pub(crate) fn ruled<T, V>(
        &mut self,
        given: Given<T>,
        rule: &str,
        read: impl FnOnce(T) -> Option<V>,
    ) -> Option<V> {
        let name = given.name;
        let read = match given.state {
            State::Absent | State::Null => return None,
            State::Wrong(_) => None,
            State::Is(value) => read(value),
        };
        if read.is_none() {
            self.wrong(name, rule);
        }
        read
    }

    /// An amount of money.
    pub(crate) fn money(&mut self, given: Given<Amount>, currency: Currency) -> Option<Money> {
        self.read(given, |Amount(amount)| Money::parse(&amount, currency))
    }

    /// Refuses unknown fields: most likely typos.
    pub(crate) fn only<F: Form>(&mut self, form: &F) {
        self.only_these(form.unknown(), F::NAMES, &[]);
    }

    /// Refuses unknown fields, and fields of the record that cannot be changed (in a record that was read and sent back).
    pub(crate) fn only_or_fixed<F: Form>(&mut self, form: &F, fixed: &[&str]) {
        self.only_these(form.unknown(), F::NAMES, fixed);
    }

    /// Refuses fields that are not known; `fixed` ones are told that they cannot be changed.
    pub(crate) fn only_these(&mut self, unknown: &Unknown, known: &[&str], fixed: &[&str]) {
        for name in unknown.names().take(MOST_UNKNOWN) {
            let message = match fixed.contains(&name) {
                true => "cannot be changed".to_owned(),
                false => unknown::remark(name, known),
            };
            self.wrong(&unknown::shown(name), message);
        }
    }

    /// Refuses a request that names none of the fields that could be changed: most likely a typo.
    pub(crate) fn must_name_one_of(&mut self, named: bool, names: &[&str]) {
        // A typo that was found already explains it.
        if self.errors.is_empty() && !named {
            let message =
                format!("changes nothing; fields that can be changed: {}", names.join(", "));
            self.errors.push(FieldError::new("body", message));
        }
    }

    /// Takes over the mistakes of an object inside this one.
    pub(crate) fn absorb(&mut self, other: Self) {
        let room = MOST_IN_LISTS.saturating_sub(self.errors.len());
        self.errors.extend(other.errors.into_iter().take(room));
    }

    /// The number of mistakes so far.
    pub(crate) fn count(&self) -> usize {
        self.errors.len()
    }

    /// The value, or 422 with all mistakes.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(Problem::invalid(self.errors)),
        }
    }
}
