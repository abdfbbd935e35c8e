//! Requests that are carried out once.

use std::time::Duration;

use stampede_model::Timestamp;
use stampede_store::{RequestClaim, RequestClaimed, Store, TicketSecret};
use tokio::task::JoinSet;

use crate::backends::Database;

on_every_backend!(
    one_of_many_claims_is_carried_out,
    a_kept_answer_is_given_again_and_is_encrypted,
    a_released_key_can_be_used_again,
    the_claim_of_a_holder_that_died_is_taken_over_after_its_time,
    expired_records_are_forgotten_in_portions,
);

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn now() -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000).unwrap()
}

fn claim<'a>(key: &'a str, holder: &'a str) -> RequestClaim<'a> {
    let (held_until, expires_at) = (now() + MINUTE, now() + DAY);
    RequestClaim { owner: "ann", key, target: "create", holder, held_until, expires_at }
}

async fn one_of_many_claims_is_carried_out(database: Database) {
    let one = database.store().await;
    let other = database.handle().await;
    let mut claiming = JoinSet::new();
    for number in 0..20 {
        let store: Store = if number % 2 == 0 { one.clone() } else { other.clone() };
        claiming.spawn(async move {
            store.claim_request(&claim("k", &format!("holder {number}")), now()).await.unwrap()
        });
    }
    let claimed = claiming.join_all().await;
    assert_eq!(claimed.iter().filter(|claimed| **claimed == RequestClaimed::Yes).count(), 1);
    assert_eq!(claimed.iter().filter(|claimed| **claimed == RequestClaimed::InFlight).count(), 19);
    let bob = RequestClaim { owner: "bob", ..claim("k", "b") };
    assert_eq!(
        one.claim_request(&bob, now()).await.unwrap(),
        RequestClaimed::Yes,
        "keys of others"
    );
    let another = RequestClaim { target: "delete", ..claim("k", "c") };
    assert_eq!(one.claim_request(&another, now()).await.unwrap(), RequestClaimed::OtherTarget);
}

async fn a_kept_answer_is_given_again_and_is_encrypted(database: Database) {
    let store = database.store().await;
    let first = claim("k", "first");
    store.claim_request(&first, now()).await.unwrap();
    assert!(store.keep_answer(&first, "hash", Some(b"the secret")).await.unwrap());
    let done =
        RequestClaimed::Done { body_hash: "hash".into(), answer: Some(b"the secret".to_vec()) };
    let late = now() + DAY - MINUTE;
    assert_eq!(store.claim_request(&claim("k", "second"), late).await.unwrap(), done);
    assert!(!store.keep_answer(&first, "other", None).await.unwrap(), "it is final");
    assert!(!store.release(&first).await.unwrap(), "it is final");

    let RequestClaimed::Done { answer: Some(sealed), .. } =
        store.claim(&claim("k", "third"), late).await.unwrap()
    else {
        panic!("not done")
    };
    assert!(!sealed.windows(6).any(|part| part == b"secret"), "the database does not tell it");
    let stranger = database.reader().await.with_ticket_secret(&TicketSecret::new("another one"));
    let unread = RequestClaimed::Done { body_hash: "hash".into(), answer: None };
    assert_eq!(stranger.claim_request(&claim("k", "fourth"), late).await.unwrap(), unread);

    let after = now() + DAY;
    let renewed = RequestClaim { expires_at: after + DAY, ..claim("k", "fifth") };
    assert_eq!(
        store.claim_request(&renewed, after).await.unwrap(),
        RequestClaimed::Yes,
        "a day is over"
    );

    let large = claim("large", "x");
    store.claim_request(&large, now()).await.unwrap();
    assert!(store.keep_answer(&large, "hash", None).await.unwrap());
    let again = store.claim_request(&claim("large", "y"), now()).await.unwrap();
    assert_eq!(again, RequestClaimed::Done { body_hash: "hash".into(), answer: None });
}

async fn a_released_key_can_be_used_again(database: Database) {
    let store = database.store().await;
    let first = claim("k", "first");
    store.claim_request(&first, now()).await.unwrap();
    assert!(!store.release(&claim("k", "somebody else")).await.unwrap());
    assert!(store.release(&first).await.unwrap());
    let another = RequestClaim { target: "delete", ..claim("k", "second") };
    assert_eq!(store.claim_request(&another, now()).await.unwrap(), RequestClaimed::Yes);
}

async fn the_claim_of_a_holder_that_died_is_taken_over_after_its_time(database: Database) {
    let store = database.store().await;
    let dead = claim("k", "dead");
    store.claim_request(&dead, now()).await.unwrap();
    let early = now() + MINUTE - Duration::from_millis(1);
    assert_eq!(
        store.claim_request(&claim("k", "heir"), early).await.unwrap(),
        RequestClaimed::InFlight
    );
    let heir = RequestClaim { held_until: now() + 2 * MINUTE, ..claim("k", "heir") };
    assert_eq!(store.claim_request(&heir, now() + MINUTE).await.unwrap(), RequestClaimed::Yes);
    assert!(!store.keep_answer(&dead, "hash", Some(b"late")).await.unwrap(), "it was not dead");
    assert!(!store.release(&dead).await.unwrap());
    assert!(store.keep_answer(&heir, "hash", Some(b"right")).await.unwrap());
}

async fn expired_records_are_forgotten_in_portions(database: Database) {
    let store = database.store().await;
    for number in 0..25 {
        let key = format!("k{number}");
        let one = RequestClaim { expires_at: now() + number * MINUTE, ..claim(&key, "x") };
        store.claim_request(&one, now()).await.unwrap();
    }
    let later = now() + 19 * MINUTE;
    let forgotten = [
        store.forget_requests(15, later).await.unwrap(),
        store.forget_requests(15, later).await.unwrap(),
        store.forget_requests(15, later).await.unwrap(),
    ];
    assert_eq!(forgotten, [15, 5, 0]);
    let kept = store.claim_request(&claim("k20", "y"), now()).await.unwrap();
    assert_eq!(kept, RequestClaimed::InFlight);
}
