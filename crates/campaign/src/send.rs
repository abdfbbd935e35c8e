//! One message, from its job to its record.
//!
//! ```text
//!    step                                           a process that dies after it leaves behind
//!   ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//!    1 read recipient and campaign                  the job: it runs again
//!    2 quiet hours                                  the job
//!    3 permits: spacing, caps, breaker, pair,       permits that count until they leave their window: too slow, never
//!      campaign, account, channel                   too fast; and the job
//!    4 fill in the message                          the same
//!    5 CLAIM  queued ─▶ sending, synced             `sending` with a run that nobody has: the next run, or the reconciler,
//!    6 connect to the provider                      makes it `unknown`, and so it is never sent twice. A channel that
//!    7 no quiet hours, permits fresh or exchanged;  promises idempotence sends again with the same key.
//!      CALL the provider
//!    8 RECORD sending ─▶ sent, pending, failed …    the job: its next run finds nothing to claim
//!    9 consequences for others                      a hold or pause that comes with the next such answer
//!   10 the job is done
//! ```
//!
//! The claim skips a recipient whose address is suppressed. Before a message waits for quiet hours or permits, its address is looked
//! up, so that the claim comes at once. A limit that may have forgotten messages is told of them, and asked again (`history.rs`).
//!
//! Steps 5 to 9 run in a task of their own: a job that is taken away from this worker ends, its run does not. A claim or a
//! record that gets no answer is asked for again until the database is back; asking twice for the same run changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_broker::{Breaker, BreakerConfig, BreakerDecision, Call, Permits, Taking};
use stampede_channel::{self as channel, Message};
use stampede_model::campaign::{Outcome, RecipientState};
use stampede_model::{RecipientId, RunId, Timestamp};
use stampede_store::{Attempt, AttemptEffect, Claim, Claimed, Recipient, RunResult};

use crate::aftermath::{self, Attempted, Consequence, Health};
use crate::content::Filled;
use crate::last_check::LastCheck;
use crate::snapshot::Snapshot;
use crate::{Campaigns, Error, asks, hours, now};

/// Pause while the database or Redis is away.
const OUTAGE: Duration = Duration::from_secs(5);
/// Pause of a message that waits for others of its account to be answered.
const BUSY: Duration = Duration::from_millis(100);
/// How often a campaign that is changed meanwhile is read again before the job waits.
const CHANGES: usize = 3;
/// How often limits are told of messages that they have forgotten before the job waits; a message needs up to five such limits.
const RECALLS: usize = 8;
/// A message that waits for a shorter time is not looked up among suppressed addresses.
const SHORT: Duration = Duration::from_secs(1);
/// The longest pause between two tries to tell the database.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How a run of a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ran {
    /// There is nothing more to do for this job; the word says why.
    Ended(&'static str),
    /// The message has to wait.
    Later(Duration),
    /// A defect; trying again may help.
    Defect(String),
}

/// All permits of a message, and the call that the breaker has let through.
pub(crate) type Granted = (Permits, Box<Call>);

/// A message that may be sent as soon as it is claimed.
struct Run {
    id: RunId,
    snapshot: Arc<Snapshot>,
    recipient: RecipientId,
    address: String,
    filled: Filled,
    permits: Permits,
    call: Box<Call>,
}

/// What the claim and what follows it came to.
enum Next {
    Ended(&'static str),
    Later(Duration),
    /// The campaign has changed since it was read.
    Changed,
}

impl Campaigns {
    /// Sends the message of a recipient, or finds out that it has to wait or is not to be sent.
    pub(crate) async fn run_message(&self, id: RecipientId) -> Ran {
        match self.try_message(id).await {
            Ok(ran) => ran,
            Err(Error::Unavailable { .. }) => Ran::Later(OUTAGE),
            Err(Error::Internal(reason)) => Ran::Defect(reason),
        }
    }

