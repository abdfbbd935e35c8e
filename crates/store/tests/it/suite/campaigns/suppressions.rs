//! Addresses that get nothing any more.

use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_store::{Suppression, SuppressionFilter};

use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_suppression_is_added_once_and_stays_as_it_is,
    suppressions_are_listed_in_portions_and_by_filter,
    an_address_is_suppressed_for_an_account_or_for_all_of_its_owner,
    two_that_add_the_same_addresses_do_not_block_each_other,
);

fn suppression(owner: &str, account: Option<&str>, address: &str) -> Suppression {
    Suppression {
        owner: owner.to_owned(),
        account: account.map(|id| id.parse().unwrap()),
        address: address.to_owned(),
        reason: SuppressionReason::Stop,
        since: at(1),
        by: "telegram".to_owned(),
    }
}

async fn a_suppression_is_added_once_and_stays_as_it_is(db: Database) {
    let store = db.store().await;
    let first = suppression("ann", Some("bot"), "zoë@example.com");
    let twice = [first.clone(), first.clone()];
    assert_eq!(store.add_suppressions(&twice).await.unwrap(), 1);
    let later = Suppression { reason: SuppressionReason::Manual, since: at(9), ..first.clone() };
    assert_eq!(store.add_suppressions(&[later]).await.unwrap(), 0);
    assert_eq!(store.add_suppressions(&[]).await.unwrap(), 0);
    let all = async || store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
    assert_eq!(all().await, std::slice::from_ref(&first));
    let (bot, other): (AccountId, AccountId) = ("bot".parse().unwrap(), "mail".parse().unwrap());
    for (owner, account) in [("bob", Some(&bot)), ("ann", None), ("ann", Some(&other))] {
        assert!(!store.remove_suppression(owner, account, &first.address).await.unwrap());
    }
    assert!(store.remove_suppression("ann", Some(&bot), &first.address).await.unwrap());
    assert!(!store.remove_suppression("ann", Some(&bot), &first.address).await.unwrap());
    assert_eq!(all().await, []);
}

async fn suppressions_are_listed_in_portions_and_by_filter(db: Database) {
    let store = db.store().await;
    let manual = Suppression {
        reason: SuppressionReason::Manual,
        ..suppression("bob", Some("bot"), "+491")
    };
    let sorted = [
        suppression("ann", None, "+492"),
        suppression("ann", Some("-bot"), "+491"),
        suppression("ann", Some("bot"), "+491"),
        suppression("ann", Some("bot"), "+493"),
        manual,
    ];
    let mut added = sorted.clone();
    added.reverse();
    assert_eq!(store.add_suppressions(&added).await.unwrap(), 5);
    let list = async |filter: SuppressionFilter, after: Option<&Suppression>, limit| {
        store.suppressions(&filter, after, limit).await.unwrap()
    };
    let any = SuppressionFilter::default;
    assert_eq!(list(any(), None, 2).await, sorted[..2]);
    assert_eq!(list(any(), Some(&sorted[1]), 2).await, sorted[2..4]);
    assert_eq!(list(any(), Some(&sorted[0]), 9).await, sorted[1..]);
    let of_bob = SuppressionFilter { owner: Some("bob".to_owned()), ..any() };
    assert_eq!(list(of_bob, None, 9).await, sorted[4..]);
    let of_bot = || SuppressionFilter { account: Some("bot".parse().unwrap()), ..any() };
    assert_eq!(list(of_bot(), None, 9).await, sorted[2..]);
    assert_eq!(list(of_bot(), Some(&sorted[2]), 9).await, sorted[3..]);
    let address = SuppressionFilter { address: Some("+492".to_owned()), ..any() };
    assert_eq!(list(address, None, 9).await, sorted[..1]);
    let manual = SuppressionFilter { reason: Some(SuppressionReason::Manual), ..any() };
    assert_eq!(list(manual, None, 9).await, sorted[4..]);
}

async fn an_address_is_suppressed_for_an_account_or_for_all_of_its_owner(db: Database) {
    let store = db.store().await;
    let suppressions = [
        suppression("ann", None, "everywhere"),
        suppression("ann", Some("bot"), "everywhere"),
        suppression("ann", Some("bot"), "here"),
        suppression("ann", Some("mail"), "elsewhere"),
        suppression("bob", None, "of bob"),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    let addresses = ["here", "everywhere", "elsewhere", "of bob", "nobody"].map(str::to_owned);
    let bot: AccountId = "bot".parse().unwrap();
    let found = store.suppressed_addresses("ann", &bot, &addresses).await.unwrap();
    assert_eq!(found, ["everywhere", "here"]);
    assert_eq!(store.suppressed_addresses("ann", &bot, &[]).await.unwrap(), [""; 0]);
}

async fn two_that_add_the_same_addresses_do_not_block_each_other(db: Database) {
    let (one, two) = (db.store().await, db.handle().await);
    let list: Vec<Suppression> =
        (0..300).map(|n| suppression("ann", None, &format!("+49{n}"))).collect();
    let mut reversed = list.clone();
    reversed.reverse();
    let (first, second) =
        tokio::join!(one.add_suppressions(&list), two.add_suppressions(&reversed));
    assert_eq!(first.unwrap() + second.unwrap(), 300);
}
