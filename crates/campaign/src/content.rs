//! The message of one recipient: filled in, with its ticket attached or linked.
//!
//! | content | message |
//! |---|---|
//! | own | the recipient's own text, as it is |
//! | template | filled with the defaults of the template, the fields of the recipient, and `ticketUrl` and `unsubscribeUrl` |
//!
//! The ticket in it is that of the moment (`content/carried.rs`). What is wrong with the content of a campaign is told before anything is
//! sent (`content/problems.rs`). What cannot be filled in is an outcome: the recipient fails, or
//! the campaign pauses, without a call of the provider.

mod carried;
mod problems;

use stampede_audience::BuiltIns;
use stampede_channel::{Message, WhatsappTemplate};
use stampede_model::campaign::{Channel, Content, Outcome};
use stampede_store::Recipient;

use self::carried::Carrying;
pub(crate) use self::problems::{mistakes, no_tickets, sends_tickets};
use crate::snapshot::Snapshot;
use crate::unsubscribe::Unsubscriber;
use crate::{Campaigns, Error};

/// What a recipient gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filled {
    /// This message.
    Message(Box<Message>),
    /// No message: it cannot be filled in.
    Outcome(Outcome),
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
        let carried = match self.carried(snapshot, recipient).await? {
            Carrying::Ready(carried) => carried,
            Carrying::Soon => return Ok(None),
            Carrying::Outcome(outcome) => return Ok(Some(Filled::Outcome(outcome))),
        };
        let fields = carried.fields.as_ref().unwrap_or(&recipient.fields);
        let unsubscribe_url = self.unsubscribe_url(&Unsubscriber {
            owner: account.owner.clone().unwrap_or_else(|| campaign.owner.clone()),
            account: account.id.clone(),
            address: recipient.address.clone(),
        })?;
        let built_ins = BuiltIns {
            address: &recipient.address,
            ticket_url: carried.url.as_deref(),
            unsubscribe_url: unsubscribe_url.as_deref(),
        };
        let texts = match ready.fill(recipient.message.as_deref(), fields, &built_ins) {
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
            fields: fields.clone(),
            subject,
            text: texts.text,
            html: texts.html,
            whatsapp,
            attachments: carried.attachments,
            unsubscribe_url,
            attempt: recipient.attempts.max(1),
        }))))
    }
}