    async fn try_message(&self, id: RecipientId) -> Result<Ran, Error> {
        let shared = &*self.shared;
        let Some(recipient) = shared.store.recipient(id).await? else {
            return Ok(Ran::Ended("gone"));
        };
        if !matches!(recipient.state, RecipientState::Queued | RecipientState::Sending) {
            return Ok(Ran::Ended("not_queued"));
        }
        for _ in 0..CHANGES {
            let Some(snapshot) = shared.snapshots.running(recipient.campaign).await? else {
                return Ok(Ran::Ended("not_running"));
            };
            let campaign = snapshot.campaign.id;
            let quiet = hours::quiet_for(&snapshot, &recipient, now());
            let granted = match quiet {
                Some(wait) => Err(wait),
                None => self.permits(id, &snapshot, &recipient.address).await?,
            };
            let running = match granted {
                Ok((permits, call)) => {
                    let filled = match self.fill(&snapshot, &recipient).await {
                        Ok(filled) => filled,
                        Err(error) => {
                            give_back(permits).await;
                            return Err(error);
                        }
                    };
                    let Some(filled) = filled else {
                        give_back(permits).await;
                        return Ok(Ran::Later(OUTAGE));
                    };
                    let (run, address) = (RunId::generate(), recipient.address.clone());
                    let run =
                        Run { id: run, snapshot, recipient: id, address, filled, permits, call };
                    shared.runs.spawn(self.clone().claim_and_send(run))
                }
                Err(wait)
                    if wait > SHORT
                        && self.is_suppressed(&snapshot, &recipient.address).await? =>
                {
                    shared.runs.spawn(self.clone().claim_to_skip(snapshot, id))
                }
                Err(wait) if quiet.is_some() => return self.wait_for_hours(&recipient, wait).await,
                Err(wait) => return Ok(Ran::Later(wait)),
            };
            match running.await.map_err(Error::internal)? {
                Next::Ended(word) => return Ok(Ran::Ended(word)),
                Next::Later(wait) => return Ok(Ran::Later(wait)),
                Next::Changed => shared.snapshots.forget(campaign),
            }
        }
        Ok(Ran::Later(BUSY))
    }

    /// All permits in their order, or how long to wait.
    pub(crate) async fn permits(
        &self,
        id: RecipientId,
        snapshot: &Snapshot,
        address: &str,
    ) -> Result<Result<Granted, Duration>, Error> {
        for _ in 0..RECALLS {
            match self.try_permits(id, snapshot, address).await? {
                Ok(granted) => return Ok(Ok(granted)),
                Err(Taking::Forgotten { ask, rate }) => self.recall(snapshot, &ask, rate).await?,
                Err(Taking::Wait { wait, .. }) => return Ok(Err(wait)),
                Err(Taking::Granted(_)) => break,
            }
        }
        Ok(Err(BUSY))
    }

    /// All permits in their order, or the answer that is none.
    async fn try_permits(
        &self,
        id: RecipientId,
        snapshot: &Snapshot,
        address: &str,
    ) -> Result<Result<Granted, Taking>, Error> {
        let (limits, who) = (self.shared.broker.limits(), id.to_string());
        let caps = asks::spacing_and_caps(snapshot, address, now(), rand::random());
        let first = match limits.take_all(&who, &caps).await? {
            Taking::Granted(permits) => permits,
            refused => return Ok(Err(refused)),
        };
        let breaker = self.breaker(snapshot);
        let call = match breaker.ask().await {
            Ok(BreakerDecision::Allowed(call)) => call,
            Ok(BreakerDecision::Refused(wait)) => {
                give_back(first).await;
                return Ok(Err(Taking::Wait { limit: String::new(), wait }));
            }
            Err(error) => {
                give_back(first).await;
                return Err(error.into());
            }
        };
        let rates = asks::rates(snapshot, address);
        match limits.take_all(&who, &rates).await {
            Ok(Taking::Granted(permits)) => Ok(Ok((first.and(permits), call))),
            Ok(refused) => {
                give_back(first).await;
                Ok(Err(refused))
            }
            Err(error) => {
                give_back(first).await;
                Err(error.into())
            }
        }
    }

    /// Whether the claim would skip a recipient because of its address.
    pub(crate) async fn is_suppressed(
        &self,
        snapshot: &Snapshot,
        address: &str,
    ) -> Result<bool, Error> {
        let Snapshot { account, campaign, .. } = snapshot;
        let owner = account.owner.as_ref().unwrap_or(&campaign.owner);
        let addresses = [address.to_owned()];
        let found = self.shared.store.suppressed_addresses(owner, &account.id, &addresses).await?;
        Ok(!found.is_empty())
    }

    fn breaker(&self, snapshot: &Snapshot) -> Breaker {
        let name = format!("campaign:{}", snapshot.account.id);
        self.shared.broker.breaker(&name, BreakerConfig::default())
    }

