//! How runs end.

use stampede_model::campaign::{
    AccountId, CampaignChange, RecipientState, SkipReason, SuppressionReason,
};
use stampede_model::{RecipientId, RunId, Timestamp};
use stampede_store::{
    AttemptEffect, Campaign, Claimed, Receipt, ReceiptEffect, ReceiptStatus, RunResult, Settlement,
    Store, Suppression, SuppressionFilter,
};

use super::{
    assert_counts, campaign_now, claim, claimed, moved, queued, read, result, sent, states,
};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    an_attempt_is_recorded_with_its_effect,
    a_chat_that_has_moved_is_sent_to_at_its_new_address,
    a_chat_that_has_moved_to_another_recipients_chat_is_skipped,
    a_result_of_another_run_is_refused,
    a_result_that_is_told_twice_is_recorded_once,
    a_postponed_attempt_is_logged_and_does_not_count,
    a_released_recipient_waits_as_if_nothing_had_been,
    a_receipt_may_be_faster_than_the_record,
    a_late_retry_in_a_completed_campaign_is_a_failure,
    a_persons_word_ends_the_say_of_a_run,
    the_first_message_of_an_account_is_noted,
    the_log_keeps_the_last_attempts,
    the_last_outcomes_of_an_address_are_found_over_all_campaigns_of_an_account,
);

async fn an_attempt_is_recorded_with_its_effect(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let mut runs = Vec::new();
    for id in &ids {
        runs.push(claimed(&store, &running, *id).await);
    }
    let moved_to = Some("-100200".to_owned());
    let accepted = AttemptEffect::Sent { provider_id: Some("wamid.1".to_owned()), moved_to };
    let results = [
        result(ids[0], runs[0], accepted),
        result(ids[1], runs[1], AttemptEffect::Retry(at(60))),
        result(ids[2], runs[2], AttemptEffect::Failed(Some(SuppressionReason::Bounce))),
        result(ids[3], runs[3], AttemptEffect::Unknown),
    ];
    assert_eq!(store.record_runs(&results, at(6)).await.unwrap(), [true; 4]);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.address.as_str()), (RecipientState::Sent, "-100200"));
    assert_eq!(found.provider_id.as_deref(), Some("wamid.1"));
    assert_eq!(found.sent_at, Some(at(5) + results[0].attempt.took));
    assert_eq!((found.code, found.updated_at), (None, at(6)));
    let found = read(&store, ids[1]).await;
    assert_eq!((found.state, found.next_at), (RecipientState::Pending, Some(at(60))));
    assert_eq!((found.attempts, found.code.as_deref()), (1, Some("451 4.7.1")));
    assert_eq!(found.detail.as_deref(), Some("try again\\later"));
    let found = read(&store, ids[2]).await;
    assert_eq!(found.state, RecipientState::Failed);
    let suppressed = store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
    assert_eq!(suppressed.len(), 1);
    let one = &suppressed[0];
    assert_eq!((one.owner.as_str(), one.reason), ("ann", SuppressionReason::Bounce));
    assert_eq!((&one.address, one.by.as_str()), (&found.address, "console"));
    assert_eq!(one.account.as_ref(), Some(&running.account));
    assert_eq!(read(&store, ids[3]).await.state, RecipientState::Unknown);
    let log = store.recipient_attempts(ids[1]).await.unwrap();
    let expected = stampede_store::Attempt { number: 1, ..results[1].attempt.clone() };
    assert_eq!(log, [expected]);
    assert_eq!(store.record_runs(&[], at(6)).await.unwrap(), [false; 0]);
    assert_counts(&store).await;
}

