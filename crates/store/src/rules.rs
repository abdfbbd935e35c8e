//! How tickets and the counters of their batches change: pure functions, the same for every backend.
//!
//! | change | allowed from | leads to |
//! |---|---|---|
//! | [`completed`] | pending, failed; completed if the PDF differs | completed |
//! | [`failed`] | pending | failed |
//! | [`edited`], [`reissued`] | pending, completed, failed | pending |
//! | [`stale`] | completed | pending |
//! | [`retried`] | failed | pending |
//! | [`voided`] | pending, completed, failed | void, for good |
//! | [`cancelled`] | pending or failed and never made; all of them if made ones go, too | void, for good |
//!
//! Each function returns the ticket after the change, or `None` if the change is not allowed and the
//! ticket stays as it is. A backend may call these functions or say the same in its own language: SQL
//! does so in statements and triggers. The conformance suite (`tests/it/suite/rules.rs`) applies random
//! changes to every backend and to these functions, and compares the records.

use stampede_model::{Batch, Holder, Ticket, TicketStatus, Timestamp};

use crate::{Completion, Failure, MadeTickets, TicketEdit};

/// The next `updated_at` of a record: now, but at least a millisecond after the last one.
///
/// So `updated_at` is a version number too, even for two changes within one millisecond or by clocks
/// that differ.
pub fn later(now: Timestamp, last: Timestamp) -> Timestamp {
    let ms = now.as_millisecond().max(last.as_millisecond() + 1);
    // Out of range only at the end of the year 9999.
    Timestamp::from_millisecond(ms).unwrap_or(now)
}

/// Returns whether a completion is recorded: its PDF shows the ticket as it is now, and is new.
pub fn takes_completion(ticket: &Ticket, completion: &Completion) -> bool {
    ticket.updated_at == completion.seen
        && match ticket.status {
            TicketStatus::Pending | TicketStatus::Failed => true,
            TicketStatus::Completed => {
                ticket.pdf.as_ref().is_some_and(|former| *former != completion.pdf)
            }
            TicketStatus::Void => false,
        }
}

/// Returns whether paper with the former holder must not be accepted any more: another name or seat is
/// printed on it.
pub fn begins_generation(former: &Holder, new: &Holder) -> bool {
    former.name != new.name || former.seat != new.seat
}

/// The ticket after its PDF was made.
pub fn completed(ticket: &Ticket, completion: &Completion) -> Option<Ticket> {
    takes_completion(ticket, completion).then(|| Ticket {
        status: TicketStatus::Completed,
        error: None,
        pdf: Some(completion.pdf.clone()),
        processed_by: Some(completion.worker.clone()),
        processed_at: Some(completion.at),
        updated_at: later(completion.at, ticket.updated_at),
        ..ticket.clone()
    })
}

/// The ticket after making its PDF failed permanently.
pub fn failed(ticket: &Ticket, failure: &Failure) -> Option<Ticket> {
    (ticket.status == TicketStatus::Pending).then(|| Ticket {
        status: TicketStatus::Failed,
        error: Some(failure.reason.clone()),
        processed_by: Some(failure.worker.clone()),
        processed_at: Some(failure.at),
        updated_at: later(failure.at, ticket.updated_at),
        ..ticket.clone()
    })
}

/// The ticket after an edit by somebody who read it when its `updated_at` was `seen`; `newest_key` is
/// the key that signs for its event now.
pub fn edited(
    ticket: &Ticket,
    edit: &TicketEdit,
    seen: Timestamp,
    newest_key: Option<u32>,
    now: Timestamp,
) -> Option<Ticket> {
    if ticket.status == TicketStatus::Void || ticket.updated_at != seen {
        return None;
    }
    let (generation, signing_key) = if begins_generation(&ticket.holder, &edit.holder) {
        (ticket.generation + 1, newest_key)
    } else {
        (ticket.generation, ticket.signing_key)
    };
    Some(Ticket {
        holder: edit.holder.clone(),
        price: edit.price,
        generation,
        signing_key,
        ..pending(ticket, now)
    })
}

/// The ticket after it was issued again; `newest_key` is the key that signs for its event now.
pub fn reissued(ticket: &Ticket, newest_key: Option<u32>, now: Timestamp) -> Option<Ticket> {
    (ticket.status != TicketStatus::Void).then(|| Ticket {
        generation: ticket.generation + 1,
        signing_key: newest_key,
        ..pending(ticket, now)
    })
}

/// The ticket after it was made void.
pub fn voided(ticket: &Ticket, now: Timestamp) -> Option<Ticket> {
    (ticket.status != TicketStatus::Void).then(|| Ticket {
        status: TicketStatus::Void,
        updated_at: later(now, ticket.updated_at),
        ..ticket.clone()
    })
}

/// Returns whether no PDF of the ticket was ever made: nobody can have it.
pub fn is_unmade(ticket: &Ticket) -> bool {
    matches!(ticket.status, TicketStatus::Pending | TicketStatus::Failed) && ticket.pdf.is_none()
}

/// The ticket after its batch was cancelled.
pub fn cancelled(ticket: &Ticket, made: MadeTickets, now: Timestamp) -> Option<Ticket> {
    match made {
        MadeTickets::Keep if !is_unmade(ticket) => None,
        MadeTickets::Keep | MadeTickets::Void => voided(ticket, now),
    }
}

/// The ticket after its batch was tried again.
pub fn retried(ticket: &Ticket, now: Timestamp) -> Option<Ticket> {
    (ticket.status == TicketStatus::Failed).then(|| pending(ticket, now))
}

/// The ticket after its file was found missing, short or stale.
pub fn stale(ticket: &Ticket, now: Timestamp) -> Option<Ticket> {
    (ticket.status == TicketStatus::Completed).then(|| pending(ticket, now))
}

fn pending(ticket: &Ticket, now: Timestamp) -> Ticket {
    Ticket {
        status: TicketStatus::Pending,
        error: None,
        updated_at: later(now, ticket.updated_at),
        ..ticket.clone()
    }
}

/// The tickets of a batch, counted by status; the pending ones are the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// All tickets.
    pub total: i64,
    /// Tickets whose PDF is made.
    pub completed: i64,
    /// Tickets that failed permanently.
    pub failed: i64,
    /// Void tickets.
    pub voided: i64,
}

impl Counters {
    /// The counters after one ticket moved `from` one status `to` another; `None` stands for a ticket that
    /// does not exist.
    pub fn moved(self, from: Option<TicketStatus>, to: Option<TicketStatus>) -> Self {
        let moved = |status| i64::from(to == Some(status)) - i64::from(from == Some(status));
        Self {
            total: self.total + i64::from(to.is_some()) - i64::from(from.is_some()),
            completed: self.completed + moved(TicketStatus::Completed),
            failed: self.failed + moved(TicketStatus::Failed),
            voided: self.voided + moved(TicketStatus::Void),
        }
    }

    /// Counts tickets by their status.
    pub fn of(tickets: impl IntoIterator<Item = TicketStatus>) -> Self {
        tickets
            .into_iter()
            .fold(Self::default(), |counters, status| counters.moved(None, Some(status)))
    }
}

impl From<&Batch> for Counters {
    fn from(batch: &Batch) -> Self {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            total: number(batch.total),
            completed: number(batch.completed),
            failed: number(batch.failed),
            voided: number(batch.voided),
        }
    }
}

#[cfg(test)]
mod tests;