    /// Claims a recipient; `Err`: it is not to be sent to now.
    async fn claim(
        &self,
        snapshot: &Snapshot,
        recipient: RecipientId,
        run: RunId,
    ) -> Result<Box<Recipient>, Next> {
        let claim = Claim {
            recipient,
            run,
            most_in_flight: asks::most_in_flight(snapshot),
            is_idempotent: channel::is_idempotent(&snapshot.sender),
            campaign_seen: snapshot.campaign.updated_at,
            account_seen: Some(snapshot.account.updated_at),
        };
        let claimed = self.until_told(|| self.shared.claims.commit(claim)).await;
        self.count_unsent(snapshot, claimed.as_ref());
        Err(match claimed {
            Some(Claimed::Send(row)) => return Ok(row),
            Some(Claimed::Busy) => Next::Later(BUSY.mul_f64(0.5 + rand::random::<f64>())),
            Some(Claimed::Changed) => Next::Changed,
            Some(Claimed::Unknown) => Next::Ended("unknown"),
            Some(Claimed::OptedOut) => Next::Ended("opted_out"),
            Some(Claimed::Expired) => Next::Ended("expired"),
            Some(Claimed::Nothing) => Next::Ended("not_queued"),
            None => Next::Later(OUTAGE),
        })
    }

    /// Claims a recipient whose address was suppressed a moment ago: the claim skips it.
    async fn claim_to_skip(self, snapshot: Arc<Snapshot>, recipient: RecipientId) -> Next {
        let run = RunId::generate();
        match self.claim(&snapshot, recipient, run).await {
            Err(next) => next,
            // It is not suppressed any more, and has no permits.
            Ok(row) => self.release(&row, run).await,
        }
    }

    /// Gives back a claim: nothing was sent, and the feeder comes back.
    async fn release(&self, row: &Recipient, run: RunId) -> Next {
        self.note(row, run, Begun::now(), None, AttemptEffect::Released).await;
        Next::Ended("released")
    }

    async fn claim_and_send(self, run: Run) -> Next {
        let Run { id, snapshot, recipient, address, filled, permits, call } = run;
        let is_idempotent = channel::is_idempotent(&snapshot.sender);
        let row = match self.claim(&snapshot, recipient, id).await {
            Ok(row) => row,
            Err(next) => {
                drop(call);
                give_back(permits).await;
                return next;
            }
        };
        let message = match filled {
            Filled::Message(message) => Message { attempt: row.attempts, ..*message },
            // Nothing is sent: no permit is used.
            Filled::Outcome(outcome) => {
                drop(call);
                give_back(permits).await;
                let outcome = aftermath::not_made(outcome);
                let attempt = Begun::now();
                self.record(&snapshot, &row, id, attempt, &outcome, is_idempotent, &address).await;
                return Next::Ended(outcome.as_str());
            }
        };
        let connecting = Begun::now();
        let mut check = LastCheck::new(&snapshot, Some(&row), permits);
        let outcome = self.shared.channels.send_when(&snapshot.sender, &message, &mut check).await;
        if check.has_refused() {
            drop(call);
            return self.release(&row, id).await;
        }
        let attempt = check.allowed().unwrap_or(connecting);
        report_health(call, &outcome).await;
        self.record(&snapshot, &row, id, attempt, &outcome, is_idempotent, &address).await;
        Next::Ended(outcome.as_str())
    }

    /// Holds limits, records the outcome, and does what follows from it for others.
    #[expect(clippy::too_many_arguments, reason = "all that an attempt is")]
    async fn record(
        &self,
        snapshot: &Snapshot,
        row: &Recipient,
        run: RunId,
        attempt: Begun,
        outcome: &Outcome,
        is_idempotent: bool,
        address: &str,
    ) {
        let attempted = Attempted {
            channel: snapshot.account.channel,
            is_idempotent,
            attempts: row.attempts,
            max_attempts: snapshot.campaign.max_attempts,
            now: now(),
            random: rand::random(),
        };
        let (mut effect, consequence) = attempted.follow(outcome);
        if attempted.finds_mailbox_full(outcome) {
            effect = self.full_mailbox(snapshot, address).await;
        }
        self.count_attempt(snapshot, &effect);
        // Before the record: others would go on sending while it waits for the database.
        self.hold(snapshot, address, &consequence).await;
        self.note(row, run, attempt, Some(outcome), effect).await;
        self.after(snapshot, address, consequence).await;
    }

