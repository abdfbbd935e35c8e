//! What a campaign would do: validate, preview, test messages. Nothing of the campaign is changed.

use stampede_audience::BuiltIns;
use stampede_model::campaign::{
    CampaignChange, Channel, Content, Outcome, RecipientState, next_campaign_state,
};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{Account, Campaign, Recipient, RecipientFilter};
use stampede_wire::campaigns::{
    EmptyField, Preview, Segments, TemplateMistake, TestMessage, TooLong, Validation,
};

use crate::content::Filled;
use crate::snapshot::Snapshot;
use crate::texts::{self, Ready, Texts};
use crate::{Campaigns, Error, answers, provider};

/// Recipients read at a time.
const PAGE: u32 = 500;
/// Messages that a validation fills in.
const MOST_MEASURED: u64 = 20_000;
/// Positions that are named.
const NAMED: usize = 10;
/// Stands for the link of a recipient in previews: nobody is unsubscribed by a preview.
const SAMPLE_URL: &str = "https://example.com/preview";

/// Most addresses of one test.
pub const MOST_TESTS: usize = 10;

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

/// The result of sending test messages.
#[derive(Debug, Clone)]
pub enum Tested {
    /// What became of each, in their order.
    Done(Vec<TestMessage>),
    /// The template has mistakes. Nothing was sent.
    Mistaken(Vec<TemplateMistake>),
    /// The account is blocked or deleted. Nothing was sent.
    NoAccount(String),
    /// There is no such campaign.
    NotFound,
}