async fn a_chat_that_has_moved_is_sent_to_at_its_new_address(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    for (id, address) in [(ids[0], "-100200"), (ids[1], "-100300")] {
        let run = claimed(&store, &running, id).await;
        let moved = result(id, run, AttemptEffect::Moved(address.to_owned()));
        assert_eq!(store.record_runs(&[moved], at(6)).await.unwrap(), [true]);
        let found = read(&store, id).await;
        assert_eq!((found.address.as_str(), found.state), (address, RecipientState::Pending));
        assert_eq!((found.attempts, found.next_at), (0, Some(at(6))), "due at once");
        assert_eq!(store.recipient_attempts(id).await.unwrap().len(), 1);
    }
    let outcomes = store.last_outcomes(running.id, Timestamp::UNIX_EPOCH, 9).await.unwrap();
    assert_eq!(outcomes, [], "it does not count");
    // Somebody in one of the new chats has said stop.
    let stop = Suppression {
        owner: "ann".to_owned(),
        account: None,
        address: "-100300".to_owned(),
        reason: SuppressionReason::Stop,
        since: at(1),
        by: "ann".to_owned(),
    };
    store.add_suppressions(&[stop]).await.unwrap();
    let fed = store.feed_campaign(running.id, 9, at(6)).await.unwrap();
    assert_eq!(fed.queued.len(), 2);
    let claims = [claim(&running, ids[0]), claim(&running, ids[1])];
    let answers = store.claim_recipients(&claims, at(7)).await.unwrap();
    let [Claimed::Send(sending), Claimed::OptedOut] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!((sending.address.as_str(), sending.attempts), ("-100200", 1));
    store.record_runs(&[sent(ids[0], claims[0].run, "m")], at(8)).await.unwrap();
    // The key has moved, too: nobody else is added with the new address, and the log is found by it.
    let to = store.last_outcomes_to(&running.account, "-100200", 9).await.unwrap();
    assert_eq!(to, [("sent".to_owned(), None)]);
    assert_counts(&store).await;
}

async fn a_chat_that_has_moved_to_another_recipients_chat_is_skipped(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let taken = read(&store, ids[2]).await.address;
    let mut results = Vec::new();
    for (id, address) in [(ids[0], taken.as_str()), (ids[1], "-100300")] {
        let run = claimed(&store, &running, id).await;
        results.push(result(id, run, AttemptEffect::Moved(address.to_owned())));
    }
    assert_eq!(store.record_runs(&results, at(6)).await.unwrap(), [true, true]);
    let skipped = read(&store, ids[0]).await;
    assert_eq!(skipped.state, RecipientState::Skipped);
    assert_eq!((skipped.skipped, skipped.next_at), (Some(SkipReason::Duplicate), None));
    assert!(skipped.detail.unwrap().contains(&taken));
    assert_eq!(read(&store, ids[1]).await.state, RecipientState::Pending);
    // Two that move to the same chat in one transaction.
    let (running, ids) = queued(&store, 2).await;
    let mut results = Vec::new();
    for id in &ids {
        let run = claimed(&store, &running, *id).await;
        results.push(result(*id, run, AttemptEffect::Moved("-100400".to_owned())));
    }
    assert_eq!(store.record_runs(&results, at(6)).await.unwrap(), [true, true]);
    let mut states = states(&store, running.id).await;
    states.sort_unstable();
    assert_eq!(states, [RecipientState::Pending, RecipientState::Skipped]);
    assert_counts(&store).await;
}

async fn a_result_of_another_run_is_refused(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let run = claimed(&store, &running, ids[0]).await;
    let stranger = sent(ids[0], RunId::generate(), "m");
    let unclaimed = sent(ids[1], run, "m");
    let nobody = sent(RecipientId::generate(), run, "m");
    let recorded = store.record_runs(&[stranger, unclaimed, nobody], at(6)).await.unwrap();
    assert_eq!(recorded, [false; 3]);
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Sending);
    assert_eq!(read(&store, ids[1]).await.state, RecipientState::Queued);
}

