//! The secret behind private keys: the wrong one, a lost one, and records from before there was one.

use std::path::Path;

use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, Connection};
use stampede_model::{Refusal, TicketId};
use stampede_store::{Config, Error, Store, TicketSecret};

use crate::database::{Database, secret};
use crate::samples::{at, event, order, ordered};

on_every_backend!(
    the_secret_of_the_first_key_is_the_database_s_and_another_is_refused_by_name,
    of_two_secrets_at_once_one_wins,
    without_a_secret_nothing_is_signed_but_everything_is_verified,
    a_lost_secret_is_replaced_and_paper_stays_valid,
    records_older_than_keys_are_numbered_and_get_a_key,
);

async fn handle(db: &Database) -> Store {
    Store::connect(&Config { url: db.url.clone(), ..Config::default() }).await.unwrap()
}

async fn the_secret_of_the_first_key_is_the_database_s_and_another_is_refused_by_name(
    db: Database,
) {
    let store = db.store().await;
    assert!(!store.has_ticket_secret().await.unwrap());
    store.check_ticket_secret().await.unwrap();
    // Two servers that start at once, and one that starts again.
    let (one, two) =
        tokio::join!(store.prepare_ticket_keys(at(0)), store.prepare_ticket_keys(at(0)));
    one.unwrap();
    two.unwrap();
    assert!(!store.has_ticket_secret().await.unwrap(), "without a key there is nothing to lose");
    let (_, order) = ordered(&store, 1).await;
    store.prepare_ticket_keys(at(1)).await.unwrap();
    assert!(store.has_ticket_secret().await.unwrap());

    let wrong = handle(&db).await.with_ticket_secret(&TicketSecret::new("another"));
    let error = wrong.prepare_ticket_keys(at(2)).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)) && error.to_string().contains("TICKET_KEY_SECRET"));
    let error = wrong.insert_event(&event("bob")).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)) && error.to_string().contains("TICKET_KEY_SECRET"));

    let ticket = store.ticket(order.tickets[0].id).await.unwrap().unwrap();
    let error = wrong.token(&ticket).await.unwrap_err();
    assert!(error.to_string().contains("TICKET_KEY_SECRET"), "{error}");
    assert!(!error.is_outage());
}

async fn of_two_secrets_at_once_one_wins(db: Database) {
    let one = db.store().await;
    let two = handle(&db).await.with_ticket_secret(&TicketSecret::new("another"));
    let (ann, bob) = (event("ann"), event("bob"));
    let results = tokio::join!(one.insert_event(&ann), two.insert_event(&bob));
    assert!(results.0.is_ok() != results.1.is_ok(), "{results:?}");
    let prepared = tokio::join!(one.prepare_ticket_keys(at(1)), two.prepare_ticket_keys(at(1)));
    assert_eq!(prepared.0.is_ok(), results.0.is_ok());
    assert_eq!(prepared.1.is_ok(), results.1.is_ok());
    assert_eq!(one.events(None, None, 9).await.unwrap().len(), 1, "all or nothing");
}

async fn without_a_secret_nothing_is_signed_but_everything_is_verified(db: Database) {
    let store = db.store().await;
    let (event_, order_) = ordered(&store, 1).await;
    let ticket = store.ticket(order_.tickets[0].id).await.unwrap().unwrap();
    let token = store.token(&ticket).await.unwrap();
    let reader = handle(&db).await;
    assert_eq!(reader.verify(&token).await.unwrap().refusal, None);
    for error in [
        reader.token(&ticket).await.unwrap_err(),
        reader.insert_event(&event("ann")).await.unwrap_err(),
        reader.place_order(&order(&event_, 1)).await.unwrap_err(),
        reader.rotate_ticket_key(event_.id, at(1)).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("TICKET_KEY_SECRET"), "{error}");
    }
}

