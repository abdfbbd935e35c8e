//! The warnings of an upload: the first tickets with warnings are listed, all are counted.

use stampede_guests::Report;
use stampede_model::Ticket;
use stampede_wire::ticketing::orders::{TicketWarnings, Warning};

use crate::preflight::{LISTED, Warnings};

/// Warnings so far.
#[derive(Default)]
pub(super) struct Warned {
    listed: Vec<Warning>,
    tickets: usize,
}

impl Warned {
    /// Begins with the columns and fields of the file that were ignored.
    pub(super) fn remarks(report: &Report) -> Self {
        let warning = |remark: &stampede_guests::Remark| Warning {
            kind: "unknown_field".to_owned(),
            field: remark.name.clone(),
            message: format!("{} {}", remark.name, remark.message),
            index: None,
            line: None,
            ticket: None,
        };
        Self { listed: report.remarks.iter().map(warning).collect(), tickets: 0 }
    }

    /// Adds the warnings of a chunk of tickets, which stand on these lines.
    pub(super) fn add(&mut self, warnings: Warnings, tickets: &[Ticket], lines: &[u64]) {
        for (place, found) in warnings.into_places() {
            self.tickets += 1;
            if self.tickets > LISTED {
                continue;
            }
            self.listed.extend(found.into_iter().map(|warning| Warning {
                kind: warning.kind.to_owned(),
                field: warning.field,
                message: warning.message,
                index: tickets.get(place).map(|ticket| ticket.index as usize),
                line: lines.get(place).copied(),
                ticket: None,
            }));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The warnings as they are answered.
    pub(super) fn into_listed(self) -> TicketWarnings {
        let tickets_with_warnings = (self.tickets > 0).then_some(self.tickets);
        TicketWarnings { warnings: self.listed, tickets_with_warnings }
    }
}
