//! Random changes: every backend moves recipients as `stampede_model::campaign::next_recipient_state` says.

use std::collections::BTreeMap;

use stampede_model::campaign::{
    CampaignChange, CampaignState, RecipientChange as Change, RecipientState as State,
    next_recipient_state,
};
use stampede_model::{RecipientId, RunId, Timestamp};
use stampede_store::{
    AttemptEffect, Campaign, CampaignCounts, Claim, Receipt, ReceiptEffect, ReceiptStatus,
    RunResult, Settlement, Store,
};

use super::{all, assert_counts, campaign_now, change, claim, queued, result};
use crate::backends::Database;
use crate::suite::samples::{Dice, at};

on_every_backend!(random_changes_do_what_the_model_says);

/// Changes made in one run.
const STEPS: u64 = 250;

/// The ledger as the model says it is.
struct Model {
    campaign: CampaignState,
    states: BTreeMap<RecipientId, State>,
    runs: BTreeMap<RecipientId, RunId>,
    /// Attempts that count, and attempts in the log.
    tries: BTreeMap<RecipientId, (u32, u32)>,
}

impl Model {
    /// Makes the change of a receipt. A recipient that waits has changed only if an earlier attempt may have arrived.
    fn receive(&mut self, id: RecipientId, change: Change) -> bool {
        let before = self.states.get(&id).copied();
        let is_waiting = matches!(before, Some(State::Pending | State::Queued));
        let tries = self.tries.entry(id).or_default();
        if is_waiting && *tries == (0, 0) {
            return false;
        }
        let is_changed = self.change(id, change);
        if is_changed && change == Change::Bounce {
            // It is logged.
            self.tries.entry(id).or_default().1 += 1;
        }
        is_changed
    }

    /// Makes a change, if it is allowed; returns whether it was.
    fn change(&mut self, id: RecipientId, change: Change) -> bool {
        let next = self.states.get(&id).and_then(|state| next_recipient_state(*state, change));
        if let Some(next) = next {
            self.states.insert(id, next);
        }
        next.is_some()
    }

    fn change_all(&mut self, from: State, change: Change, ids: Option<&[RecipientId]>) -> u64 {
        let is_meant = |id: &RecipientId| ids.is_none_or(|ids| ids.contains(id));
        let meant = self.states.iter().filter(|(id, state)| **state == from && is_meant(id));
        let meant: Vec<RecipientId> = meant.map(|(id, _)| *id).collect();
        meant.into_iter().filter(|id| self.change(*id, change)).count() as u64
    }

    fn is_open(&self) -> bool {
        self.states.values().any(|state| state.is_open())
    }

    fn claim(&mut self, claim: &Claim) {
        let id = claim.recipient;
        let is_running = self.campaign == CampaignState::Running;
        match self.states.get(&id) {
            Some(State::Queued) if is_running => {
                self.change(id, Change::Claim);
                self.runs.insert(id, claim.run);
                self.tries.entry(id).or_default().0 += 1;
            }
            Some(State::Sending) if is_running && claim.is_idempotent => {
                self.runs.insert(id, claim.run);
                self.tries.entry(id).or_default().0 += 1;
            }
            Some(State::Sending) => {
                self.change(id, Change::Lose);
            }
            _ => {}
        }
    }

    fn record(&mut self, result: &RunResult) -> bool {
        let id = result.recipient;
        if self.runs.get(&id) != Some(&result.run) {
            return false;
        }
        self.runs.remove(&id);
        let is_unknown = self.states[&id] == State::Unknown;
        let change = match &result.effect {
            AttemptEffect::Sent { .. } => Change::Accept,
            AttemptEffect::Failed(_) => Change::Fail,
            AttemptEffect::Unknown => Change::Lose,
            _ if self.campaign == CampaignState::Completed => Change::Fail,
            AttemptEffect::Released if !is_unknown => Change::Release,
            _ => Change::Retry,
        };
        self.change(id, change);
        let (attempts, logged) = self.tries.entry(id).or_default();
        let counts = !matches!(result.effect, AttemptEffect::Released | AttemptEffect::Postpone(_));
        *attempts = attempts.saturating_sub(u32::from(!counts));
        *logged += u32::from(result.effect != AttemptEffect::Released);
        true
    }

