//! The body of an order.

use std::borrow::Cow;
use std::collections::VecDeque;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::SeqAccess;
use stampede_model::{EventId, Limit};

use super::ignored::Ignored;
use crate::forms::{
    Amount, Contact, Email, Flag, Given, IdOf, Line, Mistakes, Part, Quantity, Reading, Seed, Skip,
    State, form, skip_list,
};

form! {
    /// `POST /api/tickets`.
    pub(crate) struct OrderForm (lenient) {
        /// The event.
        target: IdOf<EventId> = "target" required,
        /// The number of tickets; 1 if absent. At most the setting `MAX_QUANTITY`.
        quantity: Quantity = "quantity",
        /// The holder's name; required unless there are `holders`.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// The holder's address.
        email: Email = "email",
        /// The holder's telephone number.
        phone: Contact = "phoneNumber",
        /// The holder's chat of Telegram.
        chat: Contact = "chatId",
        /// Seat, row or class.
        seat: Line<{ Limit::SEAT.0 }> = "seat",
        /// The price in the event's currency.
        price: Amount = "price",
        /// One holder for each ticket.
        holders: Holders = "holders",
        /// Whether warnings refuse the order.
        strict: Flag = "strict",
    }
}

form! {
    /// One of the holders.
    pub(crate) struct HolderForm (lenient) {
        /// The holder's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// The holder's address.
        email: Email = "email",
        /// The holder's telephone number.
        phone: Contact = "phoneNumber",
        /// The holder's chat of Telegram.
        chat: Contact = "chatId",
        /// Seat, row or class.
        seat: Line<{ Limit::SEAT.0 }> = "seat",
        /// The price in the event's currency.
        price: Amount = "price",
    }
}

/// The holders of an order: there may be a hundred thousand, so each is kept small.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    pub(super) all: Vec<HolderLine>,
    /// Mistakes by the index of their holder, in its order; an empty name means the holder itself.
    pub(super) wrong: VecDeque<(usize, &'static str, String)>,
    pub(super) ignored: Ignored,
}

/// What an order says of one holder.
#[derive(Debug, Clone, Default)]
pub(super) struct HolderLine {
    pub(super) name: Option<Box<str>>,
    pub(super) email: Option<Box<str>>,
    pub(super) phone: Option<Box<str>>,
    pub(super) chat: Option<Box<str>>,
    pub(super) seat: Option<Box<str>>,
    pub(super) price: Option<Box<str>>,
}

/// Memory of one holder besides its texts, in bytes: a vector that grows holds its former half for a moment, and each
/// text has an overhead.
const HOLDER: usize = size_of::<HolderLine>() * 3 / 2 + 32;

impl JsonSchema for Holders {
    fn schema_name() -> Cow<'static, str> {
        "Holders".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let holder = schemas.subschema_for::<HolderForm>();
        json_schema!({ "type": "array", "items": holder, "minItems": 1 })
    }
}

impl Part for Holders {
    const EXPECTED: &'static str = "must be a list of objects with name, email, seat and price";

    fn list<'de, A: SeqAccess<'de>>(
        mut list: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let most = reading.limits.holders;
        let mut holders = Self::default();
        while holders.all.len() < most {
            if reading.has_seen_enough() {
                skip_list(list)?;
                return Ok(Ok(holders));
            }
            reading.keep(HOLDER)?;
            match list.next_element_seed(Seed::<HolderForm>::new(reading))? {
                Some(state) => holders.add(state, reading),
                None if holders.all.is_empty() => return Ok(Err(Self::EXPECTED.to_owned())),
                None => return Ok(Ok(holders)),
            }
        }
        if list.next_element::<Skip>()?.is_none() {
            return Ok(Ok(holders));
        }
        drop(holders);
        let count = most + 1 + skip_list(list)?;
        Ok(Err(format!("may have at most {most} entries, has {count}")))
    }
}

impl Holders {
    fn add(&mut self, state: State<HolderForm>, reading: &Reading) {
        let index = self.all.len();
        let State::Is(form) = state else {
            self.wrong.push_back((index, "", HolderForm::EXPECTED.to_owned()));
            self.all.push(HolderLine::default());
            return;
        };
        self.ignored.note_holder(index, &form.unknown);
        if !form.name.has_value() {
            self.wrong.push_back((index, "name", "is missing".to_owned()));
            reading.note_wrong();
        }
        let line = HolderLine {
            name: self.take(index, form.name, |Line(name)| name),
            email: self.take(index, form.email, |Email(email)| email),
            phone: self.take(index, form.phone, |Contact(phone)| phone),
            chat: self.take(index, form.chat, |Contact(chat)| chat),
            seat: self.take(index, form.seat, |Line(seat)| seat),
            price: self.take(index, form.price, |Amount(price)| price),
        };
        self.all.push(line);
    }

    fn take<T>(
        &mut self,
        index: usize,
        given: Given<T>,
        text: impl FnOnce(T) -> String,
    ) -> Option<Box<str>> {
        let (name, state) = given.into_parts();
        match state {
            State::Is(value) => Some(text(value).into_boxed_str()),
            State::Wrong(message) => {
                self.wrong.push_back((index, name, message));
                None
            }
            State::Absent | State::Null => None,
        }
    }

    /// Notes the mistakes of one holder; holders are asked for in their order.
    pub(super) fn tell(&mut self, index: usize, own: &mut Mistakes, all: &mut Mistakes) {
        while self.wrong.front().is_some_and(|(of, ..)| *of <= index) {
            match self.wrong.pop_front() {
                Some((_, "", message)) => all.wrong_entry(&format!("holders[{index}]"), message),
                Some((_, name, message)) => own.wrong(name, message),
                None => return,
            }
        }
    }
}
