//! Claims: what may be sent, and only once.

use stampede_model::RecipientId;
use stampede_model::campaign::{
    AccountId, CampaignChange, Pacing, RecipientState, SkipReason, SuppressionReason,
};
use stampede_store::{Account, Campaign, Claim, Claimed, Config, Store, Suppression};

use super::{assert_counts, campaign_now, claim, claimed, moved, queued, read, result, sent};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_claim_gives_the_recipient_and_counts_the_attempt,
    of_many_claims_of_one_recipient_one_sends,
    a_claimed_recipient_is_unknown_to_the_next_run,
    a_channel_that_promises_idempotence_claims_again,
    the_same_run_may_ask_again,
    nothing_is_claimed_with_another_version_or_of_a_campaign_that_does_not_run,
    nothing_is_claimed_with_another_version_of_the_account,
    an_address_that_is_suppressed_is_skipped,
    a_campaign_whose_end_has_come_sends_nothing,
    no_more_than_allowed_are_in_flight_for_an_account,
    in_flight_is_kept_by_many_connections,
    a_group_of_claims_is_answered_in_its_order,
);

async fn claim_one(store: &Store, claim: Claim) -> Claimed {
    store.claim_recipients(&[claim], at(5)).await.unwrap().remove(0)
}

async fn connect(url: &str) -> Store {
    Store::connect(&Config { url: url.to_owned(), ..Config::default() }).await.unwrap()
}

async fn a_claim_gives_the_recipient_and_counts_the_attempt(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let Claimed::Send(sending) = claim_one(&store, claim(&running, ids[0])).await else { panic!() };
    assert_eq!((sending.id, sending.attempts), (ids[0], 1));
    assert_eq!(sending.state, RecipientState::Sending);
    assert_eq!(sending.message.as_deref(), Some("Line one\nline two"));
    assert_eq!(read(&store, ids[0]).await, *sending);
    assert_eq!(campaign_now(&store, running.id).await.counts.sending, 1);
    assert_eq!(store.claim_recipients(&[], at(5)).await.unwrap(), []);
    assert_eq!(claim_one(&store, claim(&running, RecipientId::generate())).await, Claimed::Nothing);
}

async fn of_many_claims_of_one_recipient_one_sends(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 5).await;
    let claimers = (0..8).map(|_| {
        let (url, running, ids) = (db.url.clone(), running.clone(), ids.clone());
        tokio::spawn(async move {
            let store = connect(&url).await;
            let claims: Vec<Claim> = ids.iter().map(|id| claim(&running, *id)).collect();
            store.claim_recipients(&claims, at(5)).await.unwrap()
        })
    });
    let mut sends = 0;
    for claimer in claimers.collect::<Vec<_>>() {
        let answers = claimer.await.unwrap();
        sends += answers.iter().filter(|answer| matches!(answer, Claimed::Send(_))).count();
    }
    assert_eq!(sends, 5);
    assert_counts(&store).await;
}

async fn a_claimed_recipient_is_unknown_to_the_next_run(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let run = claimed(&store, &running, ids[0]).await;
    assert_eq!(claim_one(&store, claim(&running, ids[0])).await, Claimed::Unknown);
    let unknown = read(&store, ids[0]).await;
    assert_eq!((unknown.state, unknown.code.as_deref()), (RecipientState::Unknown, Some("lost")));
    assert_eq!(claim_one(&store, claim(&running, ids[0])).await, Claimed::Nothing);
    // The run that had it was only slow: its word still counts.
    assert_eq!(store.record_runs(&[sent(ids[0], run, "m1")], at(6)).await.unwrap(), [true]);
    let settled = read(&store, ids[0]).await;
    assert_eq!((settled.state, settled.code), (RecipientState::Sent, None));
    assert_counts(&store).await;
}

