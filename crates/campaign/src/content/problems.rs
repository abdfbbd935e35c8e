//! What is wrong with the content of a campaign, before anything is sent.

use std::collections::BTreeSet;

use stampede_model::CampaignId;
use stampede_model::campaign::{Channel, Content, Template};
use stampede_store::{Account, Campaign, FIELD_NAMES_KEPT};
use stampede_wire::campaigns::TemplateMistake;

use crate::texts::Ready;
use crate::{Campaigns, Error, Mistake, texts};

/// A campaign whose recipients bring no messages, and that has none for them.
const NO_CONTENT: &str =
    "no recipient has a message of its own, and the campaign has no template; give it content";

impl Campaigns {
    /// The fields that the recipients of a campaign have; `None`: there is no such campaign, or nobody can say.
    pub async fn fields_of(&self, id: CampaignId) -> Result<Option<BTreeSet<String>>, Error> {
        match self.shared.store.campaign(id).await? {
            Some(campaign) => self.known_fields(&campaign).await,
            None => Ok(None),
        }
    }

    /// The fields that the recipients of a campaign have; `None`: it has no recipients, they are being imported, or they have more
    /// different fields than are kept.
    pub(crate) async fn known_fields(
        &self,
        campaign: &Campaign,
    ) -> Result<Option<BTreeSet<String>>, Error> {
        if campaign.counts.total() == 0 || campaign.importing.is_some() {
            return Ok(None);
        }
        let names = self.shared.store.recipient_fields(campaign.id).await?;
        Ok((names.len() < FIELD_NAMES_KEPT).then_some(names))
    }

    /// Mistakes in the template of a campaign; fields that no recipient has are among them.
    pub(crate) async fn template_mistakes(
        &self,
        campaign: &Campaign,
        channel: Channel,
    ) -> Result<Vec<TemplateMistake>, Error> {
        if campaign.content == Content::Own {
            return Ok(Vec::new());
        }
        let known = self.known_fields(campaign).await?;
        Ok(texts::mistakes(campaign, channel, known.as_ref()))
    }

    /// Why the content of a campaign cannot be sent, each a sentence.
    pub(crate) async fn content_problems(
        &self,
        campaign: &Campaign,
        account: &Account,
    ) -> Result<Vec<String>, Error> {
        let mistakes = self.template_mistakes(campaign, account.channel).await?;
        let mut problems: Vec<String> = mistakes.iter().map(texts::sentence).collect();
        let ready = texts::ready(campaign, account.channel);
        if ready.links_ticket() && self.shared.public_url.is_none() {
            problems.push("the texts link tickets, but PUBLIC_URL is not set".to_owned());
        }
        problems.extend(self.without_ticket(campaign, account, &ready).await?);
        let has_recipients = campaign.counts.open() > 0 && campaign.importing.is_none();
        if campaign.content == Content::Own && has_recipients {
            problems.extend(self.no_content(campaign).await?);
        }
        Ok(problems)
    }

    /// The problem of a campaign that sends tickets to recipients without a ticket: their messages would lack the attachment, or have
    /// an empty link.
    async fn without_ticket(
        &self,
        campaign: &Campaign,
        account: &Account,
        ready: &Ready,
    ) -> Result<Option<String>, Error> {
        let Some(what) = sends_tickets(campaign, account.channel, ready) else { return Ok(None) };
        let recipients = self.shared.store.without_ticket(campaign.id).await?;
        Ok((recipients > 0).then(|| no_tickets(recipients, what)))
    }

    /// What is wrong with a campaign without a template if no recipient that is left has a message of its own.
    pub(crate) async fn no_content(&self, campaign: &Campaign) -> Result<Option<String>, Error> {
        let has_messages = self.shared.store.has_messages(campaign.id).await?;
        Ok((!has_messages).then(|| NO_CONTENT.to_owned()))
    }
}

/// What of a campaign needs the tickets of its recipients; `None`: nothing does.
pub(crate) fn sends_tickets(
    campaign: &Campaign,
    channel: Channel,
    ready: &Ready,
) -> Option<&'static str> {
    let Content::Template(template) = &campaign.content else { return None };
    if template.attach_ticket && channel == Channel::Smtp {
        return Some("attachTicket is set");
    }
    let is_linked = ready.links_ticket() && !asks_for_ticket(template);
    is_linked.then_some("the texts have {{ ticketUrl }}")
}

/// That recipients have no ticket, and what to do.
pub(crate) fn no_tickets(recipients: u64, what: &str) -> String {
    let have = if recipients == 1 { "recipient has" } else { "recipients have" };
    format!(
        "{recipients} {have} no ticket, but {what}; add them as guests of their event, or take the ticket out of the content"
    )
}

/// Whether a template asks if there is a ticket, so that recipients without one get another text.
fn asks_for_ticket(template: &Template) -> bool {
    let parts = [&template.subject, &template.text, &template.html].into_iter().flatten();
    parts.chain(&template.whatsapp_values).any(|part| {
        let mut tags = part.split("{%").skip(1).filter_map(|rest| rest.split("%}").next());
        tags.any(|tag| tag.contains("ticketUrl"))
    })
}

/// What is wrong with the content of a campaign, for whoever writes it. Without a channel, only what has a place in a template:
/// which parts there must be depends on the channel. `known`: the fields of its recipients, if there are some.
pub(crate) fn mistakes(
    campaign: &Campaign,
    channel: Option<Channel>,
    known: Option<&BTreeSet<String>>,
) -> Vec<Mistake> {
    let mistakes = texts::mistakes(campaign, channel.unwrap_or(Channel::Console), known);
    let counts = |wrong: &TemplateMistake| channel.is_some() || wrong.line.is_some();
    let mistake = |wrong: TemplateMistake| {
        let place = match (wrong.line, wrong.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            _ => String::new(),
        };
        Mistake::new(format!("content.{}", wrong.part), format!("{place}{}", wrong.message))
    };
    mistakes.into_iter().filter(counts).map(mistake).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_asks_whether_there_is_a_ticket_is_for_everybody() {
        let asks = |text: &str| {
            asks_for_ticket(&Template { text: Some(text.to_owned()), ..Template::default() })
        };
        assert!(asks(
            "{% if ticketUrl %}Ticket: {{ ticketUrl }}{% else %}Ask at the door{% endif %}"
        ));
        assert!(asks("{%- unless ticketUrl == \"\" -%}{{ ticketUrl }}{%- endunless -%}"));
        assert!(!asks("{% if name %}{{ name }}, {% endif %}{{ ticketUrl }}"));
    }

    #[test]
    fn it_is_told_how_many_recipients_have_no_ticket() {
        assert!(no_tickets(1, "attachTicket is set").starts_with("1 recipient has no ticket, but"));
        assert!(
            no_tickets(3, "attachTicket is set").starts_with("3 recipients have no ticket, but")
        );
    }
}