impl Campaigns {
    /// What the campaign would do if it were started now; `None`: there is no such campaign.
    pub async fn validate(&self, id: CampaignId) -> Result<Option<Validation>, Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(None) };
        let account = store.account(&campaign.account).await?;
        let problems = self.problems(&campaign).await?;
        let mut validation =
            Validation { to_send: campaign.counts.open(), ..Validation::default() };
        for count in store.recipients_by_code(id).await? {
            if count.state == RecipientState::Skipped {
                *validation.skipped.entry(count.code).or_default() += count.recipients;
            }
        }
        if let (Content::Template(template), Some(account)) = (&campaign.content, &account) {
            let ready = texts::ready(&campaign, account.channel);
            validation.template_mistakes = ready.mistakes().to_vec();
            let has_no_default =
                |field: &&str| template.defaults.get(*field).is_none_or(String::is_empty);
            let fields: Vec<String> =
                ready.fields().into_iter().filter(has_no_default).map(str::to_owned).collect();
            let empty = store.empty_fields(id, &fields).await?;
            validation.empty_fields = empty
                .into_iter()
                .filter(|(_, recipients, _)| *recipients > 0)
                .map(|(field, recipients, positions)| EmptyField { field, recipients, positions })
                .collect();
        }
        if let Some(account) = &account {
            self.measure(&campaign, account, &mut validation).await?;
            validation.eta_at = answers::eta(&campaign, account, provider::allowed(account));
        }
        let is_new = next_campaign_state(campaign.state, CampaignChange::Start).is_some();
        let too_long = validation.too_long.as_ref().is_some_and(|long| long.recipients > 0);
        validation.problems = problems;
        if !is_new {
            let told = format!("a campaign that is {} cannot be started", campaign.state.as_str());
            validation.problems.push(told);
        }
        validation.ok = validation.problems.is_empty() && !too_long;
        Ok(Some(validation))
    }

    /// Fills in the messages of all recipients, or of the first of a large campaign, and measures them.
    async fn measure(
        &self,
        campaign: &Campaign,
        account: &Account,
        validation: &mut Validation,
    ) -> Result<(), Error> {
        let filter =
            RecipientFilter { state: Some(RecipientState::Pending), ..RecipientFilter::default() };
        let ready = texts::ready(campaign, account.channel);
        let (mut after, mut long) = (None, None::<TooLong>);
        let mut segments = Segments { total: 0, most: 0, unicode: 0 };
        while validation.looked_at < MOST_MEASURED {
            let page = self.shared.store.recipients(campaign.id, &filter, after, PAGE).await?;
            after = page.last().map(|recipient| recipient.position);
            let is_last = page.len() < PAGE as usize;
            for recipient in page {
                let Ok(filled) = texts_of(&ready, &recipient) else { continue };
                let size = texts::size(account.channel, &filled);
                validation.looked_at += 1;
                if size.length > size.most {
                    let long = long.get_or_insert_with(|| TooLong {
                        recipients: 0,
                        positions: Vec::new(),
                        longest: 0,
                        most: size.most,
                    });
                    long.recipients += 1;
                    long.longest = long.longest.max(size.length);
                    if long.positions.len() < NAMED {
                        long.positions.push(recipient.position);
                    }
                }
                segments.total += size.segments;
                segments.most = segments.most.max(size.segments);
                segments.unicode += u64::from(size.is_unicode);
            }
            if is_last {
                break;
            }
        }
        validation.too_long = long;
        if account.channel == Channel::Sms && validation.looked_at > 0 {
            let scale =
                validation.to_send.max(validation.looked_at) as f64 / validation.looked_at as f64;
            segments.total = (segments.total as f64 * scale).ceil() as u64;
            validation.segments = Some(segments);
        }
        Ok(())
    }

    /// The message of the recipient at a position, as it would be sent.
    pub async fn preview(&self, id: CampaignId, position: u64) -> Result<Previewed, Error> {
        let Some((campaign, account, recipient)) = self.sample(id, Some(position)).await? else {
            return Ok(Previewed::NotFound);
        };
        let ready = texts::ready(&campaign, account.channel);
        if !ready.mistakes().is_empty() {
            return Ok(Previewed::Mistaken(ready.mistakes().to_vec()));
        }
        let mut attachments = Vec::new();
        if let Content::Template(template) = &campaign.content
            && template.attach_ticket
            && account.channel == Channel::Smtp
        {
            attachments.extend(recipient.ticket.map(|ticket| format!("ticket-{ticket}.pdf")));
        }
        let empty_fields = ready.missing(&recipient.fields);
        let texts = match texts_of(&ready, &recipient) {
            Ok(texts) => texts,
            Err(outcome) => {
                let message = outcome.failure().map(|failure| failure.text.clone());
                let (part, message) = ("message".to_owned(), message.unwrap_or_default());
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

    /// Sends the campaign's message to other addresses, filled with the fields of the recipient at `position` (`None`: the
    /// first). Limits and suppressions hold, quiet hours do not; the ledger does not know of it.
    pub async fn test_send(
        &self,
        id: CampaignId,
        addresses: &[String],
        position: Option<u64>,
    ) -> Result<Tested, Error> {
        let Some((campaign, account, sample)) = self.sample(id, position).await? else {
            return Ok(Tested::NotFound);
        };
        if let Some(reason) = account.blocked {
            return Ok(Tested::NoAccount(reason));
        }
        let Some(snapshot) = self.shared.snapshots.read(id).await? else {
            return Ok(Tested::NotFound);
        };
        if !snapshot.ready.mistakes().is_empty() {
            return Ok(Tested::Mistaken(snapshot.ready.mistakes().to_vec()));
        }
        let country = campaign.country.as_deref().or(account.country.as_deref());
        let mut tested = Vec::new();
        for written in addresses.iter().take(MOST_TESTS) {
            let kind = account.channel.address_kind();
            tested.push(match texts::normalise(kind, country, written) {
                Ok(address) => self.test_one(&snapshot, &sample, address).await?,
                Err(wrong) => told(written.clone(), "invalid", Some(wrong)),
            });
        }
        Ok(Tested::Done(tested))
    }

    /// Sends one test message, on the way of all messages but for the ledger.
    async fn test_one(
        &self,
        snapshot: &Snapshot,
        sample: &Recipient,
        address: String,
    ) -> Result<TestMessage, Error> {
        let Snapshot { campaign, account, .. } = snapshot;
        let owner = account.owner.as_ref().unwrap_or(&campaign.owner);
        let addresses = [address.clone()];
        let store = &self.shared.store;
        if !store.suppressed_addresses(owner, &account.id, &addresses).await?.is_empty() {
            return Ok(told(address, "suppressed", None));
        }
        // Receipts for it find no recipient.
        let id = RecipientId::generate();
        let recipient = Recipient { id, address: address.clone(), attempts: 1, ..sample.clone() };
        let message = match self.fill(snapshot, &recipient).await? {
            Some(Filled::Message(message)) => message,
            Some(Filled::Outcome(outcome)) => return Ok(of_outcome(address, &outcome)),
            None => {
                let why = "the PDF of the ticket is being made; try again in a moment".to_owned();
                return Ok(told(address, "waiting", Some(why)));
            }
        };
        let (permits, call) = match self.permits(id, snapshot, &address).await? {
            Ok(granted) => granted,
            Err(wait) => {
                let why = "the limits of the account let no message leave now".to_owned();
                let wait_ms = Some(wait.as_millis() as u64);
                return Ok(TestMessage { wait_ms, ..told(address, "waiting", Some(why)) });
            }
        };
        let outcome = self.shared.channels.send(&snapshot.sender, &message).await;
        // They count: a test message is a message.
        drop(permits);
        drop(call);
        tracing::info!(campaign = %campaign.id, outcome = outcome.as_str(), "test message sent");
        Ok(of_outcome(address, &outcome))
    }
}

/// The texts of a recipient, with samples in place of links; or the outcome of a message that cannot be filled in.
fn texts_of(ready: &Ready, recipient: &Recipient) -> Result<Texts, Outcome> {
    let built_ins = BuiltIns {
        address: &recipient.address,
        ticket_url: recipient.ticket.map(|_| SAMPLE_URL),
        unsubscribe_url: Some(SAMPLE_URL),
    };
    ready.fill(recipient.message.as_deref(), &recipient.fields, &built_ins)
}

fn told(address: String, outcome: &str, detail: Option<String>) -> TestMessage {
    let outcome = outcome.to_owned();
    TestMessage { address, outcome, code: None, detail, provider_id: None, wait_ms: None }
}

fn of_outcome(address: String, outcome: &Outcome) -> TestMessage {
    let failure = outcome.failure();
    let provider_id = match outcome {
        Outcome::Sent { provider_id, .. } => provider_id.clone(),
        _ => None,
    };
    TestMessage {
        code: failure.map(|failure| failure.code.clone()),
        provider_id,
        ..told(address, outcome.as_str(), failure.map(|failure| failure.text.clone()))
    }
}