    fn settle(&mut self, settlement: Settlement, ids: Option<&[RecipientId]>) -> u64 {
        let (from, change) = match settlement {
            Settlement::Resend => (State::Unknown, Change::Resend),
            Settlement::Sent => (State::Unknown, Change::SettleSent),
            Settlement::Failed => (State::Unknown, Change::SettleFailed),
            Settlement::RetryFailed => (State::Failed, Change::Resend),
        };
        let is_meant = |id: &RecipientId| ids.is_none_or(|ids| ids.contains(id));
        let states = &self.states;
        self.runs.retain(|id, _| states[id] != from || !is_meant(id));
        if settlement == Settlement::RetryFailed {
            for (id, (attempts, logged)) in &mut self.tries {
                if self.states.get(id) == Some(&from) && is_meant(id) {
                    (*attempts, *logged) = (0, (*logged).max(*attempts));
                }
            }
        }
        let settled = self.change_all(from, change, ids);
        if settled > 0 && change == Change::Resend && self.campaign == CampaignState::Completed {
            self.campaign = CampaignState::Paused;
        }
        settled
    }

    async fn check(&self, store: &Store, id: stampede_model::CampaignId, step: u64) -> Campaign {
        let found = all(store, id).await;
        let states: BTreeMap<RecipientId, State> =
            found.iter().map(|recipient| (recipient.id, recipient.state)).collect();
        assert_eq!(states, self.states, "step {step}");
        let campaign = campaign_now(store, id).await;
        assert_eq!(campaign.state, self.campaign, "step {step}");
        let with = |wanted| self.states.values().filter(|state| **state == wanted).count() as u64;
        let counts = CampaignCounts {
            pending: with(State::Pending),
            queued: with(State::Queued),
            sending: with(State::Sending),
            sent: with(State::Sent),
            delivered: with(State::Delivered),
            read: with(State::Read),
            failed: with(State::Failed),
            unknown: with(State::Unknown),
            skipped: with(State::Skipped),
        };
        assert_eq!(campaign.counts, counts, "step {step}");
        campaign
    }
}

async fn random_changes_do_what_the_model_says(db: Database) {
    let store = db.store().await;
    let (mut campaign, mut ids) = queued(&store, 24).await;
    let mut model = Model {
        campaign: CampaignState::Running,
        states: ids.iter().map(|id| (*id, State::Queued)).collect(),
        runs: BTreeMap::new(),
        tries: BTreeMap::new(),
    };
    ids.push(RecipientId::generate());
    let mut dice = Dice(7);
    for step in 0..STEPS {
        let now = at(100 + step);
        match dice.below(20) {
            0..3 => feed(&store, &mut model, &campaign, now).await,
            3..8 => claim_some(&store, &mut model, &mut dice, &campaign, &ids, now).await,
            8..12 => record_some(&store, &mut model, &mut dice, &ids, now).await,
            12..15 => receive_some(&store, &mut model, &mut dice, &campaign, &ids, now).await,
            15..18 => settle_some(&store, &mut model, &mut dice, &campaign, &ids, now).await,
            18 => {
                let some = dice.some(&ids);
                let unqueued = model.change_all(State::Queued, Change::Unqueue, Some(&some));
                let lost = model.change_all(State::Sending, Change::Lose, Some(&some));
                let put_back = store.put_back_recipients(&some, now).await.unwrap();
                assert_eq!(put_back, unqueued + lost);
            }
            _ => pause_and_resume(&store, &mut model, &campaign, now).await,
        }
        if step % 60 == 59 {
            campaign = model.check(&store, campaign.id, step).await;
            finish(&store, &mut model, &campaign, now).await;
        }
        campaign = model.check(&store, campaign.id, step).await;
    }
    assert_counts(&store).await;
}

async fn feed(store: &Store, model: &mut Model, campaign: &Campaign, now: Timestamp) {
    let fed = store.feed_campaign(campaign.id, 1_000, now).await.unwrap();
    if model.campaign != CampaignState::Running {
        assert!(!fed.is_running && fed.queued.is_empty());
    } else if model.is_open() {
        let queued = model.change_all(State::Pending, Change::Queue, None);
        assert_eq!(fed.queued.len() as u64, queued);
    } else {
        model.campaign = CampaignState::Completed;
        assert!(fed.is_completed);
    }
}

/// Sends everything that is left, so that the campaign is completed.
async fn finish(store: &Store, model: &mut Model, campaign: &Campaign, now: Timestamp) {
    if model.campaign == CampaignState::Paused {
        pause_and_resume(store, model, campaign, now).await;
    }
    let campaign = campaign_now(store, campaign.id).await;
    feed(store, model, &campaign, now).await;
    let open = model.states.iter().filter(|(_, state)| state.is_open());
    let open: Vec<RecipientId> = open.map(|(id, _)| *id).collect();
    let claims: Vec<Claim> =
        open.iter().map(|id| Claim { is_idempotent: true, ..claim(&campaign, *id) }).collect();
    store.claim_recipients(&claims, now).await.unwrap();
    claims.iter().for_each(|claim| model.claim(claim));
    let sent = AttemptEffect::Sent { provider_id: None, moved_to: None };
    let results: Vec<RunResult> =
        claims.iter().map(|claim| result(claim.recipient, claim.run, sent.clone())).collect();
    let recorded = store.record_runs(&results, now).await.unwrap();
    assert!(recorded.iter().all(|is_recorded| *is_recorded));
    results.iter().for_each(|result| assert!(model.record(result)));
    feed(store, model, &campaign, now).await;
    assert_eq!(model.campaign, CampaignState::Completed);
}

