//! Campaigns: their states and counts; what they are made of is in the files beside this one.

mod accounts;
mod claims;
mod feeding;
mod imports;
mod past_sends;
mod receipts;
mod reports;
mod rules;
mod runs;
mod settling;
mod suppressions;
pub(crate) mod test_log;

use std::collections::BTreeMap;
use std::time::Duration;

use stampede_model::campaign::{
    AccountId, AutoPause, CampaignChange, CampaignState, Content, Pacing, Rate, RecipientState,
    SkipReason, Template,
};
use stampede_model::feed::{CampaignData, Change, Kind};
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, RunId, Timestamp};
use stampede_store::{
    Attempt, AttemptEffect, Campaign, CampaignCounts, CampaignFilter, Claim, Claimed, Import,
    Imported, Move, Moved, NewRecipient, OutboxRow, Receipt, ReceiptStatus, Recipient,
    RecipientFilter, RunResult, Slice, Sorted, Store, Versioned,
};

use super::samples::at;
use crate::backends::Database;

on_every_backend!(
    a_campaign_keeps_everything_that_was_written,
    a_change_meant_for_another_version_is_not_made,
    account_and_content_of_a_running_campaign_stay,
    the_account_of_a_campaign_that_has_started_stays,
    the_account_stays_while_recipients_are_imported,
    campaigns_are_listed_by_owner_state_account_and_event,
    pausing_takes_queued_recipients_back_and_leaves_those_in_flight,
    cancelling_skips_what_is_left,
    what_is_left_of_a_cancelled_campaign_is_skipped_in_portions,
    campaigns_are_told_of_with_their_changes_and_at_most_once_a_second,
    a_campaign_moves_only_as_the_model_says,
    a_campaign_with_recipients_to_send_to_cannot_be_completed,
    a_deleted_campaign_is_gone_at_once_and_removed_in_portions,
    counts_are_compared_with_a_recount,
);

/// A draft that sends through the console.
pub(crate) fn campaign(owner: &str) -> Campaign {
    Campaign {
        id: CampaignId::generate(),
        owner: owner.to_owned(),
        name: "Zoë's \"spring\" 🎟".to_owned(),
        account: AccountId::console(),
        state: CampaignState::Draft,
        reason: None,
        content: Content::Template(Template {
            text: Some("Hello {{ name }}".to_owned()),
            defaults: BTreeMap::from([("name".to_owned(), "you".to_owned())]),
            ..Template::default()
        }),
        pacing: Pacing { limit: Some(Rate { max: 20, per_ms: 60_000 }), ..Pacing::default() },
        auto_pause: AutoPause::default(),
        max_attempts: 3,
        time_zone: Some("Europe/Berlin".to_owned()),
        country: Some("DE".to_owned()),
        start_at: None,
        end_at: None,
        event: Some(EventId::generate()),
        batch: Some(BatchId::generate()),
        counts: CampaignCounts::default(),
        importing: None,
        created_at: at(0),
        updated_at: at(0),
        started_at: None,
        ended_at: None,
    }
}

/// A recipient with this address.
pub(crate) fn recipient(address: &str) -> NewRecipient {
    NewRecipient {
        id: RecipientId::generate(),
        address: address.to_owned(),
        fields: BTreeMap::from([("name".to_owned(), "O'Hara \\ \"Ж\"".to_owned())]),
        message: Some("Line one\nline two".to_owned()),
        time_zone: None,
        ticket: None,
        line: None,
        skip: None,
    }
}

/// So many recipients with addresses of their own.
pub(crate) fn recipients(count: usize) -> Vec<NewRecipient> {
    (0..count).map(|number| recipient(&format!("+49301234{number:04}"))).collect()
}

/// Imports recipients, all of them in one piece.
pub(crate) async fn import(
    store: &Store,
    campaign: CampaignId,
    recipients: &[NewRecipient],
) -> Imported {
    let import = RecipientId::generate();
    let begun = store.begin_import(campaign, import, at(1), at(0)).await.unwrap();
    assert_eq!(begun, Import::Begun);
    let done = store.import_recipients(campaign, import, recipients, at(1)).await.unwrap();
    let fields = recipients.iter().flat_map(|recipient| recipient.fields.keys().cloned()).collect();
    assert!(store.end_import(campaign, import, &fields).await.unwrap());
    done.unwrap()
}