async fn a_channel_that_promises_idempotence_claims_again(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let former = claimed(&store, &running, ids[0]).await;
    let again = Claim { is_idempotent: true, most_in_flight: 1, ..claim(&running, ids[0]) };
    let Claimed::Send(second) = claim_one(&store, again).await else { panic!() };
    assert_eq!((second.state, second.attempts), (RecipientState::Sending, 2));
    assert_eq!(store.record_runs(&[sent(ids[0], former, "m")], at(6)).await.unwrap(), [false]);
    let other = Claim { campaign_seen: at(0), ..claim(&running, ids[0]) };
    let other = Claim { is_idempotent: true, ..other };
    assert_eq!(claim_one(&store, other).await, Claimed::Changed);
    moved(&store, running.id, CampaignChange::Pause, at(7)).await;
    let paused = Claim { is_idempotent: true, ..claim(&running, ids[0]) };
    assert_eq!(claim_one(&store, paused).await, Claimed::Unknown, "a pause is a pause");
    assert_counts(&store).await;
}

async fn the_same_run_may_ask_again(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let lost_answer = claim(&running, ids[0]);
    assert!(matches!(claim_one(&store, lost_answer).await, Claimed::Send(_)));
    let Claimed::Send(again) = claim_one(&store, lost_answer).await else { panic!() };
    assert_eq!(again.attempts, 1);
}

async fn nothing_is_claimed_with_another_version_or_of_a_campaign_that_does_not_run(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let old = Claim { campaign_seen: at(0), ..claim(&running, ids[0]) };
    assert_eq!(claim_one(&store, old).await, Claimed::Changed);
    let changed = store.update_campaign_as_seen(&running, None).await.unwrap().done().unwrap();
    assert_eq!(claim_one(&store, claim(&running, ids[0])).await, Claimed::Changed);
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Queued);
    let paused = moved(&store, running.id, CampaignChange::Pause, at(6)).await;
    for version in [&changed, &paused] {
        assert_eq!(claim_one(&store, claim(version, ids[0])).await, Claimed::Nothing);
    }
    let resumed = moved(&store, running.id, CampaignChange::Start, at(7)).await;
    let pending = claim_one(&store, claim(&resumed, ids[0])).await;
    assert_eq!(pending, Claimed::Nothing, "its job is older than the pause");
}

async fn nothing_is_claimed_with_another_version_of_the_account(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let account = store.account(&running.account).await.unwrap().unwrap();
    let seen = |id, version| Claim { account_seen: Some(version), ..claim(&running, id) };
    let first = seen(ids[0], account.updated_at);
    assert!(matches!(claim_one(&store, first).await, Claimed::Send(_)));
    let changed = Account { pacing: Pacing::default(), ..account.clone() };
    let changed = store.update_account_as_seen(&changed, None, None).await.unwrap().done().unwrap();
    assert_eq!(claim_one(&store, seen(ids[1], account.updated_at)).await, Claimed::Changed);
    let again = Claim { is_idempotent: true, ..seen(ids[0], account.updated_at) };
    assert_eq!(claim_one(&store, again).await, Claimed::Changed);
    assert_eq!(read(&store, ids[1]).await.state, RecipientState::Queued);
    assert!(matches!(claim_one(&store, seen(ids[1], changed.updated_at)).await, Claimed::Send(_)));
    assert_counts(&store).await;
}

fn suppression(account: Option<AccountId>, address: &str) -> Suppression {
    Suppression {
        owner: "ann".to_owned(),
        account,
        address: address.to_owned(),
        reason: SuppressionReason::Stop,
        since: at(0),
        by: "ann".to_owned(),
    }
}

