//! The log of test messages.

use std::time::Duration;

use stampede_model::RecipientId;
use stampede_store::{Campaign, TESTS_KEPT, TestAttempt, TestEnd};

use super::{campaign, campaign_now};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_test_message_is_written_before_the_call_and_again_with_its_end,
    the_last_test_messages_of_each_campaign_are_kept,
);

/// A test message whose provider has not answered.
pub(crate) fn test(campaign: &Campaign, second: u64) -> TestAttempt {
    TestAttempt {
        id: RecipientId::generate(),
        campaign: campaign.id,
        address: "zoë@example.com".to_owned(),
        position: 3,
        at: at(second),
        end: None,
    }
}

async fn a_test_message_is_written_before_the_call_and_again_with_its_end(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    assert_eq!(store.campaign_tests(new.id).await.unwrap(), []);
    let begun = test(&new, 1);
    store.note_test(&begun).await.unwrap();
    assert_eq!(store.campaign_tests(new.id).await.unwrap(), std::slice::from_ref(&begun));
    let end = TestEnd {
        took: Duration::from_millis(12),
        outcome: "temporary".to_owned(),
        code: Some("451 4.7.1".to_owned()),
        answer: Some("try again\\later".to_owned()),
        provider_id: Some("m\"1".to_owned()),
    };
    let ended = TestAttempt { end: Some(end), ..begun };
    store.note_test(&ended).await.unwrap();
    let silent =
        TestEnd { code: None, answer: None, provider_id: None, ..ended.end.clone().unwrap() };
    let second = TestAttempt { end: Some(silent), ..test(&new, 2) };
    store.note_test(&second).await.unwrap();
    assert_eq!(store.campaign_tests(new.id).await.unwrap(), [second, ended]);
    let now = campaign_now(&store, new.id).await;
    assert_eq!(
        (now.counts.total(), now.updated_at),
        (0, new.updated_at),
        "the ledger knows nothing"
    );
    store.delete_campaign_as_seen(new.id, None).await.unwrap();
    store.forget_campaigns(9).await.unwrap();
    assert_eq!(store.campaign_tests(new.id).await.unwrap(), []);
}

async fn the_last_test_messages_of_each_campaign_are_kept(db: Database) {
    let store = db.store().await;
    let (one, other) = (campaign("ann"), campaign("ann"));
    for campaign in [&one, &other] {
        store.insert_campaign(campaign).await.unwrap();
    }
    store.note_test(&test(&other, 0)).await.unwrap();
    let tests: Vec<TestAttempt> =
        (0..u64::from(TESTS_KEPT) + 2).map(|second| test(&one, second)).collect();
    for test in &tests {
        store.note_test(test).await.unwrap();
    }
    let kept = store.campaign_tests(one.id).await.unwrap();
    assert!(kept.iter().eq(tests[2..].iter().rev()), "{kept:?}");
    assert_eq!(store.campaign_tests(other.id).await.unwrap().len(), 1);
}