pub(crate) fn change(campaign: CampaignId, change: CampaignChange, now: Timestamp) -> Move {
    Move { campaign, change, reason: None, seen: None, start_at: None, now }
}

/// Moves a campaign; the move is allowed.
pub(crate) async fn moved(
    store: &Store,
    id: CampaignId,
    to: CampaignChange,
    now: Timestamp,
) -> Campaign {
    match store.move_campaign(&change(id, to, now)).await.unwrap() {
        Moved::Done(campaign, _) => *campaign,
        other => panic!("{other:?}"),
    }
}

/// A running campaign of Ann's with so many recipients, all of them queued.
pub(crate) async fn queued(store: &Store, count: usize) -> (Campaign, Vec<RecipientId>) {
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    import(store, new.id, &recipients(count)).await;
    let running = moved(store, new.id, CampaignChange::Start, at(2)).await;
    let fed = store.feed_campaign(new.id, 20_000, at(3)).await.unwrap();
    assert_eq!(fed.queued.len(), count);
    (running, fed.queued)
}

pub(crate) fn claim(campaign: &Campaign, recipient: RecipientId) -> Claim {
    Claim {
        recipient,
        run: RunId::generate(),
        most_in_flight: 100,
        is_idempotent: false,
        campaign_seen: campaign.updated_at,
        account_seen: None,
    }
}

/// Claims one recipient, which is to be sent to; returns the run.
pub(crate) async fn claimed(store: &Store, campaign: &Campaign, id: RecipientId) -> RunId {
    let claim = claim(campaign, id);
    let answers = store.claim_recipients(&[claim], at(4)).await.unwrap();
    assert!(matches!(answers[0], Claimed::Send(_)), "{answers:?}");
    claim.run
}

pub(crate) fn result(recipient: RecipientId, run: RunId, effect: AttemptEffect) -> RunResult {
    let outcome = match &effect {
        AttemptEffect::Sent { .. } => "sent",
        AttemptEffect::Postpone(_) => "slow_down",
        AttemptEffect::Unknown => "unknown",
        _ => "temporary",
    };
    let is_sent = outcome == "sent";
    let attempt = Attempt {
        number: 0,
        at: at(5),
        took: Duration::from_millis(12),
        outcome: outcome.to_owned(),
        code: (!is_sent).then(|| "451 4.7.1".to_owned()),
        answer: Some("try again\\later".to_owned()),
    };
    RunResult { recipient, run, attempt, effect }
}

pub(crate) fn sent(recipient: RecipientId, run: RunId, provider_id: &str) -> RunResult {
    let provider_id = Some(provider_id.to_owned());
    result(recipient, run, AttemptEffect::Sent { provider_id, moved_to: None })
}

pub(crate) async fn read(store: &Store, id: RecipientId) -> Recipient {
    store.recipient(id).await.unwrap().unwrap()
}

pub(crate) async fn all(store: &Store, campaign: CampaignId) -> Vec<Recipient> {
    store.recipients(campaign, &RecipientFilter::default(), None, 100_000).await.unwrap()
}

pub(crate) async fn states(store: &Store, campaign: CampaignId) -> Vec<RecipientState> {
    all(store, campaign).await.iter().map(|recipient| recipient.state).collect()
}

pub(crate) async fn campaign_now(store: &Store, id: CampaignId) -> Campaign {
    store.campaign(id).await.unwrap().unwrap()
}

pub(crate) async fn assert_counts(store: &Store) {
    assert_eq!(store.wrong_campaign_counts().await.unwrap(), []);
}

async fn a_campaign_keeps_everything_that_was_written(db: Database) {
    let store = db.store().await;
    let mut new = campaign("ann");
    new.start_at = Some(at(100));
    new.end_at = Some(at(200));
    store.insert_campaign(&new).await.unwrap();
    assert_eq!(store.campaign(new.id).await.unwrap(), Some(new.clone()));
    assert_eq!(store.campaign(CampaignId::generate()).await.unwrap(), None);

    let changed = Campaign {
        name: "Summer".to_owned(),
        content: Content::Own,
        pacing: Pacing::default(),
        auto_pause: AutoPause { in_a_row: 0, failed_percent: 100, bounced_percent: 7 },
        max_attempts: 5,
        time_zone: None,
        country: None,
        start_at: None,
        end_at: Some(at(300)),
        updated_at: at(5),
        // Not for this call to change.
        owner: "eve".to_owned(),
        state: CampaignState::Running,
        event: None,
        ..new.clone()
    };
    let written = store.update_campaign_as_seen(&changed, Some(at(0))).await.unwrap();
    let expected = Campaign {
        owner: "ann".to_owned(),
        state: CampaignState::Draft,
        event: new.event,
        ..changed
    };
    assert_eq!(written, Versioned::Done(expected.clone()));
    assert_eq!(store.campaign(new.id).await.unwrap(), Some(expected));
}