async fn an_address_that_is_suppressed_is_skipped(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let mut addresses = Vec::new();
    for id in &ids {
        addresses.push(read(&store, *id).await.address);
    }
    let of = |owner: &str, suppression: Suppression| Suppression {
        owner: owner.to_owned(),
        ..suppression
    };
    let another = || Some("another".parse().unwrap());
    let suppressions = [
        suppression(Some(AccountId::console()), &addresses[0]),
        suppression(None, &addresses[1]),
        suppression(another(), &addresses[2]),
        of("bob", suppression(None, &addresses[2])),
        of(Suppression::EVERYBODY, suppression(another(), &addresses[2])),
        of(Suppression::EVERYBODY, suppression(Some(AccountId::console()), &addresses[3])),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    let claims: Vec<Claim> = ids.iter().map(|id| claim(&running, *id)).collect();
    let answers = store.claim_recipients(&claims, at(5)).await.unwrap();
    assert_eq!(answers[..2], [Claimed::OptedOut, Claimed::OptedOut]);
    assert!(matches!(answers[2], Claimed::Send(_)));
    assert_eq!(answers[3], Claimed::OptedOut, "who stops a shared account stops all who use it");
    let skipped = read(&store, ids[0]).await;
    assert_eq!(skipped.skipped, Some(SkipReason::OptedOut));
    assert_eq!((skipped.state, skipped.attempts), (RecipientState::Skipped, 0));
    assert_counts(&store).await;
}

async fn a_campaign_whose_end_has_come_sends_nothing(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    let ending = Campaign { end_at: Some(at(5)), ..running };
    let ending = store.update_campaign_as_seen(&ending, None).await.unwrap().done().unwrap();
    assert_eq!(claim_one(&store, claim(&ending, ids[0])).await, Claimed::Expired);
    assert_eq!(read(&store, ids[0]).await.skipped, Some(SkipReason::Expired));
}

async fn no_more_than_allowed_are_in_flight_for_an_account(db: Database) {
    let store = db.store().await;
    let (one, of_one) = queued(&store, 2).await;
    let (two, of_two) = queued(&store, 2).await;
    let limited = |campaign: &Campaign, id| Claim { most_in_flight: 2, ..claim(campaign, id) };
    let claims = [limited(&one, of_one[0]), limited(&two, of_two[0]), limited(&two, of_two[1])];
    let answers = store.claim_recipients(&claims, at(5)).await.unwrap();
    assert!(matches!(answers[..2], [Claimed::Send(_), Claimed::Send(_)]), "{answers:?}");
    assert_eq!(answers[2], Claimed::Busy, "two campaigns of one account");
    assert_eq!(read(&store, of_two[1]).await.state, RecipientState::Queued);
    // What is still in flight in a cancelled campaign counts.
    moved(&store, one.id, CampaignChange::Cancel, at(6)).await;
    assert_eq!(claim_one(&store, limited(&two, of_two[1])).await, Claimed::Busy);
    store.record_runs(&[sent(of_one[0], claims[0].run, "m")], at(6)).await.unwrap();
    assert!(matches!(claim_one(&store, limited(&two, of_two[1])).await, Claimed::Send(_)));
    let none = Claim { most_in_flight: 0, ..claim(&two, of_two[0]) };
    let released = result(of_two[0], claims[1].run, stampede_store::AttemptEffect::Released);
    store.record_runs(&[released], at(6)).await.unwrap();
    store.feed_campaign(two.id, 9, at(7)).await.unwrap();
    assert_eq!(claim_one(&store, none).await, Claimed::Busy);
}

async fn in_flight_is_kept_by_many_connections(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 40).await;
    let claimers = ids.chunks(5).map(|portion| {
        let (url, running, portion) = (db.url.clone(), running.clone(), portion.to_vec());
        tokio::spawn(async move {
            let store = connect(&url).await;
            let mut sends = 0;
            for id in portion {
                let claim = Claim { most_in_flight: 7, ..claim(&running, id) };
                sends += usize::from(matches!(claim_one(&store, claim).await, Claimed::Send(_)));
            }
            sends
        })
    });
    let mut sends = 0;
    for claimer in claimers.collect::<Vec<_>>() {
        sends += claimer.await.unwrap();
    }
    assert_eq!(sends, 7);
    assert_eq!(campaign_now(&store, running.id).await.counts.sending, 7);
}

async fn a_group_of_claims_is_answered_in_its_order(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let claims = [
        claim(&running, ids[2]),
        claim(&running, RecipientId::generate()),
        claim(&running, ids[0]),
        claim(&running, ids[2]),
    ];
    let answers = store.claim_recipients(&claims, at(5)).await.unwrap();
    let [Claimed::Send(first), Claimed::Nothing, Claimed::Send(third), Claimed::Unknown] =
        &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!((first.id, third.id), (ids[2], ids[0]));
    assert_counts(&store).await;
}
