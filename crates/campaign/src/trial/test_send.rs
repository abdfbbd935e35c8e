//! Test messages: the message of a recipient goes to other addresses, on the way of all messages but for the ledger.
//!
//! ```text
//!   fill ──▶ permits ──▶ log ──▶ CALL the provider ──▶ hold the limits ──▶ log ──▶ block the account
//! ```
//! A test message is sent in a task of its own: a client that hangs up does not end a call that may have arrived. What follows from the
//! outcome for others follows as for all messages. But the campaign does not pause: a test is none of its attempts.

use std::sync::Arc;
use std::time::Instant;

use stampede_broker::kept;
use stampede_channel as channel;
use stampede_model::campaign::Outcome;
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{Recipient, TestAttempt, TestEnd};
use stampede_wire::campaigns::{TemplateMistake, TestMessage};

use crate::aftermath::{self, Attempted, Consequence};
use crate::content::Filled;
use crate::last_check::LastCheck;
use crate::send::report_health;
use crate::snapshot::Snapshot;
use crate::{Campaigns, Error, now, texts};

/// Most addresses of one test.
pub const MOST_TESTS: usize = 10;

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
        let mistakes = self.template_mistakes(&campaign, account.channel).await?;
        if !mistakes.is_empty() {
            return Ok(Tested::Mistaken(mistakes));
        }
        let Some(snapshot) = self.shared.snapshots.read(id).await? else {
            return Ok(Tested::NotFound);
        };
        let snapshot = Arc::new(snapshot);
        let country = campaign.country.as_deref().or(account.country.as_deref());
        let (mut tested, mut is_refused) = (Vec::new(), false);
        for written in addresses.iter().take(MOST_TESTS) {
            let kind = account.channel.address_kind();
            let message = match texts::normalise(kind, country, written) {
                Err(wrong) => told(written.clone(), "invalid", Some(wrong)),
                Ok(address) if is_refused => {
                    let why = "the provider has just refused the account".to_owned();
                    told(address, "not_sent", Some(why))
                }
                Ok(address) => {
                    let test = self.clone().test_one(snapshot.clone(), sample.clone(), address);
                    self.shared.runs.spawn(kept(test)).await.map_err(Error::internal)??
                }
            };
            is_refused |= message.outcome == "account";
            tested.push(message);
        }
        Ok(Tested::Done(tested))
    }

    /// Sends one test message, or says why it is not sent now.
    async fn test_one(
        self,
        snapshot: Arc<Snapshot>,
        sample: Recipient,
        address: String,
    ) -> Result<TestMessage, Error> {
        let Snapshot { campaign, account, .. } = &*snapshot;
        let store = &self.shared.store;
        if self.is_suppressed(&snapshot, &address).await? {
            return Ok(told(address, "suppressed", None));
        }
        // Receipts for it find no recipient.
        let id = RecipientId::generate();
        let recipient = Recipient { id, address: address.clone(), attempts: 1, ..sample };
        let message = match self.fill(&snapshot, &recipient).await? {
            Some(Filled::Message(message)) => message,
            Some(Filled::Outcome(outcome)) => {
                return Ok(of_outcome(address, &aftermath::not_made(outcome)));
            }
            None => {
                let why = "the PDF of the ticket is being made; try again in a moment".to_owned();
                return Ok(told(address, "waiting", Some(why)));
            }
        };
        let (permits, call) = match self.permits(id, &snapshot, &address).await? {
            Ok(granted) => granted,
            Err(wait) => return Ok(waiting(address, wait.as_millis() as u64)),
        };
        let test = TestAttempt {
            id,
            campaign: campaign.id,
            address: address.clone(),
            position: recipient.position,
            at: now(),
            end: None,
        };
        // Before the call: a process that dies meanwhile leaves a trace of a message that may have arrived.
        if let Err(error) = store.note_test(&test).await {
            drop(call);
            let _ = permits.give_back().await;
            return Err(error.into());
        }
        let begun = Instant::now();
        let mut check = LastCheck::new(&snapshot, None, permits);
        let outcome = self.shared.channels.send_when(&snapshot.sender, &message, &mut check).await;
        if check.has_refused() {
            // Writing or connecting took too long, and others have got the place.
            drop(call);
            let end = TestEnd { code: Some("limit".to_owned()), ..end_of(begun, "not_sent") };
            self.note_end(test, end).await;
            return Ok(waiting(address, 0));
        }
        report_health(call, &outcome).await;
        let consequence = follow(&snapshot, &outcome);
        self.hold(&snapshot, &address, &consequence).await;
        let failure = outcome.failure();
        let told = of_outcome(address.clone(), &outcome);
        let end = TestEnd {
            code: told.code.clone(),
            answer: failure.map(|failure| failure.text.clone()),
            provider_id: told.provider_id.clone(),
            ..end_of(begun, outcome.as_str())
        };
        self.note_end(test, end).await;
        if let Consequence::BlockAccount(reason) = consequence {
            let reason = aftermath::without_address(&reason, &address);
            self.block_account(account, &reason).await?;
        }
        tracing::info!(campaign = %campaign.id, outcome = outcome.as_str(), "test message sent");
        Ok(told)
    }

    /// Writes how a test message ended; told until the database is back.
    async fn note_end(&self, test: TestAttempt, end: TestEnd) {
        let test = TestAttempt { end: Some(end), ..test };
        let note = || async { self.shared.store.note_test(&test).await.map_err(Arc::new) };
        if self.until_told(note).await.is_none() {
            tracing::error!(campaign = %test.campaign, "the outcome of a test message could not be written");
        }
    }
}

/// What an outcome means for others than the address.
fn follow(snapshot: &Snapshot, outcome: &Outcome) -> Consequence {
    let attempted = Attempted {
        channel: snapshot.account.channel,
        is_idempotent: channel::is_idempotent(&snapshot.sender),
        attempts: 1,
        max_attempts: 1,
        now: now(),
        random: rand::random(),
    };
    attempted.follow(outcome).1
}

fn end_of(begun: Instant, outcome: &str) -> TestEnd {
    let (took, outcome) = (begun.elapsed(), outcome.to_owned());
    TestEnd { took, outcome, code: None, answer: None, provider_id: None }
}

fn waiting(address: String, wait_ms: u64) -> TestMessage {
    let why = "the limits of the account let no message leave now".to_owned();
    TestMessage { wait_ms: Some(wait_ms), ..told(address, "waiting", Some(why)) }
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
