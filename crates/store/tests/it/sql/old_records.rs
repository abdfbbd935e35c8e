//! Databases made by earlier versions are opened, with everything in them.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, Connection};
use stampede_model::campaign::{AccountId, Channel};
use stampede_model::{
    Event, KeyHash, RecipientId, Role, TemplateChoice, TicketId, TicketStatus, Timestamp,
};
use stampede_store::{
    Arrival, NewRecipient, Placed, RecipientFilter, Schema, SuppressionFilter, TicketFilter,
    TicketSecret,
};

use crate::backends::{Database, Sqlite};
use crate::suite::campaigns;
use crate::suite::samples::{assert_no_drift, at, order};

on_every_sql_backend!(
    records_older_than_keys_are_numbered_and_get_a_key,
    mail_addresses_of_campaigns_before_0021_match_in_every_spelling,
);

/// The settings of the server that wrote `before_the_seam.sql`.
const SECRET_BEFORE: &str = "the-secret-of-the-old-database-0123456789";
const ADMIN_KEY_BEFORE: &str = "stp_old_admin_key_0123456789abcdef0123";

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

/// Suppressions and recipients of the migration that brought campaigns.
const OLD_MAIL: &str = "
    INSERT INTO campaign_suppressions (owner, account_id, address, reason, since, added_by) VALUES
        ('ann', '*', 'Bob@example.org', 'stop', 2, 'ann'), ('ann', '*', 'bob@example.org', 'bounce', 1, 'ann'),
        ('ann', '*', 'EVE@example.org', 'stop', 4, 'ann'), ('ann', '*', 'Eve@example.org', 'bounce', 3, 'ann'),
        ('ann', '*', 'User-17', 'stop', 1, 'ann'), ('ann', '*', '@Channel', 'stop', 1, 'ann');
    INSERT INTO campaigns (id, owner, name, account_id, state, content, pacing, auto_pause, max_attempts, created_at,
        updated_at) VALUES ('01890a5d-ac96-774b-bcce-b302099a9001', 'ann', 'N', 'console', 'draft', '{}', '{}', '{}', 3, 1, 1);
    INSERT INTO campaign_recipients (id, campaign_id, position, dedupe_key, address, fields, state, updated_at) VALUES
        ('01890a5d-ac96-774b-bcce-b302099a9011', '01890a5d-ac96-774b-bcce-b302099a9001', 1, 'Zoe@example.org',
         'Zoe@example.org', '{}', 'pending', 1),
        ('01890a5d-ac96-774b-bcce-b302099a9012', '01890a5d-ac96-774b-bcce-b302099a9001', 2, 'Max@example.org',
         'Max@example.org', '{}', 'pending', 1),
        ('01890a5d-ac96-774b-bcce-b302099a9013', '01890a5d-ac96-774b-bcce-b302099a9001', 3, 'MAX@example.org',
         'MAX@example.org', '{}', 'pending', 1);";

async fn mail_addresses_of_campaigns_before_0021_match_in_every_spelling(db: Database) {
    let store = db.handle().await;
    install_default_drivers();
    let mut raw = AnyConnection::connect(&db.url).await.unwrap();
    let folder = match db.url.starts_with("sqlite") {
        true => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite"),
        false => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres"),
    };
    let migrations = sqlx::migrate::Migrator::new(Path::new(folder)).await.unwrap();
    migrations.run_direct(Some(19), &mut raw, false).await.unwrap();
    sqlx::raw_sql(OLD_MAIL).execute(&mut raw).await.unwrap();

    store.migrate().await.unwrap();
    let listed = store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|it| (it.address.as_str(), it.reason.as_str())).collect();
    let wanted = [
        ("@Channel", "stop"),
        ("User-17", "stop"),
        ("bob@example.org", "bounce"),
        ("eve@example.org", "bounce"),
    ];
    assert_eq!(listed, wanted, "of several, the oldest stays");
    let campaign = "01890a5d-ac96-774b-bcce-b302099a9001".parse().unwrap();
    let new = |address: &str| NewRecipient {
        id: RecipientId::generate(),
        address: address.to_owned(),
        fields: BTreeMap::new(),
        message: None,
        time_zone: None,
        ticket: None,
        line: None,
        skip: None,
    };
    let asked = [new("zoe@example.org")];
    let mut known = store.known_recipients(campaign, &asked).await.unwrap();
    assert_eq!(known.judge(&asked[0]), Arrival::Duplicate(None));
    let found = store.recipients(campaign, &RecipientFilter::default(), None, 9).await.unwrap();
    let addresses: Vec<_> = found.iter().map(|it| it.address.as_str()).collect();
    assert_eq!(addresses, ["Zoe@example.org", "Max@example.org", "MAX@example.org"]);
}

