//! Addresses that get nothing any more.

use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_store::{Store, Suppression, SuppressionFilter, Wishes};

use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_suppression_is_added_once_and_stays_as_it_is,
    suppressions_are_listed_in_portions_and_by_filter,
    an_address_is_suppressed_for_an_account_or_for_all_of_its_owner,
    start_lifts_what_stop_and_blocked_did_and_nothing_else,
    an_update_is_applied_once_in_whichever_order_it_comes,
    an_update_that_comes_twice_at_once_is_applied_once,
    two_that_add_the_same_addresses_do_not_block_each_other,
    a_mail_address_is_suppressed_in_every_spelling,
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
        suppression(Suppression::EVERYBODY, Some("bot"), "of all"),
        suppression(Suppression::EVERYBODY, Some("mail"), "of all elsewhere"),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    let addresses =
        ["here", "everywhere", "elsewhere", "of bob", "of all", "of all elsewhere", "nobody"];
    let addresses = addresses.map(str::to_owned);
    let bot: AccountId = "bot".parse().unwrap();
    let found = store.suppressed_addresses("ann", &bot, &addresses).await.unwrap();
    assert_eq!(found, ["everywhere", "here", "of all"]);
    let found = store.suppressed_addresses("bob", &bot, &addresses).await.unwrap();
    assert_eq!(found, ["of all", "of bob"]);
    assert_eq!(store.suppressed_addresses("ann", &bot, &[]).await.unwrap(), [""; 0]);
}

fn wishes(update: Option<i64>, stops: &[&str], starts: &[&str]) -> Wishes {
    Wishes {
        account: "bot".parse().unwrap(),
        update,
        stops: stops.iter().map(|address| suppression("ann", Some("bot"), address)).collect(),
        starts: starts.iter().map(|address| (*address).to_owned()).collect(),
    }
}

async fn addresses(store: &Store) -> Vec<String> {
    let all = store.suppressions(&SuppressionFilter::default(), None, 100).await.unwrap();
    all.into_iter().map(|one| one.address).collect()
}

async fn start_lifts_what_stop_and_blocked_did_and_nothing_else(db: Database) {
    let store = db.store().await;
    let with =
        |reason, address: &str| Suppression { reason, ..suppression("ann", Some("bot"), address) };
    let suppressions = [
        with(SuppressionReason::Stop, "1"),
        with(SuppressionReason::Blocked, "2"),
        with(SuppressionReason::Bounce, "3"),
        with(SuppressionReason::Complaint, "4"),
        with(SuppressionReason::Manual, "5"),
        suppression("ann", Some("mail"), "6"),
        suppression("ann", None, "7"),
        suppression(Suppression::EVERYBODY, Some("bot"), "8"),
        suppression("ann", Some("bot"), "9"),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    let starts = ["1", "2", "3", "4", "5", "6", "7", "8"];
    assert_eq!(store.apply_wishes(&wishes(None, &[], &starts), at(2)).await.unwrap(), 0);
    let mut left = addresses(&store).await;
    left.sort();
    assert_eq!(left, ["3", "4", "5", "6", "7", "9"]);
}

async fn an_update_is_applied_once_in_whichever_order_it_comes(db: Database) {
    let store = db.store().await;
    let apply =
        async |wishes: Wishes, now: Timestamp| store.apply_wishes(&wishes, now).await.unwrap();
    let hours = |hours: u64| at(hours * 3_600);
    assert_eq!(apply(wishes(Some(8), &["1"], &[]), hours(0)).await, 1);
    assert_eq!(apply(wishes(Some(9), &[], &["1"]), hours(1)).await, 0);
    assert_eq!(addresses(&store).await, [""; 0]);
    // Its answer was lost: it comes again, long after the person wanted messages again.
    assert_eq!(apply(wishes(Some(8), &["1"], &[]), hours(24)).await, 0);
    assert_eq!(addresses(&store).await, [""; 0]);
    assert_eq!(apply(wishes(Some(7), &["2"], &[]), hours(24)).await, 1, "an older one is new");
    let other = Wishes { account: "mail".parse().unwrap(), ..wishes(Some(8), &["3"], &[]) };
    assert_eq!(apply(other, hours(24)).await, 1, "each account has numbers of its own");
    assert_eq!(apply(wishes(Some(8), &["4"], &[]), hours(49)).await, 1, "numbers begin anew");
}

async fn an_update_that_comes_twice_at_once_is_applied_once(db: Database) {
    let (one, two) = (db.store().await, db.handle().await);
    let (first, second) = (wishes(Some(1), &["1"], &[]), wishes(Some(1), &["2"], &[]));
    let (first, second) =
        tokio::join!(one.apply_wishes(&first, at(1)), two.apply_wishes(&second, at(1)));
    assert_eq!(first.unwrap() + second.unwrap(), 1);
    assert_eq!(addresses(&one).await.len(), 1);
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

async fn a_mail_address_is_suppressed_in_every_spelling(db: Database) {
    let store = db.store().await;
    let bob = |address| suppression("ann", None, address);
    let list = [bob("Bob@example.org"), bob("BOB@example.org"), bob("User-17")];
    assert_eq!(store.add_suppressions(&list).await.unwrap(), 2);
    let bot: AccountId = "bot".parse().unwrap();
    let asked = ["boB@example.org", "user-17"].map(str::to_owned);
    let found = store.suppressed_addresses("ann", &bot, &asked).await.unwrap();
    assert_eq!(found, ["bob@example.org"], "other addresses are as they are");
    let filter = SuppressionFilter {
        address: Some("BOB@example.org".to_owned()),
        ..SuppressionFilter::default()
    };
    let listed = store.suppressions(&filter, None, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(store.remove_suppression("ann", None, "bOb@example.org").await.unwrap());
    assert_eq!(addresses(&store).await, ["User-17"]);
}
