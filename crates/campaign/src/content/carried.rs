//! The ticket that a message carries: as a PDF in a mail, or as a link in a text.
//!
//! It is looked at when the message is filled in, not when its recipient was imported:
//!
//! | ticket | message |
//! |---|---|
//! | made | with the PDF and the link of its present generation, and with the present name and seat |
//! | pending | waits: for a minute in its job, then with growing pauses for six hours, then fails (`ticket_not_ready`) |
//! | failed | fails (`ticket_failed`) |
//! | void | fails (`ticket_void`) |
//! | deleted | fails (`ticket_gone`) |
//! | its holder has another address | fails (`ticket_moved`): it is not sent to the former holder |
//!
//! A message that carries no ticket does not depend on one.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use stampede_channel::Attachment;
use stampede_model::campaign::{AddressKind, Channel, Content, Failure, Outcome};
use stampede_model::{Event, Ticket, TicketStatus, Timestamp};
use stampede_store::Recipient;
use stampede_ticketing::{Download, Linked};

use crate::import::{guest_address, guest_fields};
use crate::snapshot::Snapshot;
use crate::{Campaigns, Error, now, texts};

/// A link to a ticket opens for so long.
const LINK_LASTS: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// A PDF is usually made in less time than this: the message waits in its job.
const SOON: Duration = Duration::from_secs(60);
/// A PDF that is not made after this time is not waited for any more.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 60 * 60);
/// The longest pause between two looks at a PDF that is not made.
const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// What a message carries.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The PDF, for a mail.
    pub(super) attachments: Vec<Attachment>,
    /// The link.
    pub(super) url: Option<String>,
    /// The recipient's fields with those of the ticket as it is now; `None`: the recipient's own.
    pub(super) fields: Option<BTreeMap<String, String>>,
}

/// Whether a message can carry its ticket.
#[derive(Debug)]
pub(super) enum Carrying {
    /// It can.
    Ready(Carried),
    /// The PDF is being made: ask again in a moment.
    Soon,
    /// The message is not sent, or not now.
    Outcome(Outcome),
}

impl Campaigns {
    /// The ticket that the message of a recipient carries.
    pub(super) async fn carried(
        &self,
        snapshot: &Snapshot,
        recipient: &Recipient,
    ) -> Result<Carrying, Error> {
        let Snapshot { campaign, account, ready, .. } = snapshot;
        let is_attached = account.channel == Channel::Smtp
            && matches!(&campaign.content, Content::Template(template) if template.attach_ticket);
        let base = self.shared.public_url.as_deref().filter(|_| ready.links_ticket());
        let Some(id) = recipient.ticket.filter(|_| is_attached || base.is_some()) else {
            return Ok(Carrying::Ready(Carried::default()));
        };
        let Some((ticket, event)) = self.shared.ticketing.ticket_with_event(id).await? else {
            return Ok(never("ticket_gone", "the ticket was deleted"));
        };
        match ticket.status {
            TicketStatus::Completed => {}
            TicketStatus::Pending => return Ok(wait(&ticket, campaign.started_at, now())),
            TicketStatus::Void => return Ok(never("ticket_void", VOID)),
            TicketStatus::Failed => {
                return Ok(never("ticket_failed", ticket.error.as_deref().unwrap_or_default()));
            }
        }
        let present = guest_fields(&ticket, &event);
        let country = campaign.country.as_deref().or(account.country.as_deref());
        if has_moved(&recipient.fields, &present, account.channel.address_kind(), country) {
            return Ok(never("ticket_moved", MOVED));
        }
        let url = base.map(|base| self.ticket_url(base, &ticket)).transpose()?;
        let attachments = match is_attached {
            true => match self.attachment(ticket, &event).await? {
                Ok(file) => vec![file],
                Err(carrying) => return Ok(carrying),
            },
            false => Vec::new(),
        };
        // A seat that the ticket has no more is not in it.
        let mut fields = recipient.fields.clone();
        fields.remove("seat");
        fields.extend(present);
        Ok(Carrying::Ready(Carried { attachments, url, fields: Some(fields) }))
    }

    fn ticket_url(&self, base: &str, ticket: &Ticket) -> Result<String, Error> {
        let end: Timestamp = now() + LINK_LASTS;
        let token = self.shared.ticketing.link(Linked::pdf(ticket), end)?;
        Ok(format!("{base}/api/links/{token}"))
    }

