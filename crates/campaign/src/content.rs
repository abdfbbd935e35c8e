//! The message of one recipient: filled in, with its ticket attached or linked.
//!
//! | content | message |
//! |---|---|
//! | own | the recipient's own text, as it is |
//! | template | filled with the defaults of the template, the fields of the recipient, and `ticketUrl` and `unsubscribeUrl` |
//!
//! What cannot be filled in is an outcome: the recipient fails, or the campaign pauses, without a call of the provider.

use std::time::Duration;

use bytes::Bytes;
use stampede_audience::BuiltIns;
use stampede_channel::{Attachment, Message, WhatsappTemplate};
use stampede_model::campaign::{Channel, Content, Failure, Outcome};
use stampede_model::{TicketId, Timestamp};
use stampede_store::{Account, Campaign, Recipient};
use stampede_ticketing::{Download, Linked};
use stampede_wire::campaigns::TemplateMistake;

use crate::snapshot::Snapshot;
use crate::unsubscribe::Unsubscriber;
use crate::{Campaigns, Error, Mistake, now, texts};

/// A link to a ticket opens for so long.
const LINK_LASTS: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// What a recipient gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filled {
    /// This message.
    Message(Box<Message>),
    /// No message: it cannot be filled in.
    Outcome(Outcome),
}

/// The ticket of a recipient.
enum Ticket {
    /// There is none.
    None,
    /// Its PDF.
    Pdf(Attachment),
    /// It is being made.
    NotReady,
    /// It cannot be sent, for this reason.
    Unfit(Failure),
}

impl Campaigns {
    /// The message of a recipient; `None`: its PDF is being made, ask again later.
    pub(crate) async fn fill(
        &self,
        snapshot: &Snapshot,
        recipient: &Recipient,
    ) -> Result<Option<Filled>, Error> {
        let Snapshot { campaign, account, ready, .. } = snapshot;
        let template = match &campaign.content {
            Content::Template(template) => Some(template),
            Content::Own => None,
        };
        let is_attached = template.is_some_and(|template| template.attach_ticket);
        let mut attachments = Vec::new();
        if is_attached && account.channel == Channel::Smtp {
            match self.ticket(recipient.ticket).await? {
                Ticket::None => {}
                Ticket::Pdf(file) => attachments.push(file),
                Ticket::NotReady => return Ok(None),
                Ticket::Unfit(failure) => {
                    return Ok(Some(Filled::Outcome(Outcome::Never(failure, None))));
                }
            }
        }
        let unsubscribe_url = self.unsubscribe_url(&Unsubscriber {
            owner: account.owner.clone().unwrap_or_else(|| campaign.owner.clone()),
            account: account.id.clone(),
            address: recipient.address.clone(),
        })?;
        let ticket_url = self.ticket_url(recipient.ticket).await?;
        let built_ins = BuiltIns {
            address: &recipient.address,
            ticket_url: ticket_url.as_deref(),
            unsubscribe_url: unsubscribe_url.as_deref(),
        };
        let texts = match ready.fill(recipient.message.as_deref(), &recipient.fields, &built_ins) {
            Ok(texts) => texts,
            Err(outcome) => return Ok(Some(Filled::Outcome(outcome))),
        };
        let whatsapp = template.and_then(|template| {
            Some(WhatsappTemplate {
                name: template.whatsapp_template.clone()?,
                language: template.whatsapp_language.clone()?,
                values: texts.whatsapp_values,
            })
        });
        // A mail has a subject, and a message of one's own has none.
        let subject = texts
            .subject
            .or_else(|| (account.channel == Channel::Smtp).then(|| campaign.name.clone()));
        Ok(Some(Filled::Message(Box::new(Message {
            recipient: recipient.id,
            campaign: campaign.id,
            address: recipient.address.clone(),
            fields: recipient.fields.clone(),
            subject,
            text: texts.text,
            html: texts.html,
            whatsapp,
            attachments,
            unsubscribe_url,
            attempt: recipient.attempts.max(1),
        }))))
    }

    async fn ticket_url(&self, ticket: Option<TicketId>) -> Result<Option<String>, Error> {
        let (Some(id), Some(base)) = (ticket, &self.shared.public_url) else { return Ok(None) };
        let Some(ticket) = self.shared.ticketing.ticket(id).await? else { return Ok(None) };
        let end: Timestamp = now() + LINK_LASTS;
        let token = self.shared.ticketing.link(Linked::pdf(&ticket), end)?;
        Ok(Some(format!("{base}/api/links/{token}")))
    }

    /// The ticket that is attached to a mail.
    async fn ticket(&self, id: Option<TicketId>) -> Result<Ticket, Error> {
        let Some(id) = id else { return Ok(Ticket::None) };
        let ticketing = &self.shared.ticketing;
        let gone = || Ticket::Unfit(Failure::new("ticket_gone", "the ticket was deleted"));
        let Some((ticket, event)) = ticketing.ticket_with_event(id).await? else {
            return Ok(gone());
        };
        Ok(match ticketing.download(ticket, &event).await? {
            Download::Ready(_, bytes) => Ticket::Pdf(Attachment {
                name: format!("ticket-{id}.pdf"),
                content_type: "application/pdf".to_owned(),
                bytes: Bytes::from(bytes),
            }),
            Download::NotReady => Ticket::NotReady,
            Download::Void => Ticket::Unfit(Failure::new("ticket_void", "the ticket is void")),
            Download::Failed(reason) => Ticket::Unfit(Failure::new("ticket_failed", &reason)),
            Download::NotFound => gone(),
        })
    }

    /// What is wrong with the content of a campaign, for whoever writes it.
    pub(crate) fn content_mistakes(&self, campaign: &Campaign, account: &Account) -> Vec<Mistake> {
        let ready = texts::ready(campaign, account.channel);
        let mistake = |wrong: &TemplateMistake| {
            let place = match (wrong.line, wrong.column) {
                (Some(line), Some(column)) => format!("line {line}, column {column}: "),
                _ => String::new(),
            };
            Mistake::new(format!("content.{}", wrong.part), format!("{place}{}", wrong.message))
        };
        ready.mistakes().iter().map(mistake).collect()
    }

    /// Why the content of a campaign cannot be sent, each a sentence.
    pub(crate) fn content_problems(&self, campaign: &Campaign, account: &Account) -> Vec<String> {
        texts::ready(campaign, account.channel).mistakes().iter().map(texts::sentence).collect()
    }
}
