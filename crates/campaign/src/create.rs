//! Campaigns are made: with their recipients, and scheduled, in one request or not at all.

use std::collections::BTreeSet;
use std::time::Duration;

use stampede_audience::RecipientRow;
use stampede_model::campaign::{AccountId, AutoPause, CampaignState, Content, Pacing};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{Campaign, CampaignCounts};
use stampede_wire::campaigns::CreatedContract;

use crate::campaigns::mistakes;
use crate::import::{Imported, Purpose};
use crate::{CampaignEdit, Campaigns, Error, Mistake, Moved, now};

/// Most attempts that a campaign may ask for.
pub const MOST_ATTEMPTS: u32 = 20;
/// Attempts for one recipient, unless a campaign asks for others.
pub const USUAL_ATTEMPTS: u32 = 3;

/// Mistakes in recipients that are told of one request.
const TOLD: usize = 100;
/// Pause between two tries to delete a draft while the database is away.
const PAUSE: Duration = Duration::from_secs(2);

/// A campaign to be made.
#[derive(Debug, Clone)]
pub struct NewCampaign {
    /// The user whose campaign it is.
    pub owner: String,
    /// Its name, for people.
    pub name: String,
    /// The account that sends: one that the owner may use.
    pub account: AccountId,
    /// What is sent.
    pub content: Content,
    /// How fast it sends, besides the rules of its account.
    pub pacing: Pacing,
    /// When it pauses by itself.
    pub auto_pause: AutoPause,
    /// Most attempts for one recipient; 3 is usual.
    pub max_attempts: u32,
    /// The time zone of quiet hours, for recipients without one.
    pub time_zone: Option<String>,
    /// The country of telephone numbers without a country's code; `None`: the account's.
    pub country: Option<String>,
    /// When it starts by itself; `None`: it is a draft until somebody starts it.
    pub start_at: Option<Timestamp>,
    /// After this moment nothing more is sent.
    pub end_at: Option<Timestamp>,
}

/// The result of making a campaign.
#[derive(Debug, Clone)]
pub enum Created {
    /// It is made; it is a draft until it is started, or scheduled.
    Done(Box<CreatedContract>),
    /// Values cannot be used. Nothing is made.
    Invalid(Vec<Mistake>),
    /// It cannot start by itself, for these reasons, each a sentence. Nothing is made.
    NotReady(Vec<String>),
}

impl Campaigns {
    /// Makes a campaign with these recipients. An address that is none is told in the answer, and makes its recipient skipped. Other
    /// values of a recipient that break the rules of a row are mistakes, and nothing is made.
    pub async fn create(
        &self,
        new: NewCampaign,
        recipients: Vec<RecipientRow>,
    ) -> Result<Created, Error> {
        let campaign = Campaign {
            name: new.name,
            account: new.account,
            content: new.content,
            pacing: new.pacing,
            auto_pause: new.auto_pause,
            max_attempts: new.max_attempts,
            time_zone: new.time_zone,
            country: new.country,
            start_at: new.start_at,
            end_at: new.end_at,
            ..blank(new.owner)
        };
        let account = self.usable_account(&campaign.account, &campaign.owner).await?;
        let (recipients, wrong) = checked(recipients);
        // The fields of recipients that cannot be read are not known.
        let known = if wrong.is_empty() { field_names(&recipients) } else { None };
        let mut mistakes = mistakes(&campaign, account.as_ref(), known.as_ref());
        mistakes.extend(account.is_none().then(no_such_account));
        mistakes.extend(wrong);
        if !mistakes.is_empty() {
            return Ok(Created::Invalid(mistakes));
        }
        let (id, start_at) = (campaign.id, campaign.start_at);
        // It is a draft without a time until its recipients are there.
        let draft = Campaign { start_at: None, ..campaign };
        self.shared.store.insert_campaign(&draft).await?;
        let mut report = None;
        if !recipients.is_empty() {
            let refused = match self.import_rows(id, recipients, Purpose::Import).await {
                Ok(Imported::Done(done)) => {
                    report = Some(*done);
                    None
                }
                Ok(other) => Some(Error::internal(format!("recipients were not added: {other:?}"))),
                Err(error) => Some(error),
            };
            if let Some(error) = refused {
                self.discard(id).await;
                return Err(error);
            }
        }
        if let Some(at) = start_at {
            let refused = match self.start(id, Some(at), None).await {
                Ok(Moved::Done(_)) => None,
                Ok(Moved::NotReady(problems)) => Some(Ok(Created::NotReady(problems))),
                Ok(other) => Some(Err(Error::internal(format!("it was not scheduled: {other:?}")))),
                Err(error) => Some(Err(error)),
            };
            if let Some(refused) = refused {
                self.discard(id).await;
                return refused;
            }
        }
        let contract = self.campaign(id).await?;
        let contract = contract.ok_or_else(|| Error::internal("the campaign is gone"))?;
        let (success, recipients) = (true, report);
        let created = CreatedContract { success, contract_id: id, contract, recipients };
        Ok(Created::Done(Box::new(created)))
    }

