//! The message of one recipient: filled in, with its ticket attached or linked.
//!
//! | content | message |
//! |---|---|
//! | own | the recipient's own text, as it is |
//! | template | filled with the defaults of the template, the fields of the recipient, and `ticketUrl` and `unsubscribeUrl` |
//!
//! What cannot be filled in is an outcome: the recipient fails, or the campaign pauses, without a call of the provider.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use stampede_channel::{Attachment, Message, WhatsappTemplate};
use stampede_model::campaign::{Channel, Content, Failure, Outcome, Template};
use stampede_model::{TicketId, Timestamp};
use stampede_store::{Account, Campaign, Recipient};
use stampede_ticketing::{Download, Linked};

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
    /// There is none, or it is not attached.
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
        campaign: &Campaign,
        account: &Account,
        recipient: &Recipient,
    ) -> Result<Option<Filled>, Error> {
        let never = |code: &str, text: &str| {
            Ok(Some(Filled::Outcome(Outcome::Never(Failure::new(code, text), None))))
        };
        let owner = account.owner.clone().unwrap_or_else(|| campaign.owner.clone());
        let (account_id, address) = (account.id.clone(), recipient.address.clone());
        let unsubscribe_url = self.unsubscribe_url(&Unsubscriber { owner, account: account_id, address })?;
        let mut message = Message {
            recipient: recipient.id,
            campaign: campaign.id,
            address: recipient.address.clone(),
            fields: recipient.fields.clone(),
            subject: None,
            text: String::new(),
            html: None,
            whatsapp: None,
            attachments: Vec::new(),
            unsubscribe_url,
            attempt: recipient.attempts.max(1),
        };
        let template = match &campaign.content {
            Content::Own => {
                let Some(own) = &recipient.message else {
                    return never("no_message", "the recipient has no message of its own");
                };
                message.text.clone_from(own);
                if account.channel == Channel::Smtp {
                    message.subject = Some(campaign.name.clone());
                }
                return Ok(Some(Filled::Message(Box::new(message))));
            }
            Content::Template(template) => template,
        };
        match self.ticket(template, account.channel, recipient.ticket).await? {
            Ticket::None => {}
            Ticket::Pdf(file) => message.attachments.push(file),
            Ticket::NotReady => return Ok(None),
            Ticket::Unfit(failure) => {
                return Ok(Some(Filled::Outcome(Outcome::Never(failure, None))));
            }
        }
        let fields = self.fields(template, recipient, message.unsubscribe_url.as_deref()).await?;
        let filled = match texts::fill(template, &fields) {
            Ok(filled) => filled,
            Err(wrong) => {
                let failure = Failure::new("template", &wrong);
                return Ok(Some(Filled::Outcome(Outcome::Content(failure))));
            }
        };
        message.subject = filled.subject;
        message.text = filled.text;
        message.html = filled.html;
        message.whatsapp = template.whatsapp_template.clone().map(|name| WhatsappTemplate {
            name,
            language: template.whatsapp_language.clone().unwrap_or_else(|| "en_US".to_owned()),
            values: filled.whatsapp_values,
        });
        Ok(Some(Filled::Message(Box::new(message))))
    }

    /// Everything that a template may name.
    pub(crate) async fn fields(
        &self,
        template: &Template,
        recipient: &Recipient,
        unsubscribe_url: Option<&str>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut fields = template.defaults.clone();
        for (name, value) in &recipient.fields {
            // A default is for fields that are empty, too.
            if !value.is_empty() || !fields.contains_key(name) {
                fields.insert(name.clone(), value.clone());
            }
        }
        fields.insert("address".to_owned(), recipient.address.clone());
        if let Some(url) = unsubscribe_url {
            fields.insert("unsubscribeUrl".to_owned(), url.to_owned());
        }
        if let Some(url) = self.ticket_url(recipient.ticket).await? {
            fields.insert("ticketUrl".to_owned(), url);
        }
        Ok(fields)
    }

    async fn ticket_url(&self, ticket: Option<TicketId>) -> Result<Option<String>, Error> {
        let (Some(id), Some(base)) = (ticket, &self.shared.public_url) else { return Ok(None) };
        let Some(ticket) = self.shared.ticketing.ticket(id).await? else { return Ok(None) };
        let end: Timestamp = now() + LINK_LASTS;
        let token = self.shared.ticketing.link(Linked::pdf(&ticket), end)?;
        Ok(Some(format!("{base}/api/links/{token}")))
    }

    /// The ticket that is attached to a mail.
    async fn ticket(
        &self,
        template: &Template,
        channel: Channel,
        id: Option<TicketId>,
    ) -> Result<Ticket, Error> {
        let Some(id) = id.filter(|_| template.attach_ticket && channel == Channel::Smtp) else {
            return Ok(Ticket::None);
        };
        let ticketing = &self.shared.ticketing;
        let gone = || Ticket::Unfit(Failure::new("ticket_gone", "the ticket was deleted"));
        let Some((ticket, event)) = ticketing.ticket_with_event(id).await? else { return Ok(gone()) };
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
        let Content::Template(template) = &campaign.content else { return Vec::new() };
        let mut mistakes: Vec<Mistake> = texts::mistakes(template)
            .into_iter()
            .map(|wrong| {
                let place = match (wrong.line, wrong.column) {
                    (Some(line), Some(column)) => format!("line {line}, column {column}: "),
                    _ => String::new(),
                };
                Mistake::new(format!("content.{}", wrong.part), format!("{place}{}", wrong.message))
            })
            .collect();
        mistakes.extend(missing_part(template, account.channel));
        mistakes
    }

    /// Why the content of a campaign cannot be sent, each a sentence.
    pub(crate) fn content_problems(&self, campaign: &Campaign, account: &Account) -> Vec<String> {
        let mistakes = self.content_mistakes(campaign, account);
        mistakes.into_iter().map(|wrong| format!("{} {}", wrong.field, wrong.message)).collect()
    }
}

/// The part of a template that its channel cannot do without.
fn missing_part(template: &Template, channel: Channel) -> Option<Mistake> {
    let is_empty = |part: &Option<String>| part.as_ref().is_none_or(|part| part.trim().is_empty());
    let mistake = |field: &str, told: &str| Some(Mistake::new(format!("content.{field}"), told));
    let has_no_text = is_empty(&template.text) && is_empty(&template.html);
    match channel {
        Channel::Smtp if is_empty(&template.subject) => {
            mistake("subject", "is missing: a mail has a subject")
        }
        Channel::Whatsapp if template.whatsapp_template.is_some() => None,
        _ if has_no_text => mistake("text", "is missing"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_names_the_part_that_is_missing() {
        let template = Template::default();
        let field = |template: &Template, channel| {
            missing_part(template, channel).map(|mistake| mistake.field)
        };
        assert_eq!(field(&template, Channel::Smtp).as_deref(), Some("content.subject"));
        assert_eq!(field(&template, Channel::Sms).as_deref(), Some("content.text"));
        let approved = Template { whatsapp_template: Some("hello".into()), ..template.clone() };
        assert_eq!(field(&approved, Channel::Whatsapp), None);
        let html = Some("<p>Hi</p>".to_owned());
        let mail = Template { subject: Some("Hi".into()), html, ..template };
        assert_eq!(field(&mail, Channel::Smtp), None);
    }
}