async fn a_result_that_is_told_twice_is_recorded_once(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    for (id, effect) in [
        (ids[0], AttemptEffect::Sent { provider_id: None, moved_to: None }),
        (ids[1], AttemptEffect::Retry(at(9))),
    ] {
        let run = claimed(&store, &running, id).await;
        let told: RunResult = result(id, run, effect);
        for _ in 0..2 {
            let recorded = store.record_runs(std::slice::from_ref(&told), at(6)).await.unwrap();
            assert_eq!(recorded, [true]);
        }
        let twice = [told.clone(), told];
        assert_eq!(store.record_runs(&twice, at(6)).await.unwrap(), [true; 2]);
        assert_eq!(store.recipient_attempts(id).await.unwrap().len(), 1);
        assert_eq!(read(&store, id).await.attempts, 1);
    }
    let run = claimed_again(&store, &running, ids[1]).await;
    let twice = [sent(ids[1], run, "m"), sent(ids[1], run, "m")];
    assert_eq!(store.record_runs(&twice, at(10)).await.unwrap(), [true; 2]);
    assert_eq!(store.recipient_attempts(ids[1]).await.unwrap().len(), 2);
    assert_counts(&store).await;
}

/// Feeds and claims a recipient that is due again.
async fn claimed_again(store: &Store, campaign: &Campaign, id: RecipientId) -> RunId {
    assert_eq!(store.feed_campaign(campaign.id, 9, at(9)).await.unwrap().queued, [id]);
    claimed(store, campaign, id).await
}

async fn a_postponed_attempt_is_logged_and_does_not_count(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    for expected in 1..=2 {
        let run = claimed(&store, &running, ids[0]).await;
        let postponed = result(ids[0], run, AttemptEffect::Postpone(at(20)));
        store.record_runs(&[postponed], at(6)).await.unwrap();
        let found = read(&store, ids[0]).await;
        assert_eq!((found.attempts, found.next_at), (0, Some(at(20))));
        assert_eq!(store.recipient_attempts(ids[0]).await.unwrap().len(), expected);
        store.feed_campaign(running.id, 9, at(20)).await.unwrap();
    }
    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[sent(ids[0], run, "m")], at(30)).await.unwrap();
    assert_eq!(read(&store, ids[0]).await.attempts, 1);
    let log = store.recipient_attempts(ids[0]).await.unwrap();
    assert_eq!(log.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2, 3]);
    let outcomes = store.last_outcomes(running.id, Timestamp::UNIX_EPOCH, 9).await.unwrap();
    assert_eq!(outcomes, [("sent".to_owned(), None)], "those that count");
}

async fn a_released_recipient_waits_as_if_nothing_had_been(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let before = read(&store, ids[0]).await;
    let runs = [claimed(&store, &running, ids[0]).await, claimed(&store, &running, ids[1]).await];
    // The second one was taken for lost by another run.
    store.claim_recipients(&[claim(&running, ids[1])], at(5)).await.unwrap();
    let released = [0, 1].map(|i| result(ids[i], runs[i], AttemptEffect::Released));
    assert_eq!(store.record_runs(&released, at(6)).await.unwrap(), [true; 2]);
    let after = read(&store, ids[0]).await;
    assert_eq!((after.state, after.attempts), (RecipientState::Pending, 0));
    assert_eq!((after.code, after.next_at), (before.code, None));
    let after = read(&store, ids[1]).await;
    assert_eq!((after.state, after.attempts, after.code), (RecipientState::Pending, 0, None));
    assert_eq!(store.recipient_attempts(ids[0]).await.unwrap(), [], "the provider was not called");
    assert_counts(&store).await;
}

async fn a_receipt_may_be_faster_than_the_record(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let run = claimed(&store, &running, ids[0]).await;
    let receipt = Receipt {
        account: running.account.clone(),
        recipient: Some(ids[0]),
        provider_id: None,
        status: ReceiptStatus::Delivered,
        code: None,
        detail: None,
        is_bounce: false,
        suppress: None,
        at: at(6),
    };
    let applied = store.apply_receipts(&[receipt], at(6)).await.unwrap();
    assert_eq!(applied, [ReceiptEffect::Applied(running.id)]);
    assert_eq!(store.record_runs(&[sent(ids[0], run, "m7")], at(7)).await.unwrap(), [true]);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.delivered_at), (RecipientState::Delivered, Some(at(6))));
    assert_eq!(found.provider_id.as_deref(), Some("m7"));
    assert!(found.sent_at.unwrap() < at(6));
    assert_eq!(store.recipient_attempts(ids[0]).await.unwrap().len(), 1);
}