    /// What is wrong with values that a user wants to give to a campaign, all of it at once: a request with other mistakes is told
    /// of these, too. What is not given is not looked at; without an account, only what is wrong with every channel. `known`: the
    /// fields of the campaign's recipients, if there are some.
    pub async fn examine(
        &self,
        owner: &str,
        values: &CampaignEdit,
        start_at: Option<Timestamp>,
        known: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Mistake>, Error> {
        let mut campaign = Campaign { start_at, ..blank(owner.to_owned()) };
        values.clone().apply(&mut campaign);
        let account = match &values.account {
            Some(id) => self.usable_account(id, owner).await?,
            None => None,
        };
        let mut mistakes = mistakes(&campaign, account.as_ref(), known);
        let is_unknown = values.account.is_some() && account.is_none();
        mistakes.extend(is_unknown.then(no_such_account));
        Ok(mistakes)
    }

    /// Deletes a draft that nobody was told of: whoever tries again makes another one. While the database is away it is tried again in
    /// the background.
    async fn discard(&self, id: CampaignId) {
        let Err(error) = self.delete(id, None).await else { return };
        tracing::warn!(%error, campaign = %id, "cannot delete a draft that could not be filled; it is tried again");
        let campaigns = self.clone();
        self.shared.runs.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = campaigns.shared.stop.cancelled() => return,
                }
                match campaigns.delete(id, None).await {
                    Err(Error::Unavailable { .. }) => {}
                    Err(error) => {
                        tracing::error!(%error, campaign = %id, "a draft that could not be filled stays");
                        return;
                    }
                    Ok(_) => return,
                }
            }
        });
    }
}

/// The names of the fields of recipients; `None`: there are no recipients.
pub fn field_names(rows: &[RecipientRow]) -> Option<BTreeSet<String>> {
    let names = || rows.iter().flat_map(|row| row.fields.keys().cloned()).collect();
    (!rows.is_empty()).then(names)
}

/// The recipients that keep the rules of rows, and the mistakes in the others.
fn checked(rows: Vec<RecipientRow>) -> (Vec<RecipientRow>, Vec<Mistake>) {
    let (mut kept, mut mistakes) = (Vec::with_capacity(rows.len()), Vec::new());
    for (index, row) in rows.into_iter().enumerate() {
        match row.checked() {
            Ok(row) => kept.push(row),
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|(field, message)| {
                let dot = if field.is_empty() { "" } else { "." };
                Mistake::new(format!("recipients[{index}]{dot}{field}"), message)
            })),
        }
    }
    mistakes.truncate(TOLD);
    (kept, mistakes)
}

fn no_such_account() -> Mistake {
    Mistake::new("accountId", "is no account of yours")
}

/// A draft that has nothing yet, and no mistake.
pub(crate) fn blank(owner: String) -> Campaign {
    let now = now();
    Campaign {
        id: CampaignId::generate(),
        owner,
        name: "Campaign".to_owned(),
        account: AccountId::console(),
        state: CampaignState::Draft,
        reason: None,
        content: Content::Own,
        pacing: Pacing::default(),
        auto_pause: AutoPause::default(),
        max_attempts: USUAL_ATTEMPTS,
        time_zone: None,
        country: None,
        start_at: None,
        end_at: None,
        event: None,
        batch: None,
        counts: CampaignCounts::default(),
        importing: None,
        created_at: now,
        updated_at: now,
        started_at: None,
        ended_at: None,
    }
}