async fn a_change_meant_for_another_version_is_not_made(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    let late = store.update_campaign_as_seen(&new, Some(at(1))).await.unwrap();
    assert_eq!(late, Versioned::ChangedMeanwhile);
    let none = store.update_campaign_as_seen(&campaign("ann"), None).await.unwrap();
    assert_eq!(none, Versioned::NotFound);
    let start = Move { seen: Some(at(1)), ..change(new.id, CampaignChange::Start, at(2)) };
    assert!(matches!(store.move_campaign(&start).await.unwrap(), Moved::Changed(_)));
    // Within one millisecond, too, the version grows.
    let Versioned::Done(second) = store.update_campaign_as_seen(&new, None).await.unwrap() else {
        panic!()
    };
    assert!(second.updated_at > new.updated_at);
    let deleted = store.delete_campaign_as_seen(new.id, Some(at(0))).await.unwrap();
    assert_eq!(deleted, Versioned::ChangedMeanwhile);
    assert!(store.campaign(new.id).await.unwrap().is_some());
}

async fn account_and_content_of_a_running_campaign_stay(db: Database) {
    let store = db.store().await;
    let (running, _) = queued(&store, 1).await;
    let changed = Campaign {
        account: "other".parse().unwrap(),
        content: Content::Own,
        pacing: Pacing::default(),
        ..running.clone()
    };
    let written = store.update_campaign_as_seen(&changed, None).await.unwrap().done().unwrap();
    assert_eq!((&written.account, &written.content), (&running.account, &running.content));
    assert_eq!(written.pacing, Pacing::default(), "the limit of a running campaign changes");
}

async fn the_account_of_a_campaign_that_has_started_stays(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let run = claimed(&store, &running, ids[0]).await;
    moved(&store, running.id, CampaignChange::Pause, at(5)).await;
    let changed = Campaign {
        account: "other".parse().unwrap(),
        content: Content::Own,
        ..campaign_now(&store, running.id).await
    };
    let written = store.update_campaign_as_seen(&changed, None).await.unwrap().done().unwrap();
    assert_eq!((&written.account, &written.content), (&running.account, &Content::Own));
    // The receipt of the message in flight comes to the account that sent it.
    store.record_runs(&[sent(ids[0], run, "m1")], at(6)).await.unwrap();
    let receipt = Receipt {
        account: running.account.clone(),
        recipient: None,
        provider_id: Some("m1".to_owned()),
        status: ReceiptStatus::Delivered,
        code: None,
        detail: None,
        is_bounce: false,
        suppress: None,
        at: at(7),
    };
    store.apply_receipts(&[receipt], at(7)).await.unwrap();
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Delivered);
}

async fn the_account_stays_while_recipients_are_imported(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    let other = Campaign { account: "other".parse().unwrap(), ..new.clone() };
    let import = RecipientId::generate();
    store.begin_import(new.id, import, at(1), at(0)).await.unwrap();
    let written = store.update_campaign_as_seen(&other, None).await.unwrap().done().unwrap();
    assert_eq!(written.account, new.account);
    store.undo_import(new.id, import).await.unwrap();
    let written = store.update_campaign_as_seen(&other, None).await.unwrap().done().unwrap();
    assert_eq!(written.account, other.account);
}