async fn claim_some(
    store: &Store,
    model: &mut Model,
    dice: &mut Dice,
    campaign: &Campaign,
    ids: &[RecipientId],
    now: Timestamp,
) {
    let claims: Vec<Claim> = dice
        .some(ids)
        .into_iter()
        .map(|id| Claim { is_idempotent: dice.below(3) == 0, ..claim(campaign, id) })
        .collect();
    store.claim_recipients(&claims, now).await.unwrap();
    claims.iter().for_each(|claim| model.claim(claim));
}

async fn record_some(
    store: &Store,
    model: &mut Model,
    dice: &mut Dice,
    ids: &[RecipientId],
    now: Timestamp,
) {
    let mut results = Vec::new();
    for id in dice.some(ids) {
        let stranger = dice.below(5) == 0;
        let run = model.runs.get(&id).copied().filter(|_| !stranger);
        let effect = match dice.below(6) {
            0 => AttemptEffect::Sent { provider_id: Some(id.to_string()), moved_to: None },
            1 => AttemptEffect::Retry(at(0)),
            2 => AttemptEffect::Postpone(at(0)),
            3 => AttemptEffect::Failed(None),
            4 => AttemptEffect::Unknown,
            _ => AttemptEffect::Released,
        };
        results.push(result(id, run.unwrap_or_else(RunId::generate), effect));
    }
    // A run that is told twice in a group was logged the first time.
    results.dedup_by_key(|result| result.recipient);
    results.sort_by_key(|result| result.recipient);
    results.dedup_by_key(|result| result.recipient);
    let recorded = store.record_runs(&results, now).await.unwrap();
    let expected: Vec<bool> = results.iter().map(|result| model.record(result)).collect();
    assert_eq!(recorded, expected);
}

async fn receive_some(
    store: &Store,
    model: &mut Model,
    dice: &mut Dice,
    campaign: &Campaign,
    ids: &[RecipientId],
    now: Timestamp,
) {
    let mut receipts = Vec::new();
    for id in dice.some(ids) {
        let status = [
            ReceiptStatus::Sent,
            ReceiptStatus::Delivered,
            ReceiptStatus::Read,
            ReceiptStatus::Failed,
        ][dice.below(4)];
        receipts.push(Receipt {
            account: campaign.account.clone(),
            recipient: Some(id),
            provider_id: None,
            status,
            code: None,
            detail: None,
            is_bounce: false,
            suppress: None,
            at: now,
        });
    }
    let effects = store.apply_receipts(&receipts, now).await.unwrap();
    for (receipt, effect) in receipts.iter().zip(effects) {
        let id = receipt.recipient.unwrap();
        let change = match receipt.status {
            ReceiptStatus::Sent => Change::Accept,
            ReceiptStatus::Delivered => Change::Deliver,
            ReceiptStatus::Read => Change::Read,
            ReceiptStatus::Failed => Change::Bounce,
        };
        let expected = match model.receive(id, change) {
            true => ReceiptEffect::Applied(campaign.id),
            false if model.states.contains_key(&id) => ReceiptEffect::Stale,
            false => ReceiptEffect::NotFound,
        };
        assert_eq!(effect, expected);
    }
}

async fn settle_some(
    store: &Store,
    model: &mut Model,
    dice: &mut Dice,
    campaign: &Campaign,
    ids: &[RecipientId],
    now: Timestamp,
) {
    let settlement =
        [Settlement::Resend, Settlement::Sent, Settlement::Failed, Settlement::RetryFailed]
            [dice.below(4)];
    let some = dice.some(ids);
    let named = (dice.below(3) > 0).then_some(some.as_slice());
    let settled = store.settle_recipients(campaign.id, settlement, named, now).await.unwrap();
    assert_eq!(settled, model.settle(settlement, named), "{settlement:?}");
}

async fn pause_and_resume(store: &Store, model: &mut Model, campaign: &Campaign, now: Timestamp) {
    let next = match model.campaign {
        CampaignState::Running => CampaignChange::Pause,
        CampaignState::Paused => CampaignChange::Start,
        _ => return,
    };
    store.move_campaign(&change(campaign.id, next, now)).await.unwrap();
    if next == CampaignChange::Pause {
        model.change_all(State::Queued, Change::Unqueue, None);
        model.campaign = CampaignState::Paused;
    } else {
        model.campaign = CampaignState::Running;
    }
}
