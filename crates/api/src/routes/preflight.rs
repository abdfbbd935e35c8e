//! Before tickets are ordered or changed: what would not come out well on which of them.
//!
//! Normally these are warnings in the answer; a request with `"strict": true` is refused with all of
//! them instead.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};
use stampede_model::{Event, Ticket, TicketDocument, TicketId};
use stampede_press::{Error, Warning, preflight, sample};

use crate::app::App;
use crate::input::Fields;
use crate::problem::Problem;

/// Tickets listed with their warnings; more are only counted.
const LISTED: usize = 1_000;

/// What becomes of a request with warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Strictness {
    /// It is accepted, and the warnings are told.
    #[default]
    Lenient,
    /// It is refused.
    Strict,
}

impl Strictness {
    /// `strict`: true or false.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Self {
        let strict = fields.read("strict", |value| match value.as_bool() {
            Some(true) => Ok(Self::Strict),
            Some(false) => Ok(Self::Lenient),
            None => Err("must be true or false"),
        });
        strict.unwrap_or_default()
    }
}

/// Tickets with warnings, by their place in the request.
#[derive(Default)]
pub(crate) struct Warnings(Vec<(usize, Vec<Warning>)>);

/// Looks at all tickets of a request.
pub(crate) async fn check<T: AsRef<[Ticket]> + Send + Sync + 'static>(
    app: &App,
    event: Event,
    tickets: &Arc<T>,
    strictness: Strictness,
) -> Result<Warnings, Problem> {
    let ready = match app.press.ready(&event).await {
        Ok(ready) => ready,
        // Compiling may be out of order for a while; orders are not.
        Err(error @ Error::Unavailable(_)) if strictness == Strictness::Lenient => {
            tracing::warn!(%error, event = %event.id, "tickets were not checked");
            return Ok(Warnings::default());
        }
        Err(error) => return Err(error.into()),
    };
    let (tickets, press) = (Arc::clone(tickets), app.press.clone());
    let checking = tokio::task::spawn_blocking(move || {
        // Serials and keys are given out later; the code of a sample is as long.
        let token = sample::token(&event);
        let documents = (*tickets).as_ref().iter().map(|ticket| {
            let document = TicketDocument::new(&event, ticket, &token);
            let index = if ticket.serial == 0 { ticket.index } else { ticket.serial };
            TicketDocument { index, ..document }
        });
        preflight(press.compiler(), &ready, documents)
    });
    let warnings = Warnings(checking.await.map_err(|panic| Problem::internal(&panic))?);
    if strictness == Strictness::Strict && !warnings.0.is_empty() {
        return Err(warnings.refusal());
    }
    Ok(warnings)
}

impl Warnings {
    /// What is added to the answer, with the ids that the tickets got.
    pub(crate) fn shown(&self, tickets: &[TicketId]) -> Map<String, Value> {
        let mut shown = Map::new();
        if !self.0.is_empty() {
            shown.insert("warnings".to_owned(), self.list(|place| json!(tickets.get(place))));
            shown.insert("ticketsWithWarnings".to_owned(), json!(self.0.len()));
        }
        shown
    }

    fn refusal(&self) -> Problem {
        let first = self.0.first().and_then(|(place, warnings)| Some((place, warnings.first()?)));
        let first =
            first.map(|(place, warning)| format!("ticket {}: {}", place + 1, warning.message));
        let detail = format!(
            "{} tickets would not come out well, and the request is strict; {}",
            self.0.len(),
            first.unwrap_or_default()
        );
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
            .with("warnings", self.list(|_| Value::Null))
            .with("ticketsWithWarnings", json!(self.0.len()))
    }

    /// One entry for each warning: the ticket's place in the request, from 1, and its id if it has one.
    fn list(&self, id: impl Fn(usize) -> Value) -> Value {
        let entries = self.0.iter().take(LISTED).flat_map(|(place, warnings)| {
            let id = id(*place);
            warnings.iter().map(move |warning| {
                let mut entry = json!(warning);
                entry["index"] = json!(place + 1);
                if !id.is_null() {
                    entry["ticket"] = id.clone();
                }
                entry
            })
        });
        entries.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_name_the_ticket_and_stop_at_a_thousand() {
        let warning =
            Warning { kind: "does_not_fit", field: "name".into(), message: "too long".into() };
        let many: Vec<_> = (0..2_000).map(|place| (place, vec![warning.clone()])).collect();
        let ids: Vec<TicketId> = (0..2_000).map(|_| TicketId::generate()).collect();
        let shown = Warnings(many).shown(&ids);
        let list = shown["warnings"].as_array().unwrap();
        assert_eq!((list.len(), &shown["ticketsWithWarnings"]), (LISTED, &json!(2_000)));
        assert_eq!(list[7]["ticket"], json!(ids[7]));
        assert_eq!((&list[7]["index"], &list[7]["field"]), (&json!(8), &json!("name")));
        assert!(Warnings::default().shown(&ids).is_empty());
    }
}