async fn a_late_retry_in_a_completed_campaign_is_a_failure(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let run = claimed(&store, &running, ids[0]).await;
    store.put_back_recipients(&ids, at(6)).await.unwrap();
    assert!(store.feed_campaign(running.id, 9, at(7)).await.unwrap().is_completed);
    let late = result(ids[0], run, AttemptEffect::Retry(at(30)));
    assert_eq!(store.record_runs(&[late], at(8)).await.unwrap(), [true]);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.next_at), (RecipientState::Failed, None));
    assert_eq!(campaign_now(&store, running.id).await.counts.open(), 0);
    assert_counts(&store).await;
}

async fn a_persons_word_ends_the_say_of_a_run(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let run = claimed(&store, &running, ids[0]).await;
    moved(&store, running.id, CampaignChange::Pause, at(5)).await;
    store.put_back_recipients(&ids, at(6)).await.unwrap();
    let settled = store.settle_recipients(running.id, Settlement::Failed, None, at(7)).await;
    assert_eq!(settled.unwrap(), 1);
    assert_eq!(store.record_runs(&[sent(ids[0], run, "m")], at(8)).await.unwrap(), [false]);
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Failed);
}

async fn the_first_message_of_an_account_is_noted(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let first = async || store.account(&running.account).await.unwrap().unwrap().first_sent_at;
    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[result(ids[0], run, AttemptEffect::Failed(None))], at(6)).await.unwrap();
    assert_eq!(first().await, None);
    for (id, second) in [(ids[1], 7), (ids[2], 9)] {
        let run = claimed(&store, &running, id).await;
        let mut sent = sent(id, run, "m");
        sent.attempt.at = at(second);
        store.record_runs(&[sent], at(20)).await.unwrap();
        assert_eq!(first().await, Some(at(7)));
    }
}

async fn the_log_keeps_the_last_attempts(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    for _ in 0..52 {
        let run = claimed(&store, &running, ids[0]).await;
        let postponed = result(ids[0], run, AttemptEffect::Postpone(at(6)));
        store.record_runs(&[postponed], at(6)).await.unwrap();
        store.feed_campaign(running.id, 9, at(6)).await.unwrap();
    }
    let log = store.recipient_attempts(ids[0]).await.unwrap();
    assert_eq!((log.len(), log[0].number, log[49].number), (50, 3, 52));
}

async fn the_last_outcomes_of_an_address_are_found_over_all_campaigns_of_an_account(db: Database) {
    let store = db.store().await;
    let mut account = None;
    for (second, code) in [(10, "552"), (20, "451"), (30, "552 5.2.2")] {
        let (running, ids) = queued(&store, 2).await;
        let run = claimed(&store, &running, ids[0]).await;
        let mut failed = result(ids[0], run, AttemptEffect::Failed(None));
        failed.attempt.at = at(second);
        failed.attempt.outcome = "never".to_owned();
        failed.attempt.code = Some(code.to_owned());
        store.record_runs(&[failed], at(second)).await.unwrap();
        let run = claimed(&store, &running, ids[1]).await;
        store.record_runs(&[sent(ids[1], run, "m")], at(second)).await.unwrap();
        account = Some((running.account, read(&store, ids[0]).await.address));
    }
    let (account, address) = account.unwrap();
    assert_eq!(codes(&store, &account, &address, 9).await, ["552 5.2.2", "451", "552"]);
    assert_eq!(codes(&store, &account, &address, 2).await, ["552 5.2.2", "451"]);
    let beginning = &address[..address.len() - 1];
    assert_eq!(codes(&store, &account, beginning, 9).await, [""; 0], "another address");
    let other = "other".parse().unwrap();
    assert_eq!(codes(&store, &other, &address, 9).await, [""; 0]);
}

/// The codes of the last attempts to send to an address.
async fn codes(store: &Store, account: &AccountId, address: &str, limit: u32) -> Vec<String> {
    let found = store.last_outcomes_to(account, address, limit).await.unwrap();
    found.into_iter().map(|(_, code)| code.unwrap_or_default()).collect()
}
