//! What a campaign would do: validate, preview, test messages. Nothing of the campaign is changed.
//!
//! | file | holds |
//! |---|---|
//! | this one | the preview |
//! | `validate.rs` | everything that can be known before the start |
//! | `test_send.rs` | messages to other addresses |

mod test_send;
mod validate;

use stampede_audience::BuiltIns;
use stampede_model::CampaignId;
use stampede_model::campaign::{Channel, Content};
use stampede_store::{Account, Campaign, Recipient, RecipientFilter};
use stampede_wire::campaigns::{Preview, TemplateMistake};

pub use self::test_send::{MOST_TESTS, Tested};
use crate::texts::{self, NoTexts, Ready, Texts};
use crate::{Campaigns, Error};

/// Stands for the link of a recipient in previews: nobody is unsubscribed by a preview.
const SAMPLE_URL: &str = "https://example.com/preview";

/// The result of a preview.
#[derive(Debug, Clone)]
pub enum Previewed {
    /// The message.
    Done(Box<Preview>),
    /// The template has mistakes.
    Mistaken(Vec<TemplateMistake>),
    /// There is no such campaign, or no recipient at that position.
    NotFound,
}

impl Campaigns {
    /// The message of the recipient at a position, as it would be sent. One that is too long is shown with its length.
    pub async fn preview(&self, id: CampaignId, position: u64) -> Result<Previewed, Error> {
        let Some((campaign, account, recipient)) = self.sample(id, Some(position)).await? else {
            return Ok(Previewed::NotFound);
        };
        let mistakes = self.template_mistakes(&campaign, account.channel).await?;
        if !mistakes.is_empty() {
            return Ok(Previewed::Mistaken(mistakes));
        }
        let ready = texts::ready(&campaign, account.channel);
        let template = match &campaign.content {
            Content::Template(template) => Some(template),
            Content::Own => None,
        };
        let mut attachments = Vec::new();
        if template.is_some_and(|template| template.attach_ticket)
            && account.channel == Channel::Smtp
        {
            attachments.extend(recipient.ticket.map(|ticket| format!("ticket-{ticket}.pdf")));
        }
        let empty_fields = ready.missing(&recipient.fields);
        let texts = match texts_of(&ready, &recipient) {
            Ok(texts) => texts,
            Err(wrong) => {
                let (part, message) = ("message".to_owned(), wrong.to_string());
                let mistake = TemplateMistake { part, line: None, column: None, message };
                return Ok(Previewed::Mistaken(vec![mistake]));
            }
        };
        let size = texts::size(account.channel, &texts);
        Ok(Previewed::Done(Box::new(Preview {
            recipient_id: recipient.id,
            position: recipient.position,
            address: recipient.address,
            subject: texts.subject,
            text: texts.text,
            html: texts.html,
            whatsapp_template: template.and_then(|template| template.whatsapp_template.clone()),
            whatsapp_language: template.and_then(|template| template.whatsapp_language.clone()),
            whatsapp_values: texts.whatsapp_values,
            attachments,
            empty_fields,
            length: size.length,
            most: size.most,
            segments: (account.channel == Channel::Sms).then_some(size.segments),
        })))
    }

    /// Campaign, account and a recipient whose fields a sample is filled with; without a position, the first.
    async fn sample(
        &self,
        id: CampaignId,
        position: Option<u64>,
    ) -> Result<Option<(Campaign, Account, Recipient)>, Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(None) };
        let Some(account) = store.account(&campaign.account).await? else { return Ok(None) };
        let before = position.unwrap_or(1).saturating_sub(1);
        let filter = RecipientFilter::default();
        let found = store.recipients(id, &filter, Some(before), 1).await?.into_iter().next();
        let is_it = |found: &Recipient| position.is_none_or(|position| position == found.position);
        Ok(found.filter(is_it).map(|recipient| (campaign, account, recipient)))
    }
}

/// The texts of a recipient, with samples in place of links; or why there are none.
fn texts_of(ready: &Ready, recipient: &Recipient) -> Result<Texts, NoTexts> {
    let built_ins = BuiltIns {
        address: &recipient.address,
        ticket_url: recipient.ticket.map(|_| SAMPLE_URL),
        unsubscribe_url: Some(SAMPLE_URL),
    };
    ready.texts(recipient.message.as_deref(), &recipient.fields, &built_ins)
}