async fn campaigns_are_listed_by_owner_state_account_and_event(db: Database) {
    let store = db.store().await;
    let (one, two, three) = (campaign("ann"), campaign("bob"), campaign("ann"));
    let three = Campaign { account: "mail".parse().unwrap(), ..three };
    for campaign in [&one, &two, &three] {
        store.insert_campaign(campaign).await.unwrap();
    }
    moved(&store, two.id, CampaignChange::Start, at(1)).await;
    let listed = async |filter: CampaignFilter, after| -> Vec<CampaignId> {
        let slice = Slice::new(Sorted::NewestFirst, after, 10);
        store.campaigns(&filter, &slice).await.unwrap().iter().map(|it| it.id).collect()
    };
    let any = CampaignFilter::default;
    assert_eq!(listed(any(), None).await, [three.id, two.id, one.id]);
    assert_eq!(listed(any(), Some(three.id)).await, [two.id, one.id]);
    let of_ann = CampaignFilter { owner: Some("ann".to_owned()), ..any() };
    assert_eq!(listed(of_ann, None).await, [three.id, one.id]);
    let running = CampaignFilter { state: Some(CampaignState::Running), ..any() };
    assert_eq!(listed(running, None).await, [two.id]);
    let of_mail = CampaignFilter { account: Some(three.account.clone()), ..any() };
    assert_eq!(listed(of_mail, None).await, [three.id]);
    let of_event = CampaignFilter { event: one.event, ..any() };
    assert_eq!(listed(of_event, None).await, [one.id]);
}

async fn pausing_takes_queued_recipients_back_and_leaves_those_in_flight(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let run = claimed(&store, &running, ids[1]).await;
    let pause = Move {
        reason: Some("ten failures in a row".to_owned()),
        ..change(running.id, CampaignChange::Pause, at(6))
    };
    let Moved::Done(paused, taken_back) = store.move_campaign(&pause).await.unwrap() else {
        panic!()
    };
    assert_eq!(sorted(taken_back), [ids[0], ids[2], ids[3]]);
    assert_eq!(paused.state, CampaignState::Paused);
    assert_eq!(paused.reason.as_deref(), Some("ten failures in a row"));
    assert_eq!((paused.counts.pending, paused.counts.queued, paused.counts.sending), (3, 0, 1));
    let answers = store.claim_recipients(&[claim(&paused, ids[0])], at(7)).await.unwrap();
    assert_eq!(answers, [Claimed::Nothing], "nothing is sent after a pause");
    assert_eq!(store.feed_campaign(running.id, 10, at(7)).await.unwrap().queued, []);

    // What was in flight still ends, and what comes back waits.
    let retry = AttemptEffect::Retry(at(8));
    store.record_runs(&[result(ids[1], run, retry)], at(7)).await.unwrap();
    assert_eq!(states(&store, running.id).await, [RecipientState::Pending; 4]);
    let resumed = moved(&store, running.id, CampaignChange::Start, at(9)).await;
    assert_eq!((resumed.reason, resumed.started_at), (None, running.started_at));
    let fed = store.feed_campaign(running.id, 10, at(9)).await.unwrap();
    assert_eq!(fed.queued, [ids[1], ids[0], ids[2], ids[3]], "what is due again goes first");
    assert_counts(&store).await;
}

async fn cancelling_skips_what_is_left(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let runs = [claimed(&store, &running, ids[0]).await, claimed(&store, &running, ids[1]).await];
    let cancelled = moved(&store, running.id, CampaignChange::Cancel, at(6)).await;
    assert_eq!((cancelled.counts.skipped, cancelled.counts.sending), (2, 2));
    assert_eq!(cancelled.ended_at, Some(at(6)));
    assert_eq!(read(&store, ids[2]).await.skipped, Some(SkipReason::Cancelled));
    // One that was in flight is sent, and one would have to be tried again.
    let retry = result(ids[1], runs[1], AttemptEffect::Retry(at(9)));
    let recorded = store.record_runs(&[sent(ids[0], runs[0], "m1"), retry], at(7)).await.unwrap();
    assert_eq!(recorded, [true, true]);
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Sent);
    let skipped = read(&store, ids[1]).await;
    assert_eq!(skipped.skipped, Some(SkipReason::Cancelled));
    assert_eq!((skipped.state, skipped.next_at), (RecipientState::Skipped, None));
    assert_eq!(store.recipient_attempts(ids[1]).await.unwrap().len(), 1, "the attempt is known");
    assert_counts(&store).await;
}

fn sorted(mut ids: Vec<RecipientId>) -> Vec<RecipientId> {
    ids.sort_unstable();
    ids
}

