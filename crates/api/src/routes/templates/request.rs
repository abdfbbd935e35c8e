//! The body of a validation or preview: files or a design, an event and a ticket to print.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde_json::{Value, json};
use stampede_model::{Event, EventId, Limit, TicketDocument};
use stampede_press::sample;

use super::files::Files;
use crate::forms::{
    Amount, Form, Given, Line, Mistakes, Part, Reading, ReadingLimits, Text, Whole, form, parse,
    read_form,
};
use crate::problem::Problem;
use crate::routes::events::{self, EventForm};
use crate::routes::tickets;

form! {
    /// `POST /api/templates/validate`, `…/preview` and `…/{id}/preview`.
    pub(crate) struct PreviewForm {
        /// Names and contents of files.
        files: Files = "files",
        /// The design whose files are used.
        design: Text<200> = "design",
        /// The event of the ticket.
        event: EventGiven = "event",
        /// The ticket.
        ticket: PreviewTicket = "ticket",
        /// The revision of the template whose files are used.
        revision: Whole<0, { u32::MAX as u64 }> = "revision",
    }
}

form! {
    /// The ticket of a preview; what is not given is a sample's, `null` is absent.
    pub(crate) struct PreviewTicket (lenient) {
        /// The holder's name.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// Seat, row or class.
        seat: Line<{ Limit::SEAT.0 }> = "seat",
        /// The price in the event's currency.
        price: Amount = "price",
    }
}

/// The event of a preview.
#[derive(Debug, Clone)]
pub(crate) enum EventGiven {
    /// An event of the caller's.
    Named(EventId),
    /// An event with these fields.
    Described(Box<EventForm>),
}

impl JsonSchema for EventGiven {
    fn schema_name() -> Cow<'static, str> {
        "PreviewEvent".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut described = EventForm::json_schema(schemas);
        // Also an event as GET answers it.
        described.remove("required");
        described.remove("additionalProperties");
        json_schema!({ "anyOf": [{ "type": "string", "format": "uuid" }, described] })
    }
}

impl Part for EventGiven {
    const EXPECTED: &'static str = "must be the id of an event, or an object";

    fn text(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Named).map_err(|_| Self::EXPECTED.to_owned())
    }

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        read_form(object, reading).map(|form| Ok(Self::Described(Box::new(form))))
    }
}

/// An event with the fields of a sample where they are not given.
pub(super) fn described_event(mut form: EventForm) -> Result<Event, Problem> {
    let mut own = Mistakes::nested("event.");
    // Also one as GET answers it.
    form.unknown.forgive(&events::FIXED);
    own.only_these(&form.unknown, &[EventForm::NAMES, &events::FIXED].concat(), &[]);
    let sample = sample::event();
    // The files of the request are what is printed.
    form.template = Given::absent("template");
    let details = events::read_details(&mut own, form, sample.details.clone());
    own.finish(Some(Event { details, ..sample }))
}

/// The ticket of a preview for an event.
pub(super) fn preview_ticket(
    given: Given<PreviewTicket>,
    event: &Event,
) -> Result<TicketDocument, Problem> {
    const EXPECTED: &str = "must be an object with name, seat and price";
    let (mut holder, mut price) = (sample::holder(), sample::price(event));
    let mut mistakes = Mistakes::default();
    if let Some(mut form) = mistakes.ruled(given, EXPECTED, Some) {
        let mut own = Mistakes::nested("ticket.");
        // Also one as GET answers it.
        let known = [&tickets::CHANGEABLE[..], &tickets::FIXED].concat();
        form.unknown.forgive(&known);
        own.only_these(&form.unknown, &known, &[]);
        let (has_seat, has_price) = (form.seat.is_named(), form.price.is_named());
        if let Some(Line(name)) = own.value(form.name) {
            holder.name = name;
        }
        let seat = own.value(form.seat).map(|Line(seat)| seat);
        if has_seat {
            holder.seat = seat;
        }
        let given = own.money(form.price, event.details.currency);
        if has_price {
            price = given;
        }
        mistakes.absorb(own);
    }
    mistakes.finish(Some(sample::document(event, holder, price)))
}

form! {
    /// Event and ticket of a preview on the command line.
    struct Values {
        event: EventGiven = "event",
        ticket: PreviewTicket = "ticket",
    }
}

/// Event and ticket of a preview on the command line; samples where nothing is given.
pub(super) fn values(
    event: Option<Value>,
    ticket: Option<Value>,
) -> Result<(Event, TicketDocument), Problem> {
    let body = json!({ "event": event, "ticket": ticket }).to_string();
    // A person's own files: nobody else is kept out.
    let limits = ReadingLimits { holders: 0, payload: 0 };
    let (form, _) = parse::<Values>(body.as_bytes(), limits, None)?;
    let mut mistakes = Mistakes::default();
    let event = match mistakes.ruled(form.event, "must be an object", Some) {
        None => sample::event(),
        Some(EventGiven::Described(form)) => described_event(*form)?,
        Some(EventGiven::Named(_)) => {
            mistakes.wrong("event", "must be an object");
            sample::event()
        }
    };
    mistakes.finish(Some(()))?;
    let document = preview_ticket(form.ticket, &event)?;
    Ok((event, document))
}