    /// What becomes of a recipient whose mailbox is full.
    async fn full_mailbox(&self, snapshot: &Snapshot, address: &str) -> AttemptEffect {
        let (store, account) = (&self.shared.store, &snapshot.account.id);
        let ask = || async move {
            let before = store.last_outcomes_to(account, address, aftermath::FULL_OF - 1);
            before.await.map_err(Arc::new)
        };
        let before = self.until_told(ask).await.unwrap_or_default();
        aftermath::full_mailbox(before.iter().map(|(_, code)| code.as_deref()))
    }

    /// Records how a run ended; told until the database is back.
    async fn note(
        &self,
        row: &Recipient,
        run: RunId,
        attempt: Begun,
        outcome: Option<&Outcome>,
        effect: AttemptEffect,
    ) {
        let failure = outcome.and_then(Outcome::failure);
        let result = RunResult {
            recipient: row.id,
            run,
            attempt: Attempt {
                number: row.attempts,
                at: attempt.at,
                took: attempt.begun.elapsed(),
                outcome: outcome.map_or("released", Outcome::as_str).to_owned(),
                code: failure.map(|failure| failure.code.clone()),
                answer: failure.map(|failure| failure.text.clone()),
            },
            effect,
        };
        match self.until_told(|| self.shared.results.commit(result.clone())).await {
            Some(true) => {}
            Some(false) => tracing::warn!(
                recipient = %row.id, outcome = result.attempt.outcome,
                "the outcome of a message came too late: its recipient was settled before"
            ),
            None => tracing::error!(
                recipient = %row.id, outcome = result.attempt.outcome,
                "the outcome of a message could not be recorded: its recipient becomes unknown"
            ),
        }
    }

    /// Asks the database until it answers; `None`: it refuses, or this process ends while the database is away.
    pub(crate) async fn until_told<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Arc<stampede_store::Error>>>,
    {
        let mut pause = Duration::from_millis(100);
        loop {
            match ask().await {
                Ok(answer) => return Some(answer),
                Err(error) if error.is_outage() => {
                    tracing::debug!(%error, "the database is away; a run waits to tell it");
                }
                Err(error) => {
                    tracing::error!(%error, "the database refuses what a run tells");
                    return None;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = self.shared.stop.cancelled() => return ask().await.ok(),
            }
        }
    }

    pub(crate) async fn hold(&self, snapshot: &Snapshot, address: &str, consequence: &Consequence) {
        let account = &snapshot.account.id;
        let (limit, pause) = match consequence {
            Consequence::HoldAccount(pause) => (asks::account_limit(account), *pause),
            Consequence::HoldPair(pause) => (asks::pair_limit(account, address), *pause),
            _ => return,
        };
        tracing::info!(%account, limit, ?pause, "the provider wants fewer messages");
        if let Err(error) = self.shared.broker.limits().hold(&limit, pause).await {
            tracing::warn!(%error, limit, "cannot hold a limit");
        }
    }

    async fn after(&self, snapshot: &Snapshot, address: &str, consequence: Consequence) {
        let campaign = snapshot.campaign.id;
        let without = |reason: String| aftermath::without_address(&reason, address);
        let done = match consequence {
            Consequence::PauseCampaign(reason) => {
                self.pause_for_content(&snapshot.campaign, without(reason)).await
            }
            Consequence::BlockAccount(reason) => {
                self.block_account(&snapshot.account, &without(reason)).await
            }
            Consequence::CountFailure => {
                self.look_at_failures(campaign);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            // The next message gets the same answer.
            tracing::warn!(%error, %campaign, "cannot pause");
        }
    }
}

/// When an attempt began.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    at: Timestamp,
    begun: Instant,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { at: now(), begun: Instant::now() }
    }
}

/// Tells the circuit breaker of the account what the provider did.
pub(crate) async fn report_health(call: Box<Call>, outcome: &Outcome) {
    let reported = match Attempted::health(outcome) {
        Health::Worked => call.worked().await,
        Health::Failed => call.failed().await,
        Health::Unclear => Ok(()),
    };
    if let Err(error) = reported {
        tracing::debug!(%error, "cannot report to the circuit breaker of an account");
    }
}

pub(crate) async fn give_back(permits: Permits) {
    if let Err(error) = permits.give_back().await {
        tracing::debug!(%error, "permits that could not be given back count as used");
    }
}
