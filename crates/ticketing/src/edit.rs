//! Editing a ticket: its PDF is made again.

use std::sync::Arc;

use stampede_model::{Holder, Money, Ticket, TicketId, TicketStatus, Timestamp};
use stampede_store::{Edited, TicketEdit};

use crate::preflight::{Checked, Strictness, Warnings};
use crate::ticketing::now;
use crate::{Error, Ticketing};

/// Attempts of an edit while others change the same ticket.
const TRIES: u32 = 10;

/// New values of a ticket; an outer `None` keeps the value, an inner `None` clears it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TicketPatch {
    /// The holder's name.
    pub name: Option<String>,
    /// The holder's address for mail.
    pub email: Option<Option<String>>,
    /// The holder's telephone number.
    pub phone: Option<Option<String>>,
    /// The holder's chat of Telegram.
    pub chat: Option<Option<String>>,
    /// The holder's seat.
    pub seat: Option<Option<String>>,
    /// The price.
    pub price: Option<Option<Money>>,
}

/// What became of an edit.
#[derive(Debug, Clone)]
pub enum Edit {
    /// The ticket is changed, and its PDF is being made again.
    Done(Box<Ticket>, Warnings),
    /// The ticket said so before, and its PDF is ready: nothing was changed.
    Same(Box<Ticket>),
    /// The request is strict, and the ticket would not come out well. Nothing was changed.
    RefusedByWarnings(Warnings),
    /// The ticket is void and cannot be changed.
    Void,
    /// There is no such ticket.
    NotFound,
    /// Others keep changing the ticket; the caller may try again.
    Busy,
    /// The ticket has another version than the one that was seen.
    ChangedMeanwhile,
}

impl TicketPatch {
    fn applied_to(&self, ticket: &Ticket) -> TicketEdit {
        let holder = Holder {
            name: self.name.clone().unwrap_or_else(|| ticket.holder.name.clone()),
            email: self.email.clone().unwrap_or_else(|| ticket.holder.email.clone()),
            phone: self.phone.clone().unwrap_or_else(|| ticket.holder.phone.clone()),
            chat: self.chat.clone().unwrap_or_else(|| ticket.holder.chat.clone()),
            seat: self.seat.clone().unwrap_or_else(|| ticket.holder.seat.clone()),
        };
        TicketEdit { holder, price: self.price.unwrap_or(ticket.price) }
    }
}

impl Ticketing {
    /// Changes what a ticket says. An edit never undoes another one: it is applied to the newest values, or with `wanted`
    /// only to that version of the ticket.
    pub async fn edit(
        &self,
        id: TicketId,
        patch: &TicketPatch,
        strictness: Strictness,
        wanted: Option<Timestamp>,
    ) -> Result<Edit, Error> {
        for _ in 0..TRIES {
            let Some((ticket, event)) = self.ticket_with_event(id).await? else {
                return Ok(Edit::NotFound);
            };
            if wanted.is_some_and(|wanted| wanted != ticket.updated_at) {
                return Ok(Edit::ChangedMeanwhile);
            }
            // The price was read in the event's currency, which somebody has changed since.
            let currency = patch.price.flatten().map(|price| price.currency());
            if currency.is_some_and(|currency| currency != event.details.currency) {
                return Ok(Edit::Busy);
            }
            let edit = patch.applied_to(&ticket);
            let same = edit.holder == ticket.holder && edit.price == ticket.price;
            if same && ticket.status == TicketStatus::Completed {
                return Ok(Edit::Same(Box::new(ticket)));
            }
            let seen = ticket.updated_at;
            let edited = Ticket { holder: edit.holder.clone(), price: edit.price, ..ticket };
            let warnings = match self.preflight(event, &Arc::new([edited]), strictness).await? {
                Checked::Accepted(warnings) => warnings,
                Checked::Refused(warnings) => return Ok(Edit::RefusedByWarnings(warnings)),
            };
            match self.shared.store.edit_ticket(id, &edit, seen, now()).await? {
                Edited::Changed(ticket, batch) => {
                    self.shared.announcer.write_now(&batch).await;
                    self.enqueue_again(std::slice::from_ref(&ticket)).await;
                    return Ok(Edit::Done(ticket, warnings));
                }
                Edited::Void => return Ok(Edit::Void),
                Edited::NotFound => return Ok(Edit::NotFound),
                Edited::ChangedMeanwhile => {}
            }
        }
        Ok(Edit::Busy)
    }
}

#[cfg(test)]
mod tests {
    use stampede_press::sample;

    use super::*;

    #[test]
    fn a_patch_keeps_clears_and_replaces() {
        let event = sample::event();
        let ticket = sample::ticket(&event, sample::holder(), sample::price(&event));
        assert_eq!(TicketPatch::default().applied_to(&ticket).holder, ticket.holder);
        let patch = TicketPatch {
            name: Some("Bob".to_owned()),
            seat: Some(None),
            price: Some(None),
            ..TicketPatch::default()
        };
        let TicketEdit { holder, price } = patch.applied_to(&ticket);
        assert_eq!((holder.name.as_str(), holder.seat, price), ("Bob", None, None));
        assert_eq!(holder.email, ticket.holder.email);
    }
}