async fn what_is_left_of_a_cancelled_campaign_is_skipped_in_portions(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    import(&store, new.id, &recipients(5)).await;
    moved(&store, new.id, CampaignChange::Start, at(2)).await;
    let fed = store.feed_campaign(new.id, 2, at(3)).await.unwrap().queued;
    assert_eq!(store.skip_cancelled(new.id, 9, at(4)).await.unwrap(), 0, "it is running");
    let cancel = change(new.id, CampaignChange::Cancel, at(5));
    let Moved::Done(cancelled, taken_back) = store.move_campaign(&cancel).await.unwrap() else {
        panic!()
    };
    assert_eq!(cancelled.state, CampaignState::Cancelled);
    assert_eq!((cancelled.counts.pending, cancelled.counts.skipped), (3, 2));
    assert_eq!(sorted(taken_back), sorted(fed));
    assert_eq!(store.feed_campaign(new.id, 9, at(6)).await.unwrap().queued, []);
    // A process that dies here leaves them to the reconciler.
    assert_eq!(store.cancelled_campaigns(9).await.unwrap(), [new.id]);
    for portion in [2, 1, 0] {
        assert_eq!(store.skip_cancelled(new.id, 2, at(7)).await.unwrap(), portion);
        assert_counts(&store).await;
    }
    assert_eq!(store.cancelled_campaigns(9).await.unwrap(), []);
    let left = all(&store, new.id).await;
    assert!(left.iter().all(|it| it.skipped == Some(SkipReason::Cancelled)), "{left:?}");
}

/// What was told of campaigns since the last call.
async fn told(store: &Store) -> Vec<(Kind, CampaignData)> {
    let rows = store.outbox(1_000).await.unwrap();
    store.settle_outbox(&rows).await.unwrap();
    let read = |row: &OutboxRow| {
        assert_eq!(row.owner, "ann");
        let change = Change::parse(row.kind.parse().unwrap(), &row.data).unwrap();
        match change.clone() {
            Change::CampaignCreated(data)
            | Change::CampaignChanged(data)
            | Change::CampaignProgressed(data)
            | Change::CampaignDeleted(data) => (change.kind(), data),
            other => panic!("{other:?}"),
        }
    };
    rows.iter().map(read).collect()
}

async fn campaigns_are_told_of_with_their_changes_and_at_most_once_a_second(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let first = told(&store).await;
    let kinds: Vec<Kind> = first.iter().map(|(kind, _)| *kind).collect();
    // It was made, started and fed.
    assert_eq!(kinds, [Kind::CampaignCreated, Kind::CampaignChanged, Kind::CampaignProgressed]);
    let (_, fed) = &first[2];
    assert_eq!((fed.status, fed.total, fed.queued), (CampaignState::Running, 3, 3));
    assert_eq!(fed.status_reason, None);
    assert!(first.is_sorted_by(|(_, one), (_, two)| one.revision < two.revision));

    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[sent(ids[0], run, "m1")], at(5)).await.unwrap();
    let again = |second| store.feed_campaign(running.id, 9, at(second));
    again(3).await.unwrap();
    assert!(told(&store).await.is_empty(), "it was told within the last second");
    again(4).await.unwrap();
    again(9).await.unwrap();
    let progress = told(&store).await;
    assert_eq!(progress.len(), 1, "what has not changed is not told");
    assert_eq!((progress[0].0, progress[0].1.sent), (Kind::CampaignProgressed, 1));

    let reason = Some("ten failures in a row".to_owned());
    let pause =
        Move { reason: reason.clone(), ..change(running.id, CampaignChange::Pause, at(10)) };
    store.move_campaign(&pause).await.unwrap();
    moved(&store, running.id, CampaignChange::Pause, at(11)).await;
    let paused = told(&store).await;
    assert_eq!(paused.len(), 1, "the second pause changed nothing");
    assert_eq!((paused[0].1.status, paused[0].1.pending), (CampaignState::Paused, 2));
    assert_eq!(paused[0].1.status_reason, reason);
    // Nobody feeds it now; the reconciler tells what receipts change.
    assert_eq!(store.tell_campaigns(9, at(20)).await.unwrap(), 0);
    let receipt = Receipt {
        account: running.account.clone(),
        recipient: Some(ids[0]),
        provider_id: None,
        status: ReceiptStatus::Read,
        code: None,
        detail: None,
        is_bounce: false,
        suppress: None,
        at: at(20),
    };
    store.apply_receipts(&[receipt], at(20)).await.unwrap();
    assert_eq!(store.tell_campaigns(9, at(21)).await.unwrap(), 1);
    assert_eq!(store.tell_campaigns(9, at(22)).await.unwrap(), 0);
    assert_eq!(told(&store).await[0].1.read, 1);
    store.delete_campaign_as_seen(running.id, None).await.unwrap();
    store.forget_campaigns(9).await.unwrap();
    assert_eq!(store.tell_campaigns(9, at(30)).await.unwrap(), 0);
    let last = told(&store).await;
    assert_eq!((last.len(), last[0].0), (1, Kind::CampaignDeleted));
}

