//! Warnings before tickets are ordered or edited: what would not come out well on which of them.

use std::sync::Arc;

use stampede_model::{Event, Ticket, TicketDocument, TicketId};
use stampede_press::{Warning, preflight, sample};
use stampede_wire::ticketing::orders::{TicketWarnings, Warning as Entry};

use crate::{Error, Ticketing};

/// Tickets listed with their warnings; more are only counted.
pub(crate) const LISTED: usize = 1_000;

/// What becomes of a request with warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// It is accepted, and the warnings are part of the answer.
    #[default]
    Lenient,
    /// It is refused.
    Strict,
}

/// Tickets with warnings, by their place in the request.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Vec<(usize, Vec<Warning>)>);

/// What becomes of a request after its tickets were checked.
pub(crate) enum Checked {
    /// It goes on, with these warnings.
    Accepted(Warnings),
    /// It is strict and has warnings.
    Refused(Warnings),
}

impl Checked {
    /// The warnings, whatever becomes of the request.
    pub(crate) fn into_warnings(self) -> Warnings {
        match self {
            Self::Accepted(warnings) | Self::Refused(warnings) => warnings,
        }
    }
}

impl Ticketing {
    /// Checks all tickets of a request against the event's template.
    pub(crate) async fn preflight<T: AsRef<[Ticket]> + Send + Sync + 'static>(
        &self,
        event: Event,
        tickets: &Arc<T>,
        strictness: Strictness,
    ) -> Result<Checked, Error> {
        match self.must_not_be_set_aside(&event).await {
            Ok(()) => {}
            // Tickets of a template that is set aside fail with the same reason.
            Err(Error::Unprintable(_)) if strictness == Strictness::Lenient => {
                return Ok(Checked::Accepted(Warnings::default()));
            }
            Err(error) => return Err(error),
        }
        let ready = match self.shared.press.ready(&event).await {
            Ok(ready) => ready,
            // A compiler that is down for a while does not stop orders that are not strict.
            Err(error @ stampede_press::Error::Unavailable(_))
                if strictness == Strictness::Lenient =>
            {
                tracing::warn!(%error, event = %event.id, "tickets were not checked");
                return Ok(Checked::Accepted(Warnings::default()));
            }
            Err(error) => return Err(error.into()),
        };
        let (tickets, press) = (Arc::clone(tickets), self.shared.press.clone());
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
        let warnings = checking.await.map(Warnings).map_err(Error::internal)?;
        Ok(match strictness {
            Strictness::Strict if !warnings.is_empty() => Checked::Refused(warnings),
            Strictness::Strict | Strictness::Lenient => Checked::Accepted(warnings),
        })
    }
}

impl Warnings {
    /// No ticket has a warning.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tickets with warnings, by their place in the request.
    pub(crate) fn into_places(self) -> Vec<(usize, Vec<Warning>)> {
        self.0
    }

    /// The warnings as they are answered, with the ids that the tickets got; none for a refused request.
    pub fn listed(&self, tickets: &[TicketId]) -> TicketWarnings {
        let entries = self.0.iter().take(LISTED).flat_map(|(place, warnings)| {
            warnings.iter().map(move |warning| Entry {
                kind: warning.kind.to_owned(),
                field: warning.field.clone(),
                message: warning.message.clone(),
                index: Some(place + 1),
                line: None,
                ticket: tickets.get(*place).copied(),
            })
        });
        let count = (!self.is_empty()).then_some(self.0.len());
        TicketWarnings { warnings: entries.collect(), tickets_with_warnings: count }
    }

    /// Why a strict request is refused, in one line.
    pub fn refusal(&self) -> String {
        let first = self.0.first().and_then(|(place, warnings)| Some((place, warnings.first()?)));
        let first =
            first.map(|(place, warning)| format!("ticket {}: {}", place + 1, warning.message));
        format!(
            "{} tickets would not come out well, and the request is strict; {}",
            self.0.len(),
            first.unwrap_or_default()
        )
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
        let listed = Warnings(many).listed(&ids);
        assert_eq!((listed.warnings.len(), listed.tickets_with_warnings), (LISTED, Some(2_000)));
        assert_eq!(listed.warnings[7].ticket, Some(ids[7]));
        assert_eq!(
            (listed.warnings[7].index, listed.warnings[7].field.as_str()),
            (Some(8), "name")
        );
        assert_eq!(Warnings::default().listed(&ids), TicketWarnings::default());
    }
}
