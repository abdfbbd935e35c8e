//! The rules of one row: what a file says about one guest becomes a [`Guest`], or mistakes.

use serde::{Deserialize, Serialize};
use stampede_model::{Currency, Limit, Money, check_email, check_text};

use crate::mistakes::{Mistakes, Place};

/// One guest of a file, as the file has it. It serialises, so that it can be kept aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// The line of the file where the row begins, or the place among the holders of a JSON file, from 1.
    #[serde(rename = "l")]
    pub line: u64,
    /// The name.
    #[serde(rename = "n")]
    pub name: String,
    /// The address.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The telephone number.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The chat of Telegram.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// Seat, row or class.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<String>,
    /// The amount of the price, as [`Money::amount`] writes it.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
}

/// A value of a row before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing.
    #[default]
    Absent,
    /// A text or number.
    Is(String),
    /// Something that breaks this rule, whatever the field.
    Wrong(String),
}

/// A row before it is checked.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) name: Value,
    pub(crate) email: Value,
    pub(crate) phone: Value,
    pub(crate) chat: Value,
    pub(crate) seat: Value,
    pub(crate) price: Value,
}

impl Row {
    /// The field of a place in [`crate::columns::KNOWN`].
    pub(crate) fn field(&mut self, place: usize) -> &mut Value {
        match place {
            0 => &mut self.name,
            1 => &mut self.email,
            2 => &mut self.seat,
            3 => &mut self.price,
            4 => &mut self.phone,
            _ => &mut self.chat,
        }
    }

    /// Checks the row; notes all of its mistakes.
    pub(crate) fn check(
        self,
        place: Place,
        currency: Currency,
        mistakes: &mut Mistakes,
    ) -> Option<(Guest, Option<Money>)> {
        let before = mistakes.count;
        if self.name == Value::Absent {
            mistakes.note(place, "name", "is missing");
        }
        let mut field = Field { place, mistakes };
        let name = field.read("name", self.name, |text| check_text(text, Limit::NAME));
        let email = field.read("email", self.email, check_email);
        let phone = field.read("phoneNumber", self.phone, |text| check_text(text, Limit::CONTACT));
        let chat = field.read("chatId", self.chat, |text| check_text(text, Limit::CONTACT));
        let seat = field.read("seat", self.seat, |text| check_text(text, Limit::SEAT));
        let price = field.read("price", self.price, |text| Money::parse(text, currency));
        if mistakes.count > before {
            return None;
        }
        let line = match place {
            Place::Line(line) => line,
            Place::Entry(_, index) => index as u64 + 1,
            Place::Body => 1,
        };
        let price_text = price.map(Money::amount);
        let guest = Guest { line, name: name?, email, phone, chat, seat, price: price_text };
        Some((guest, price))
    }
}

/// Reads the fields of one row.
struct Field<'m> {
    place: Place,
    mistakes: &'m mut Mistakes,
}

impl Field<'_> {
    fn read<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        value: Value,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let checked = match value {
            Value::Absent => return None,
            Value::Wrong(message) => Err(message),
            Value::Is(text) => check(&text).map_err(|error| error.to_string()),
        };
        checked.map_err(|message| self.mistakes.note(self.place, name, message)).ok()
    }
}
