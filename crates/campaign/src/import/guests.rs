//! Guests as recipients: one for each ticket, at the address of its holder that the channel of the campaign uses.
//!
//! | addresses of the channel | the holder's |
//! |---|---|
//! | telephone numbers | `phoneNumber` |
//! | mail | `email` |
//! | chats | `chatId` |
//! | any | `email`, else `phoneNumber`, else `chatId` |
//!
//! A holder without that address becomes a recipient that is skipped, and is reported with the number of the ticket. Void
//! tickets are left out and counted.

use std::collections::BTreeMap;

use stampede_model::campaign::{AddressKind, SkipReason};
use stampede_model::{BatchId, CampaignId, Event, EventId, RecipientId, Ticket, TicketStatus};
use stampede_store::{NewRecipient, TicketFilter};

use super::{Imported, Importing, PIECE, Purpose};
use crate::{Campaigns, Error, texts};

/// The fields of a guest that hold addresses.
const MAIL: &str = "email";
const PHONE: &str = "phoneNumber";
const CHAT: &str = "chatId";

/// The fields that guests can have.
const FIELDS: [&str; 6] = ["name", "event", "seat", MAIL, PHONE, CHAT];

/// Guests who become recipients: one for each ticket, at the address of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guests {
    /// Of all tickets of an event.
    OfEvent(EventId),
    /// Of all tickets of an order.
    OfBatch(BatchId),
}

impl Campaigns {
    /// Adds the guests of an event or an order of the campaign's owner: one recipient for each ticket, at the address of its
    /// holder. Holders without an address are reported, and void tickets left out.
    pub async fn import_guests(
        &self,
        id: CampaignId,
        guests: Guests,
        purpose: Purpose,
    ) -> Result<Imported, Error> {
        let mut importing = match self.begin(id, purpose).await? {
            Ok(importing) => importing,
            Err(refused) => return Ok(refused),
        };
        let added = self.add_guests(&mut importing, guests).await;
        importing.close(added).await
    }

    /// Adds guests; `Some`: they are refused, and none stays.
    async fn add_guests(
        &self,
        importing: &mut Importing,
        guests: Guests,
    ) -> Result<Option<Imported>, Error> {
        let ticketing = &self.shared.ticketing;
        let (event, batch) = match guests {
            Guests::OfEvent(event) => (Some(event), None),
            Guests::OfBatch(batch) => {
                (ticketing.batch(batch).await?.map(|found| found.event_id), Some(batch))
            }
        };
        let event = match event {
            Some(event) => ticketing.event(event).await?,
            None => None,
        };
        let Some(event) = event.filter(|event| event.owner == importing.campaign().owner) else {
            importing.undo().await?;
            return Ok(Some(Imported::NoSuchGuests));
        };
        let filter = TicketFilter { batch, event: Some(event.id), ..TicketFilter::default() };
        let (kind, country) = importing.addresses();
        importing.know(FIELDS.into_iter());
        let mut after = None;
        loop {
            let page = self.shared.store.tickets(&filter, after, PIECE as u32).await?;
            after = page.last().map(|ticket| ticket.id);
            let is_last = page.len() < PIECE;
            let piece: Vec<NewRecipient> = page
                .iter()
                .filter(|ticket| ticket.status != TicketStatus::Void)
                .map(|ticket| guest(ticket, &event, kind, country.as_deref()))
                .collect();
            importing.leave_out(page.len() - piece.len());
            if let Some(refused) = importing.add(&piece).await? {
                return Ok(Some(refused));
            }
            if is_last {
                importing.note_guests(event.id, batch).await?;
                return Ok(None);
            }
        }
    }
}

/// The fields of the holder of a ticket.
pub(crate) fn fields(ticket: &Ticket, event: &Event) -> BTreeMap<String, String> {
    let holder = &ticket.holder;
    let mut fields = BTreeMap::from([
        ("name".to_owned(), holder.name.clone()),
        ("event".to_owned(), event.details.name.clone()),
    ]);
    for (field, value) in [
        ("seat", &holder.seat),
        (MAIL, &holder.email),
        (PHONE, &holder.phone),
        (CHAT, &holder.chat),
    ] {
        fields.extend(value.clone().map(|value| (field.to_owned(), value)));
    }
    fields
}