async fn a_campaign_moves_only_as_the_model_says(db: Database) {
    let store = db.store().await;
    for state in CampaignState::ALL {
        for step in CampaignChange::ALL {
            let new = Campaign { state: *state, ..campaign("ann") };
            store.insert_campaign(&new).await.unwrap();
            let start_at = Some(at(50));
            let step_now = Move { start_at, ..change(new.id, step, at(9)) };
            let answer = store.move_campaign(&step_now).await.unwrap();
            let next = stampede_model::campaign::next_campaign_state(*state, step);
            match (next, answer) {
                (Some(next), Moved::Done(after, _)) => {
                    assert_eq!(after.state, next, "{state:?} {step:?}");
                    let is_changed = next != *state || step == CampaignChange::Schedule;
                    assert_eq!(after.updated_at > new.updated_at, is_changed, "{state:?} {step:?}");
                    let starts = step == CampaignChange::Schedule;
                    assert_eq!(after.start_at, start_at.filter(|_| starts));
                }
                (None, Moved::WrongState(after)) => assert_eq!(*after, new),
                (_, other) => panic!("{state:?} {step:?} {other:?}"),
            }
        }
    }
    let nobody = change(CampaignId::generate(), CampaignChange::Start, at(1));
    assert_eq!(store.move_campaign(&nobody).await.unwrap(), Moved::NotFound);
}

async fn a_campaign_with_recipients_to_send_to_cannot_be_completed(db: Database) {
    let store = db.store().await;
    let (running, _) = queued(&store, 1).await;
    let complete = change(running.id, CampaignChange::Complete, at(5));
    assert!(matches!(store.move_campaign(&complete).await.unwrap(), Moved::WrongState(_)));
}

async fn a_deleted_campaign_is_gone_at_once_and_removed_in_portions(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 5).await;
    let (kept, _) = queued(&store, 2).await;
    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[sent(ids[0], run, "m1")], at(5)).await.unwrap();
    let refused = store.delete_campaign_as_seen(running.id, None).await.unwrap();
    assert_eq!(refused, Versioned::ChangedMeanwhile, "it is running");
    moved(&store, running.id, CampaignChange::Pause, at(6)).await;
    let deleted = store.delete_campaign_as_seen(running.id, None).await.unwrap();
    assert_eq!(deleted, Versioned::Done(()));
    assert_eq!(store.campaign(running.id).await.unwrap(), None);
    assert_eq!(store.recipient(ids[1]).await.unwrap(), None);
    assert_eq!(all(&store, running.id).await, []);
    let again = store.delete_campaign_as_seen(running.id, None).await.unwrap();
    assert_eq!(again, Versioned::NotFound);
    let start = change(running.id, CampaignChange::Start, at(7));
    assert_eq!(store.move_campaign(&start).await.unwrap(), Moved::NotFound);
    let begun = store.begin_import(running.id, RecipientId::generate(), at(7), at(0)).await;
    assert_eq!(begun.unwrap(), Import::NotFound);

    for portion in [2, 2, 1, 0] {
        assert_eq!(store.forget_campaigns(2).await.unwrap(), portion);
    }
    assert_eq!(store.recipient_attempts(ids[0]).await.unwrap(), []);
    assert_eq!(campaign_now(&store, kept.id).await.counts.queued, 2, "others stay");
    assert_counts(&store).await;
}

async fn counts_are_compared_with_a_recount(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    claimed(&store, &running, ids[0]).await;
    assert_counts(&store).await;
    sqlx::any::install_default_drivers();
    let stranger = sqlx::AnyPool::connect(&db.url).await.unwrap();
    let forge = sqlx::query("UPDATE campaign_counts SET sent = sent + 1, queued = queued + 1");
    forge.execute(&stranger).await.unwrap();
    let right = CampaignCounts { queued: 2, sending: 1, ..CampaignCounts::default() };
    assert_eq!(store.wrong_campaign_counts().await.unwrap(), [(running.id, right)]);
}
