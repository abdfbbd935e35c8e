//! Messages that left.

use std::time::Duration;

use stampede_model::campaign::{AccountId, CampaignChange};
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_store::{
    AttemptEffect, Campaign, PastSend, Receipt, ReceiptStatus, RunResult, SendFilter, SendScope,
    Store, TestAttempt, TestEnd,
};

use super::test_log::test;
use super::{campaign, claimed, import, moved, queued, recipients, result, sent};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    attempts_that_count_are_listed_the_latest_first,
    messages_that_may_have_left_are_listed_with_what_is_known,
    what_never_left_is_not_listed,
    messages_of_all_campaigns_of_an_account_are_listed,
    messages_to_the_same_address_may_count_once,
);

fn all_of(scope: SendScope) -> SendFilter {
    SendFilter { scope, since: at(0), once_per_address: false }
}

fn of_campaign(campaign: &Campaign) -> SendFilter {
    all_of(SendScope::Campaign(campaign.id))
}

async fn listed(store: &Store, filter: &SendFilter) -> Vec<PastSend> {
    store.past_sends(filter, at(100), 1_000).await.unwrap()
}

fn exactly(id: RecipientId, number: u32, at: Timestamp) -> PastSend {
    PastSend { key: format!("{id}:{number}"), earliest: at, latest: at }
}

/// The result of a run that began at a moment.
fn began(result: RunResult, second: u64) -> RunResult {
    let attempt = stampede_store::Attempt { at: at(second), ..result.attempt };
    RunResult { attempt, ..result }
}

async fn record(store: &Store, results: &[RunResult]) {
    assert_eq!(store.record_runs(results, at(50)).await.unwrap(), vec![true; results.len()]);
}

async fn attempts_that_count_are_listed_the_latest_first(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    assert_eq!(listed(&store, &of_campaign(&running)).await, []);
    for (number, id) in ids.iter().enumerate() {
        let run = claimed(&store, &running, *id).await;
        record(&store, &[began(sent(*id, run, "m"), 10 + number as u64)]).await;
    }
    let wanted =
        [exactly(ids[2], 1, at(12)), exactly(ids[1], 1, at(11)), exactly(ids[0], 1, at(10))];
    assert_eq!(listed(&store, &of_campaign(&running)).await, wanted);
    let newest = store.past_sends(&of_campaign(&running), at(100), 2).await.unwrap();
    assert_eq!(newest, wanted[..2]);
    let late = SendFilter { since: at(11), ..of_campaign(&running) };
    assert_eq!(listed(&store, &late).await, wanted[..1]);
}

async fn messages_that_may_have_left_are_listed_with_what_is_known(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    for id in &ids {
        claimed(&store, &running, *id).await;
    }
    // Claimed, and its run is gone; settled by a person afterwards.
    store.put_back_recipients(&ids[1..], at(30)).await.unwrap();
    let person = stampede_store::Settlement::Failed;
    store.settle_recipients(running.id, person, Some(&ids[2..]), at(31)).await.unwrap();
    let silent = test(&running, 20);
    let end = TestEnd {
        took: Duration::from_secs(2),
        outcome: "sent".to_owned(),
        code: None,
        answer: None,
        provider_id: None,
    };
    let answered = TestAttempt { end: Some(end.clone()), ..test(&running, 21) };
    let refused = TestEnd { outcome: "not_sent".to_owned(), ..end };
    let refused = TestAttempt { end: Some(refused), ..test(&running, 22) };
    for test in [&silent, &answered, &refused] {
        store.note_test(test).await.unwrap();
    }
    let mut found = listed(&store, &of_campaign(&running)).await;
    found.sort_by_key(|send| (send.latest, send.earliest));
    let wanted = [
        PastSend { key: answered.id.to_string(), earliest: at(21), latest: at(23) },
        PastSend { key: format!("{}:1", ids[1]), earliest: at(0), latest: at(30) },
        PastSend { key: format!("{}:1", ids[0]), earliest: at(4), latest: at(100) },
        PastSend { key: silent.id.to_string(), earliest: at(20), latest: at(100) },
    ];
    assert_eq!(found, wanted);
}