/// The address of a guest with these fields, as it was given.
pub(crate) fn address(fields: &BTreeMap<String, String>, kind: AddressKind) -> Option<&str> {
    let names: &[&str] = match kind {
        AddressKind::Phone => &[PHONE],
        AddressKind::Mail => &[MAIL],
        AddressKind::Chat => &[CHAT],
        AddressKind::Any => &[MAIL, PHONE, CHAT],
    };
    names.iter().find_map(|name| fields.get(*name)).map(String::as_str)
}

/// A ticket as a recipient.
fn guest(ticket: &Ticket, event: &Event, kind: AddressKind, country: Option<&str>) -> NewRecipient {
    let fields = fields(ticket, event);
    let number = ticket.serial;
    let (address, skip) = match address(&fields, kind) {
        None => {
            let missing = match kind {
                AddressKind::Phone => "telephone number",
                AddressKind::Mail => "mail address",
                AddressKind::Chat => "chat of Telegram",
                AddressKind::Any => "address",
            };
            let wrong = format!("ticket {number}: its holder has no {missing}");
            (ticket.id.to_string(), Some((SkipReason::Invalid, wrong)))
        }
        Some(written) => match texts::normalise(kind, country, written) {
            Ok(address) => (address, None),
            Err(wrong) => {
                let wrong = format!("ticket {number}: {written:?} {wrong}");
                (written.to_owned(), Some((SkipReason::Invalid, wrong)))
            }
        },
    };
    NewRecipient {
        id: RecipientId::generate(),
        address,
        fields,
        message: None,
        time_zone: None,
        ticket: Some(ticket.id),
        line: None,
        skip,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stampede_model::Holder;
    use stampede_press::sample;

    use super::*;

    fn guest_of(holder: Holder, kind: AddressKind, country: Option<&str>) -> NewRecipient {
        let event = sample::event();
        let ticket = Ticket { serial: 17, ..sample::ticket(&event, holder, None) };
        guest(&ticket, &event, kind, country)
    }

    fn zoe() -> Holder {
        Holder {
            name: "Zoë".to_owned(),
            email: Some("zoe@Example.com".to_owned()),
            phone: Some("8 999 123-45-67".to_owned()),
            chat: Some("@Zoe_P".to_owned()),
            seat: Some("A-1".to_owned()),
        }
    }

    #[test]
    fn a_guest_is_reached_where_the_channel_sends() {
        let event = sample::event();
        let ticket = sample::ticket(&event, zoe(), None);
        let known = fields(&ticket, &event);
        assert!(known.keys().eq(&BTreeSet::from(FIELDS.map(str::to_owned))), "{known:?}");
        for (kind, address) in [
            (AddressKind::Phone, "+79991234567"),
            (AddressKind::Mail, "zoe@example.com"),
            (AddressKind::Chat, "@zoe_p"),
            (AddressKind::Any, "zoe@example.com"),
        ] {
            let guest = guest_of(zoe(), kind, Some("RU"));
            assert_eq!((guest.address.as_str(), &guest.skip), (address, &None), "{kind:?}");
            assert_eq!(
                (guest.fields["name"].as_str(), guest.fields["seat"].as_str()),
                ("Zoë", "A-1")
            );
        }
        let holder = Holder { email: None, ..zoe() };
        assert_eq!(guest_of(holder, AddressKind::Any, Some("RU")).address, "+79991234567");
        let holder = Holder { email: None, phone: None, ..zoe() };
        assert_eq!(guest_of(holder, AddressKind::Any, None).address, "@Zoe_P");
    }

    #[test]
    fn a_guest_without_an_address_is_told_with_the_number_of_the_ticket() {
        let nobody = Holder { name: "Bob".to_owned(), ..Holder::default() };
        for (kind, told) in [
            (AddressKind::Phone, "ticket 17: its holder has no telephone number"),
            (AddressKind::Mail, "ticket 17: its holder has no mail address"),
            (AddressKind::Chat, "ticket 17: its holder has no chat of Telegram"),
            (AddressKind::Any, "ticket 17: its holder has no address"),
        ] {
            let guest = guest_of(nobody.clone(), kind, None);
            assert_eq!(guest.skip, Some((SkipReason::Invalid, told.to_owned())));
            assert_eq!(guest.ticket.map(|id| id.to_string()), Some(guest.address));
        }
        let wrong = Holder { phone: Some("12".to_owned()), ..nobody };
        let (_, told) = guest_of(wrong, AddressKind::Phone, None).skip.unwrap();
        assert!(told.starts_with("ticket 17: \"12\" has too few digits"), "{told}");
    }
}
