//! What is wrong with the content of a campaign, before anything is sent.

use std::collections::BTreeSet;

use stampede_model::CampaignId;
use stampede_model::campaign::{Channel, Content};
use stampede_store::{Account, Campaign, FIELD_NAMES_KEPT};
use stampede_wire::campaigns::TemplateMistake;

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
        let has_recipients = campaign.counts.open() > 0 && campaign.importing.is_none();
        if campaign.content == Content::Own && has_recipients {
            problems.extend(self.no_content(campaign).await?);
        }
        Ok(problems)
    }

    /// What is wrong with a campaign without a template if no recipient that is left has a message of its own.
    pub(crate) async fn no_content(&self, campaign: &Campaign) -> Result<Option<String>, Error> {
        let has_messages = self.shared.store.has_messages(campaign.id).await?;
        Ok((!has_messages).then(|| NO_CONTENT.to_owned()))
    }
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
