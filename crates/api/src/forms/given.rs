//! One field of a form.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::parts::Part;
use super::reading::Reading;

/// A field of a form: its name in JSON, and what the body says.
#[derive(Debug, Clone)]
pub(crate) struct Given<T> {
    pub(super) name: &'static str,
    pub(super) state: State<T>,
}

/// What a body says in one field.
#[derive(Debug, Clone, Default)]
pub(crate) enum State<T> {
    /// Nothing.
    #[default]
    Absent,
    /// `null`.
    Null,
    /// A value.
    Is(T),
    /// A value that breaks a rule, which the message names.
    Wrong(String),
}

impl<T> Given<T> {
    /// A field that the body does not name.
    pub(crate) fn absent(name: &'static str) -> Self {
        Self { name, state: State::Absent }
    }

    /// Whether the body names the field, with any value.
    pub(crate) fn is_named(&self) -> bool {
        !matches!(self.state, State::Absent)
    }

    /// Whether the field is given as `null`: to be cleared.
    pub(crate) fn is_cleared(&self) -> bool {
        matches!(self.state, State::Null)
    }

    /// Whether the field has a value, right or wrong.
    pub(crate) fn has_value(&self) -> bool {
        matches!(self.state, State::Is(_) | State::Wrong(_))
    }

    /// Its name, and what the body says.
    pub(crate) fn into_parts(self) -> (&'static str, State<T>) {
        (self.name, self.state)
    }

    /// The value, if it is right.
    pub(crate) fn value(&self) -> Option<&T> {
        match &self.state {
            State::Is(value) => Some(value),
            _ => None,
        }
    }
}

impl<T: Part> Given<T> {
    /// Reads the value of the field from an object that has just named it.
    pub(crate) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        object: &mut A,
        reading: &Reading,
    ) -> Result<(), A::Error> {
        let again = self.is_named();
        let (was_wrong, wrong) = (matches!(self.state, State::Wrong(_)), reading.wrong());
        self.state = object.next_value_seed(Seed::new(reading))?;
        if again {
            // Readers disagree which of the two counts.
            self.state = State::Wrong("is given twice".to_owned());
            // The field has one mistake, however often it is given.
            reading.set_wrong(wrong + usize::from(!was_wrong));
        }
        Ok(())
    }
}

/// Reads one value.
pub(crate) struct Seed<'r, T> {
    reading: &'r Reading,
    part: PhantomData<T>,
}

impl<'r, T> Seed<'r, T> {
    pub(crate) fn new(reading: &'r Reading) -> Self {
        Self { reading, part: PhantomData }
    }
}

impl<T: Part> Seed<'_, T> {
    fn told(&self, read: Result<T, String>) -> State<T> {
        match read {
            Ok(value) => State::Is(value),
            Err(message) => {
                self.reading.note_wrong();
                State::Wrong(message)
            }
        }
    }
}

impl<'de, T: Part> DeserializeSeed<'de> for Seed<'_, T> {
    type Value = State<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<State<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Part> Visitor<'de> for Seed<'_, T> {
    type Value = State<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<State<T>, E> {
        Ok(State::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<State<T>, E> {
        Ok(self.told(T::flag(flag)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<State<T>, E> {
        Ok(self.told(T::number(number.into())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<State<T>, E> {
        Ok(self.told(T::number(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<State<T>, E> {
        let number = Number::from_f64(number).ok_or_else(|| T::EXPECTED.to_owned());
        Ok(self.told(number.and_then(T::number)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<State<T>, E> {
        let read = T::text(text);
        if read.is_ok() {
            self.reading.keep(text.len())?;
        }
        Ok(self.told(read))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<State<T>, A::Error> {
        let read = T::list(list, self.reading)?;
        Ok(self.told(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<State<T>, A::Error> {
        let read = T::object(object, self.reading)?;
        Ok(self.told(read))
    }
}