async fn a_lost_secret_is_replaced_and_paper_stays_valid(db: Database) {
    let store = db.store().await;
    store.prepare_ticket_keys(at(0)).await.unwrap();
    let (event, placed) = ordered(&store, 2).await;
    let id = placed.tickets[0].id;
    let paper = store.token(&store.ticket(id).await.unwrap().unwrap()).await.unwrap();

    let new = handle(&db).await.with_ticket_secret(&TicketSecret::new("found another"));
    assert_eq!(new.renew_ticket_secret(at(5)).await.unwrap(), 1);
    new.prepare_ticket_keys(at(6)).await.unwrap();
    assert!(store.prepare_ticket_keys(at(6)).await.is_err(), "the former one is worthless");
    let printed = new.token(&new.ticket(id).await.unwrap().unwrap()).await.unwrap();
    assert_ne!(printed, paper);
    for token in [&printed, &paper] {
        assert_eq!(new.verify(token).await.unwrap().refusal, None);
    }
    // Known to others rather than lost: then the former key is revoked as well.
    new.revoke_ticket_key(event.id, 1, at(7)).await.unwrap();
    assert_eq!(new.verify(&paper).await.unwrap().refusal, Some(Refusal::RevokedKey));
    assert_eq!(new.verify(&printed).await.unwrap().refusal, None);
    assert!(new.place_order(&order(&event, 1)).await.is_ok());
}

/// Two events with tickets, as the first migration knew them.
const OLD_RECORDS: &str = "
    INSERT INTO events (id, owner, name, location, time_zone, currency, primary_color,
        secondary_color, created_at, updated_at) VALUES
        ('01890a5d-ac96-774b-bcce-b302099a8001', 'ann', 'A', '', 'UTC', 'USD', '#000000', '#000000', 1, 1),
        ('01890a5d-ac96-774b-bcce-b302099a8002', 'ann', 'B', '', 'UTC', 'USD', '#000000', '#000000', 1, 1);
    INSERT INTO batches (id, event_id, owner, created_at, updated_at) VALUES
        ('01890a5d-ac96-774b-bcce-b302099a8003', '01890a5d-ac96-774b-bcce-b302099a8001', 'ann', 1, 1),
        ('01890a5d-ac96-774b-bcce-b302099a8004', '01890a5d-ac96-774b-bcce-b302099a8002', 'ann', 1, 1);
    INSERT INTO tickets (id, event_id, batch_id, owner, position, name, status, created_at, updated_at) VALUES
        ('01890a5d-ac96-774b-bcce-b302099a8007', '01890a5d-ac96-774b-bcce-b302099a8001',
         '01890a5d-ac96-774b-bcce-b302099a8003', 'ann', 2, 'Bob', 'completed', 1, 1),
        ('01890a5d-ac96-774b-bcce-b302099a8006', '01890a5d-ac96-774b-bcce-b302099a8001',
         '01890a5d-ac96-774b-bcce-b302099a8003', 'ann', 1, 'Ann', 'pending', 1, 1),
        ('01890a5d-ac96-774b-bcce-b302099a8008', '01890a5d-ac96-774b-bcce-b302099a8002',
         '01890a5d-ac96-774b-bcce-b302099a8004', 'ann', 1, 'Cid', 'void', 1, 1);";

async fn records_older_than_keys_are_numbered_and_get_a_key(db: Database) {
    let store = handle(&db).await.with_ticket_secret(&secret());
    install_default_drivers();
    let mut raw = AnyConnection::connect(&db.url).await.unwrap();
    let folder = match db.url.starts_with("sqlite") {
        true => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite"),
        false => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres"),
    };
    let first_only = sqlx::migrate::Migrator::new(Path::new(folder)).await.unwrap();
    first_only.run_direct(Some(1), &mut raw, false).await.unwrap();
    sqlx::raw_sql(OLD_RECORDS).execute(&mut raw).await.unwrap();

    store.migrate().await.unwrap();
    store.prepare_ticket_keys(at(0)).await.unwrap();
    for (id, serial) in [("8006", 1), ("8007", 2), ("8008", 1)] {
        let id: TicketId = format!("01890a5d-ac96-774b-bcce-b302099a{id}").parse().unwrap();
        let ticket = store.ticket(id).await.unwrap().unwrap();
        assert_eq!((ticket.serial, ticket.generation, ticket.signing_key), (serial, 1, Some(1)));
        let token = store.token(&ticket).await.unwrap();
        assert!(store.verify(&token).await.unwrap().is_genuine());
    }
    let event = "01890a5d-ac96-774b-bcce-b302099a8001".parse().unwrap();
    let event = store.event(event).await.unwrap().unwrap();
    let next = order(&event, 1);
    store.place_order(&next).await.unwrap();
    assert_eq!(store.ticket(next.tickets[0].id).await.unwrap().unwrap().serial, 3);
    let before = store.key_ring(&event).await.unwrap();
    store.prepare_ticket_keys(at(1)).await.unwrap();
    assert_eq!(store.key_ring(&event).await.unwrap(), before, "a second start changes nothing");
}