    /// The PDF of a ticket, made again if it is stale.
    async fn attachment(
        &self,
        ticket: Ticket,
        event: &Event,
    ) -> Result<Result<Attachment, Carrying>, Error> {
        let id = ticket.id;
        Ok(match self.shared.ticketing.download(ticket, event).await? {
            Download::Ready(_, bytes) => Ok(Attachment {
                name: format!("ticket-{id}.pdf"),
                content_type: "application/pdf".to_owned(),
                bytes: Bytes::from(bytes),
            }),
            // It was stale, and has just become pending.
            Download::NotReady => Err(Carrying::Soon),
            Download::Void => Err(never("ticket_void", VOID)),
            Download::Failed(reason) => Err(never("ticket_failed", &reason)),
            Download::NotFound => Err(never("ticket_gone", "the ticket was deleted")),
        })
    }
}

const VOID: &str = "the ticket is void";
const MOVED: &str = "the holder of the ticket has another address than at the import; add the guests again to send it there";

fn never(code: &str, told: &str) -> Carrying {
    Carrying::Outcome(Outcome::Never(Failure::new(code, told), None))
}

/// Whether the holder of the ticket is reached elsewhere than the recipient, who was its holder.
fn has_moved(
    imported: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
    kind: AddressKind,
    country: Option<&str>,
) -> bool {
    let normal = |fields: &BTreeMap<String, String>| {
        guest_address(fields, kind).and_then(|given| texts::normalise(kind, country, given).ok())
    };
    normal(imported) != normal(present)
}

/// What becomes of a message whose PDF is not made. It waits since the ticket last changed, or the campaign started.
fn wait(ticket: &Ticket, started: Option<Timestamp>, now: Timestamp) -> Carrying {
    let since = started.map_or(ticket.updated_at, |started| started.max(ticket.updated_at));
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if waited < SOON {
        return Carrying::Soon;
    }
    let failure = Failure::new("ticket_not_ready", "the PDF of the ticket is not made");
    Carrying::Outcome(if waited < LONGEST_WAIT {
        Outcome::WaitForRecipient((waited / 2).min(LONGEST_PAUSE), failure)
    } else {
        Outcome::Never(failure, None)
    })
}

#[cfg(test)]
mod tests {
    use stampede_press::sample;

    use super::*;

    #[test]
    fn a_pdf_that_is_not_made_is_waited_for_but_not_for_ever() {
        let event = sample::event();
        let ticket = sample::ticket(&event, sample::holder(), None);
        let after = |seconds: u64| ticket.updated_at + Duration::from_secs(seconds);
        assert!(matches!(wait(&ticket, None, after(59)), Carrying::Soon));
        assert!(matches!(wait(&ticket, Some(after(86_400)), after(86_401)), Carrying::Soon));
        for (waited, pause) in [(60, 30), (600, 300), (1_200, 600), (6 * 3_600 - 1, 600)] {
            match wait(&ticket, Some(after(0)), after(waited)) {
                Carrying::Outcome(Outcome::WaitForRecipient(told, failure)) => {
                    assert_eq!(
                        (told, &*failure.code),
                        (Duration::from_secs(pause), "ticket_not_ready")
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        match wait(&ticket, None, after(6 * 3_600)) {
            Carrying::Outcome(Outcome::Never(failure, None)) => {
                assert_eq!(failure.code, "ticket_not_ready")
            }
            other => panic!("{other:?}"),
        }
        // A clock that went back.
        assert!(matches!(wait(&ticket, Some(after(9)), after(0)), Carrying::Soon));
    }

    #[test]
    fn a_ticket_is_not_sent_to_its_former_holder() {
        let fields = |mail: &str, seat: &str| -> BTreeMap<String, String> {
            [("email", mail), ("seat", seat)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let imported = fields("ann@example.com", "A-1");
        let moved = |present: &BTreeMap<String, String>, kind| {
            has_moved(&imported, present, kind, Some("RU"))
        };
        assert!(!moved(&fields("ann@example.com", "B-2"), AddressKind::Mail));
        assert!(!moved(&fields("ann@EXAMPLE.com", "A-1"), AddressKind::Mail), "another spelling");
        assert!(moved(&fields("bob@example.com", "A-1"), AddressKind::Mail));
        assert!(moved(&BTreeMap::new(), AddressKind::Mail));
        assert!(!moved(&fields("bob@example.com", "A-1"), AddressKind::Phone));
    }
}