async fn records_older_than_keys_are_numbered_and_get_a_key(db: Database) {
    let store = db.handle().await;
    install_default_drivers();
    let mut raw = AnyConnection::connect(&db.url).await.unwrap();
    let folder = match db.url.starts_with("sqlite") {
        true => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite"),
        false => concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres"),
    };
    assert_eq!(store.schema().await.unwrap(), Schema::Empty);
    let first_only = sqlx::migrate::Migrator::new(Path::new(folder)).await.unwrap();
    first_only.run_direct(Some(1), &mut raw, false).await.unwrap();
    sqlx::raw_sql(OLD_RECORDS).execute(&mut raw).await.unwrap();
    let missing = first_only.iter().count() - 1;
    assert_eq!(store.schema().await.unwrap(), Schema::Older(missing));

    store.migrate().await.unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
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

#[tokio::test]
async fn a_database_of_the_version_before_the_backends_were_split_is_opened() {
    let db = Database::fresh::<Sqlite>().await;
    // Makes the folder and the file, without tables.
    let store = db.reader().await;
    let store = store.with_ticket_secret(&TicketSecret::new(SECRET_BEFORE));
    let mut raw = AnyConnection::connect(&db.url).await.unwrap();
    sqlx::raw_sql(include_str!("../../data/before_the_seam.sql")).execute(&mut raw).await.unwrap();

    store.migrate().await.unwrap();
    store.prepare_ticket_keys(at(0)).await.unwrap();
    let events: Vec<Event> = store.events(None, None, 9).await.unwrap();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event.details.name, "Opening Night");
    let Some(TemplateChoice::Own { id: template, revision: None }) = event.details.template else {
        panic!("{:?}", event.details.template)
    };
    let (revision, files) = store.template_files(template, None).await.unwrap().unwrap();
    assert_eq!((revision.number, files.iter().count()), (1, 1));
    assert_eq!(store.compiled_template_keys().await.unwrap().len(), 1);

    let tickets = store.tickets(&TicketFilter::default(), None, 9).await.unwrap();
    let status = [TicketStatus::Completed, TicketStatus::Completed, TicketStatus::Void];
    assert_eq!(tickets.iter().map(|ticket| ticket.status).collect::<Vec<_>>(), status);
    assert_eq!(tickets[0].holder.name, "Иван Петров");
    assert_eq!(store.key_ring(event).await.unwrap().keys().len(), 2);
    let token = store.token(&tickets[0]).await.unwrap();
    assert_eq!(store.verify(&token).await.unwrap().refusal, None);
    let admin =
        store.principal(&KeyHash::of(ADMIN_KEY_BEFORE), Timestamp::now()).await.unwrap().unwrap();
    assert_eq!(admin.role, Role::Admin);

    let next = order(event, 2);
    assert!(matches!(store.place_order(&next).await.unwrap(), Placed::New(_)));
    let placed = store.ticket(next.tickets[0].id).await.unwrap().unwrap();
    assert_eq!((placed.serial, placed.signing_key), (4, Some(2)));
    assert_no_drift(&store).await;

    let console = store.account(&AccountId::console()).await.unwrap().unwrap();
    assert_eq!((console.channel, console.owner), (Channel::Console, None));
    let (running, ids) = campaigns::queued(&store, 2).await;
    campaigns::claimed(&store, &running, ids[0]).await;
    campaigns::assert_counts(&store).await;
}