async fn what_never_left_is_not_listed(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 5).await;
    let mut runs = Vec::new();
    for id in &ids {
        runs.push(claimed(&store, &running, *id).await);
    }
    let mut unreached = result(ids[2], runs[2], AttemptEffect::Retry(at(60)));
    unreached.attempt.outcome = "not_sent".to_owned();
    let mut unmade = result(ids[3], runs[3], AttemptEffect::Failed(None));
    unmade.attempt.outcome = "withheld".to_owned();
    let results = [
        result(ids[0], runs[0], AttemptEffect::Released),
        result(ids[1], runs[1], AttemptEffect::Postpone(at(60))),
        unreached,
        unmade,
        sent(ids[4], runs[4], "m"),
    ];
    record(&store, &results).await;
    // A receipt is no message.
    let receipt = Receipt {
        account: running.account.clone(),
        recipient: Some(ids[4]),
        provider_id: None,
        status: ReceiptStatus::Failed,
        code: None,
        detail: None,
        is_bounce: true,
        suppress: None,
        at: at(51),
    };
    store.apply_receipts(&[receipt], at(51)).await.unwrap();
    assert_eq!(listed(&store, &of_campaign(&running)).await, [exactly(ids[4], 1, at(5))]);
}

/// Another running campaign of the same account, with recipients that are queued.
async fn other(store: &Store, count: usize) -> (Campaign, Vec<RecipientId>) {
    let new = campaign("bob");
    store.insert_campaign(&new).await.unwrap();
    import(store, new.id, &recipients(count)).await;
    let running = moved(store, new.id, CampaignChange::Start, at(2)).await;
    let fed = store.feed_campaign(new.id, 100, at(3)).await.unwrap();
    (running, fed.queued)
}

async fn messages_of_all_campaigns_of_an_account_are_listed(db: Database) {
    let store = db.store().await;
    let (first, ids) = queued(&store, 1).await;
    let (second, others) = other(&store, 1).await;
    for (campaign, id) in [(&first, ids[0]), (&second, others[0])] {
        let run = claimed(&store, campaign, id).await;
        record(&store, &[sent(id, run, "m")]).await;
    }
    let account = all_of(SendScope::Account(first.account.clone()));
    assert_eq!(listed(&store, &account).await.len(), 2);
    assert_eq!(listed(&store, &of_campaign(&second)).await, [exactly(others[0], 1, at(5))]);
    let nobody: AccountId = "nobody".parse().unwrap();
    assert_eq!(listed(&store, &all_of(SendScope::Account(nobody))).await, []);
    let none = all_of(SendScope::Campaign(CampaignId::generate()));
    assert_eq!(listed(&store, &none).await, []);
}

async fn messages_to_the_same_address_may_count_once(db: Database) {
    let store = db.store().await;
    // Both campaigns have the same addresses.
    let (first, ids) = queued(&store, 2).await;
    let (second, others) = other(&store, 2).await;
    for (campaign, id, second) in
        [(&first, ids[0], 10), (&first, ids[1], 11), (&second, others[0], 12)]
    {
        let run = claimed(&store, campaign, id).await;
        record(&store, &[began(sent(id, run, "m"), second)]).await;
    }
    let account = all_of(SendScope::Account(first.account.clone()));
    let once = SendFilter { once_per_address: true, ..account.clone() };
    let found = listed(&store, &once).await;
    let keys: Vec<(&str, Timestamp)> =
        found.iter().map(|send| (send.key.as_str(), send.latest)).collect();
    assert_eq!(keys, [("+493012340000", at(12)), ("+493012340001", at(11))]);
    assert_eq!(listed(&store, &account).await.len(), 3);
}
