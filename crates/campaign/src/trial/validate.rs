//! Everything that can be known about a campaign before it starts.

use stampede_model::CampaignId;
use stampede_model::campaign::{
    CampaignChange, Channel, Content, RecipientState, SkipReason, address_key, next_campaign_state,
};
use stampede_store::{Account, Campaign, Recipient, RecipientFilter};
use stampede_wire::campaigns::{EmptyField, Segments, TooLong, Unsendable, Validation};

use super::texts_of;
use crate::texts::{self, NoTexts, Ready};
use crate::{Campaigns, Error, answers};

/// Recipients read at a time.
const PAGE: u32 = 500;
/// Messages that a validation fills in.
const MOST_MEASURED: u64 = 20_000;
/// Positions that are named.
const NAMED: usize = 10;

impl Campaigns {
    /// What the campaign would do if it were started now; `None`: there is no such campaign.
    pub async fn validate(&self, id: CampaignId) -> Result<Option<Validation>, Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(None) };
        let account = store.account(&campaign.account).await?;
        let mut validation =
            Validation { problems: self.problems(&campaign).await?, ..Validation::default() };
        self.count(&campaign, &mut validation).await?;
        match (&campaign.content, &account) {
            (Content::Template(template), Some(account)) => {
                validation.template_mistakes =
                    self.template_mistakes(&campaign, account.channel).await?;
                let ready = texts::ready(&campaign, account.channel);
                let has_no_default =
                    |field: &&str| template.defaults.get(*field).is_none_or(String::is_empty);
                let fields: Vec<String> =
                    ready.fields().into_iter().filter(has_no_default).map(str::to_owned).collect();
                let empty = store.empty_fields(id, &fields).await?;
                validation.empty_fields = empty
                    .into_iter()
                    .map(|(field, recipients, positions)| EmptyField {
                        field,
                        recipients,
                        positions,
                    })
                    .collect();
            }
            (Content::Own, _) => {
                let (recipients, positions) = store.without_message(id).await?;
                validation.no_message =
                    (recipients > 0).then_some(Unsendable { recipients, positions });
            }
            (Content::Template(_), None) => {}
        }
        if let Some(account) = &account {
            self.measure(&campaign, account, &mut validation).await?;
            let speed = self.speed(&campaign, Some(account)).await?;
            validation.eta_at = answers::eta(&campaign, account, speed);
        }
        if next_campaign_state(campaign.state, CampaignChange::Start).is_none() {
            let told = format!("a campaign that is {} cannot be started", campaign.state.as_str());
            validation.problems.push(told);
        }
        validation.will_fail = will_fail(&validation);
        validation.to_send = validation.to_send.saturating_sub(validation.will_fail);
        validation.ok = validation.problems.is_empty();
        Ok(Some(validation))
    }

    /// Counts who gets a message, and who gets none and why.
    async fn count(&self, campaign: &Campaign, validation: &mut Validation) -> Result<(), Error> {
        let store = &self.shared.store;
        for count in store.recipients_by_code(campaign.id).await? {
            if count.state == RecipientState::Skipped {
                *validation.skipped.entry(count.code).or_default() += count.recipients;
            }
        }
        // Suppressed since the import: they are skipped when their turn comes.
        let suppressed = store.suppressed_recipients(campaign.id).await?;
        if suppressed > 0 {
            let opted_out = SkipReason::OptedOut.as_str().to_owned();
            *validation.skipped.entry(opted_out).or_default() += suppressed;
        }
        validation.to_send = campaign.counts.open().saturating_sub(suppressed);
        Ok(())
    }

    /// Fills in the messages of all recipients, or of the first of a large campaign, and measures them.
    async fn measure(
        &self,
        campaign: &Campaign,
        account: &Account,
        validation: &mut Validation,
    ) -> Result<(), Error> {
        let ready = texts::ready(campaign, account.channel);
        if !ready.mistakes().is_empty() {
            return Ok(());
        }
        let store = &self.shared.store;
        let owner = account.owner.as_ref().unwrap_or(&campaign.owner);
        let filter =
            RecipientFilter { state: Some(RecipientState::Pending), ..RecipientFilter::default() };
        let (mut measured, mut after) = (Measured::default(), None);
        while measured.looked_at < MOST_MEASURED {
            let page = store.recipients(campaign.id, &filter, after, PAGE).await?;
            after = page.last().map(|recipient| recipient.position);
            let is_last = page.len() < PAGE as usize;
            let addresses: Vec<String> =
                page.iter().map(|recipient| recipient.address.clone()).collect();
            let suppressed = store.suppressed_addresses(owner, &account.id, &addresses).await?;
            for recipient in page {
                if !suppressed.iter().any(|it| *it == address_key(&recipient.address)) {
                    measured.look_at(account.channel, &ready, &recipient);
                }
            }
            if is_last {
                break;
            }
        }
        let Measured { looked_at, too_long, empty, mut segments } = measured;
        if account.channel == Channel::Sms && looked_at > 0 {
            let scale = validation.to_send.max(looked_at) as f64 / looked_at as f64;
            segments.total = (segments.total as f64 * scale).ceil() as u64;
            validation.segments = Some(segments);
        }
        validation.looked_at = looked_at;
        validation.too_long = too_long;
        validation.empty = Some(empty).filter(|empty| empty.recipients > 0);
        Ok(())
    }
}

/// Recipients whose message cannot be made, so that they fail and all others go on.
fn will_fail(validation: &Validation) -> u64 {
    let long = validation.too_long.as_ref().map_or(0, |long| long.recipients);
    let others = [&validation.empty, &validation.no_message];
    long + others.into_iter().flatten().map(|it| it.recipients).sum::<u64>()
}

/// Messages that were filled in and measured.
struct Measured {
    looked_at: u64,
    too_long: Option<TooLong>,
    empty: Unsendable,
    segments: Segments,
}

impl Default for Measured {
    fn default() -> Self {
        let segments = Segments { total: 0, most: 0, unicode: 0 };
        Self { looked_at: 0, too_long: None, empty: Unsendable::default(), segments }
    }
}

impl Measured {
    fn look_at(&mut self, channel: Channel, ready: &Ready, recipient: &Recipient) {
        self.looked_at += 1;
        let texts = match texts_of(ready, recipient) {
            Ok(texts) => texts,
            Err(NoTexts::Empty(_)) => {
                self.empty.recipients += 1;
                name(&mut self.empty.positions, recipient);
                return;
            }
            // They are counted in the database. The template was looked at before.
            Err(NoTexts::NoMessage | NoTexts::Template(_)) => return,
        };
        let size = texts::size(channel, &texts);
        if size.length > size.most {
            let long = self.too_long.get_or_insert_with(|| TooLong {
                recipients: 0,
                positions: Vec::new(),
                longest: 0,
                most: size.most,
            });
            long.recipients += 1;
            long.longest = long.longest.max(size.length);
            name(&mut long.positions, recipient);
        }
        self.segments.total += size.segments;
        self.segments.most = self.segments.most.max(size.segments);
        self.segments.unicode += u64::from(size.is_unicode);
    }
}

fn name(positions: &mut Vec<u64>, recipient: &Recipient) {
    if positions.len() < NAMED {
        positions.push(recipient.position);
    }
}
