//! Every operation commits with the durability that `durability.rs` promises.
//!
//! Triggers on all tables record the setting that is in force inside each transaction: `synchronous` on
//! SQLite, `synchronous_commit` on PostgreSQL. The store has one connection, so the setting of one
//! operation would show in the next one if it were not set again.

use std::time::Duration;

use sqlx::{AnyPool, AssertSqlSafe, Row};
use stampede_model::campaign::{CampaignChange, SuppressionReason};
use stampede_model::{
    EventId, KeyHash, KeyId, Principal, RecipientId, Role, Template, TemplateFiles, TemplateId,
    TicketId,
};
use stampede_store::{Config, Durability, Durability::Relaxed, Durability::Synced};
use stampede_store::{
    NewKey, NewRevision, Receipt, ReceiptStatus, Settlement, Store, Suppression, TicketEdit, Wishes,
};
use stampede_testkit::Postgres;

use crate::backends::{Database, secret};
use crate::suite::campaigns;
use crate::suite::samples::{at, completion_of_current, event, failure, order, ordered};

on_every_sql_backend!(every_operation_commits_with_the_durability_it_promises);

const TABLES: [&str; 16] = [
    "outbox",
    "events",
    "batches",
    "tickets",
    "keys",
    "ticket_keys",
    "ticket_secret",
    "templates",
    "template_revisions",
    "compiled_templates",
    "campaigns",
    "campaign_accounts",
    "campaign_imports",
    "campaign_recipients",
    "campaign_suppressions",
    "campaign_tests",
];

/// Records the durability of transactions.
struct Probe {
    pool: AnyPool,
    is_sqlite: bool,
}

impl Probe {
    async fn install(db: &Database) -> Self {
        sqlx::any::install_default_drivers();
        let pool = AnyPool::connect(&db.url).await.unwrap();
        let probe = Self { pool, is_sqlite: db.url.starts_with("sqlite") };
        probe.run("CREATE TABLE committed (durability TEXT)".into()).await;
        if !probe.is_sqlite {
            probe
                .run(
                    "CREATE FUNCTION record_durability() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                     INSERT INTO committed VALUES (current_setting('synchronous_commit')); \
                     RETURN NULL; END $$"
                        .into(),
                )
                .await;
        }
        for table in TABLES {
            for change in ["INSERT", "UPDATE", "DELETE"] {
                let body = match probe.is_sqlite {
                    true => {
                        "BEGIN INSERT INTO committed SELECT CAST(synchronous AS TEXT) \
                             FROM pragma_synchronous; END"
                    }
                    false => "FOR EACH STATEMENT EXECUTE FUNCTION record_durability()",
                };
                probe
                    .run(format!(
                        "CREATE TRIGGER on_{table}_{change} AFTER {change} ON {table} {body}"
                    ))
                    .await;
            }
        }
        probe
    }

    async fn run(&self, sql: String) {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&self.pool).await.unwrap();
    }

    /// Runs an operation and asserts with which durability its transactions were committed.
    async fn assert<T, E: std::fmt::Debug>(
        &self,
        name: &str,
        durability: Durability,
        operation: impl Future<Output = Result<T, E>>,
    ) -> T {
        self.run("DELETE FROM committed".into()).await;
        let result = operation.await.unwrap();
        let query = sqlx::query("SELECT DISTINCT durability FROM committed");
        let rows = query.fetch_all(&self.pool).await.unwrap();
        let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let expected = match (durability, self.is_sqlite) {
            (Synced, true) => "2",
            (Relaxed, true) => "1",
            (Synced, false) => "on",
            (Relaxed, false) => "off",
        };
        assert_eq!(found, [expected], "{name} is {durability:?}");
        result
    }
}

async fn every_operation_commits_with_the_durability_it_promises(db: Database) {
    db.store().await;
    let config = Config { url: db.url.clone(), max_connections: 1, ..Config::default() };
    let store = Store::connect(&config).await.unwrap().with_ticket_secret(&secret());
    let probe = Probe::install(&db).await;
    let gone = event("ann");
    probe.assert("insert_event", Synced, store.insert_event(&gone)).await;
    probe.assert("update_event", Synced, store.update_event(&gone, at(0))).await;
    probe.assert("delete_event", Synced, store.delete_event(gone.id)).await;
    check_tickets(&store, &probe).await;
    check_keys(&store, &probe).await;
    check_templates(&store, &probe).await;
    check_campaigns(&store, &probe).await;
    check_runs(&store, &probe).await;
}

async fn check_tickets(store: &Store, probe: &Probe) {
    let (event, placed) = ordered(store, 3).await;
    let ids: Vec<TicketId> = placed.tickets.iter().map(|ticket| ticket.id).collect();
    let completion = [completion_of_current(store, ids[0]).await];
    probe.assert("complete_tickets", Relaxed, store.complete_tickets(&completion)).await;
    // Right after a relaxed commit on the same connection.
    let another = order(&event, 2);
    probe.assert("place_order", Synced, store.place_order(&another)).await;
    probe.assert("mark_stale", Relaxed, store.mark_stale(ids[0], at(9))).await;
    let failure = [failure(ids[1])];
    probe.assert("fail_tickets", Synced, store.fail_tickets(&failure)).await;
    let seen = store.ticket(ids[0]).await.unwrap().unwrap();
    let edit = TicketEdit { holder: seen.holder, price: None };
    probe
        .assert("edit_ticket", Synced, store.edit_ticket(ids[0], &edit, seen.updated_at, at(9)))
        .await;
    probe.assert("reissue_ticket", Synced, store.reissue_ticket(ids[0], at(9))).await;
    probe.assert("void_ticket", Synced, store.void_ticket(ids[0], at(9))).await;
    probe.assert("delete_ticket", Synced, store.delete_ticket(ids[2], at(9))).await;
    let rows = store.outbox(1_000).await.unwrap();
    probe.assert("settle_outbox", Relaxed, store.settle_outbox(&rows)).await;
    let deletion = store.delete_event_with_tickets(event.id);
    probe.assert("delete_event_with_tickets", Synced, deletion).await;
}

async fn check_keys(store: &Store, probe: &Probe) {
    let ann = Principal::new("ann", Role::Organiser);
    let hash = KeyHash::of("secret");
    let key = NewKey {
        id: KeyId::generate(),
        hash: hash.clone(),
        principal: ann,
        name: String::new(),
        expires_at: None,
    };
    let insertion = store.insert_key(&key, at(0));
    probe.assert("insert_key", Synced, insertion).await;
    probe.assert("revoke_key", Synced, store.revoke_key(&hash, at(1))).await;
    for hash in [Some(&hash), None] {
        probe.assert("preset_admin_key", Synced, store.preset_admin_key(hash, at(1))).await;
    }
    let event: EventId = ordered(store, 1).await.0.id;
    probe.assert("rotate_ticket_key", Synced, store.rotate_ticket_key(event, at(2))).await;
    probe.assert("revoke_ticket_key", Synced, store.revoke_ticket_key(event, 1, at(3))).await;
    probe.assert("renew_ticket_secret", Synced, store.renew_ticket_secret(at(4))).await;
    probe.run("UPDATE tickets SET signing_key = NULL".into()).await;
    probe.assert("prepare_ticket_keys", Synced, store.prepare_ticket_keys(at(5))).await;
}

async fn check_templates(store: &Store, probe: &Probe) {
    let template = Template {
        id: TemplateId::generate(),
        owner: "ann".into(),
        name: "A".into(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    let revision = |text: &str| NewRevision {
        files: TemplateFiles::new([("template.typ".to_owned(), text.into())].into()).unwrap(),
        author: "ann".into(),
        note: String::new(),
    };
    let (one, two) = (revision("one"), revision("two"));
    probe.assert("insert_template", Synced, store.insert_template(&template, &one)).await;
    let caching = store.keep_compiled_template("k", b"blob", at(0));
    probe.assert("keep_compiled_template", Relaxed, caching).await;
    let revision = store.revise_template(template.id, "B", &two, at(0), at(1));
    probe.assert("revise_template", Synced, revision).await;
    probe.assert("delete_template", Synced, store.delete_template(template.id)).await;
}

async fn check_campaigns(store: &Store, probe: &Probe) {
    let new = campaigns::campaign("ann");
    probe.assert("insert_campaign", Synced, store.insert_campaign(&new)).await;
    let update = store.update_campaign_as_seen(&new, None);
    probe.assert("update_campaign", Synced, update).await;
    let import = RecipientId::generate();
    let begin = store.begin_import(new.id, import, at(1), at(0));
    probe.assert("begin_import", Relaxed, begin).await;
    let piece = campaigns::recipients(3);
    let piece = store.import_recipients(new.id, import, &piece, at(1));
    probe.assert("import_recipients", Relaxed, piece).await;
    let note = store.note_guests(new.id, import, EventId::generate(), None);
    probe.assert("note_guests", Relaxed, note).await;
    let names = ["name".to_owned()].into();
    probe.assert("end_import", Synced, store.end_import(new.id, import, &names)).await;
    let test = campaigns::test_log::test(&new, 1);
    probe.assert("note_test", Synced, store.note_test(&test)).await;
    let start = campaigns::change(new.id, CampaignChange::Start, at(2));
    probe.assert("move_campaign", Synced, store.move_campaign(&start)).await;
    probe.assert("feed_campaign", Relaxed, store.feed_campaign(new.id, 9, at(3))).await;
    let block = store.block_account(&new.account, "a wrong token", None, at(4));
    probe.assert("block_account", Synced, block).await;
    let account = store.account(&new.account).await.unwrap().unwrap();
    let mended = store.update_account_as_seen(&account, Some(b"{}"), None);
    probe.assert("update_account", Synced, mended).await;
    let cancel = campaigns::change(new.id, CampaignChange::Cancel, at(5));
    store.move_campaign(&cancel).await.unwrap();
    for _ in 0..2 {
        let skip = store.skip_cancelled(new.id, 1, at(6));
        assert_eq!(probe.assert("skip_cancelled", Relaxed, skip).await, 1);
    }
    // The second one was too early to be told.
    assert!(probe.assert("tell_campaigns", Relaxed, store.tell_campaigns(9, at(9))).await > 0);
    let delete = store.delete_campaign_as_seen(new.id, None);
    probe.assert("delete_campaign", Synced, delete).await;
    probe.assert("forget_campaigns", Relaxed, store.forget_campaigns(9)).await;
}

async fn check_runs(store: &Store, probe: &Probe) {
    let (running, ids) = campaigns::queued(store, 3).await;
    let claims = [ids[0], ids[1]].map(|id| campaigns::claim(&running, id));
    // Right after a relaxed commit on the same connection.
    let claiming = store.claim_recipients(&claims, at(4));
    probe.assert("claim_recipients", Synced, claiming).await;
    let results = [campaigns::sent(ids[0], claims[0].run, "m1")];
    let recording = store.record_runs(&results, at(5));
    probe.assert("record_runs", Synced, recording).await;
    probe.assert("put_back_recipients", Synced, store.put_back_recipients(&ids, at(6))).await;
    let receipt = Receipt {
        account: running.account.clone(),
        recipient: Some(ids[0]),
        provider_id: None,
        status: ReceiptStatus::Read,
        code: None,
        detail: None,
        is_bounce: false,
        suppress: None,
        at: at(7),
    };
    probe.assert("apply_receipts", Synced, store.apply_receipts(&[receipt], at(7))).await;
    let settling = store.settle_recipients(running.id, Settlement::Resend, None, at(8));
    assert_eq!(probe.assert("settle_recipients", Synced, settling).await, 1);
    let stop = Suppression {
        owner: "ann".to_owned(),
        account: None,
        address: "+491".to_owned(),
        reason: SuppressionReason::Stop,
        since: at(8),
        by: "ann".to_owned(),
    };
    let adding = store.add_suppressions(std::slice::from_ref(&stop));
    probe.assert("add_suppressions", Synced, adding).await;
    let removal = store.remove_suppression("ann", None, "+491");
    assert!(probe.assert("remove_suppression", Synced, removal).await);
    let wishes =
        Wishes { account: running.account, update: Some(1), stops: vec![stop], starts: Vec::new() };
    probe.assert("apply_wishes", Synced, store.apply_wishes(&wishes, at(8))).await;
}

/// Where PostgreSQL's log ends, in memory and on the disk, as numbers.
async fn log_ends(pool: &AnyPool) -> (i64, i64) {
    let query = sqlx::query(
        "SELECT (pg_current_wal_insert_lsn() - '0/0')::BIGINT, \
         (pg_current_wal_flush_lsn() - '0/0')::BIGINT",
    );
    let row = query.fetch_one(pool).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn postgres_has_an_order_on_the_disk_when_the_call_returns_and_a_completion_later() {
    let server = Postgres::start().await;
    let config = Config { url: server.url(), ..Config::default() };
    let store = Store::connect(&config).await.unwrap().with_ticket_secret(&secret());
    store.migrate().await.unwrap();
    let pool = AnyPool::connect(&server.url()).await.unwrap();
    // The server writes its log in the background too; not while this test runs.
    for sql in ["ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"] {
        sqlx::query(sql).execute(&pool).await.unwrap();
    }
    let (event, _) = ordered(&store, 1).await;
    let mut waiting = 0;
    for _ in 0..20 {
        let order = order(&event, 1);
        let (before, _) = log_ends(&pool).await;
        store.place_order(&order).await.unwrap();
        let (_, on_disk) = log_ends(&pool).await;
        assert!(on_disk > before, "the order is on the disk");

        let completion = [completion_of_current(&store, order.tickets[0].id).await];
        let (before, _) = log_ends(&pool).await;
        store.complete_tickets(&completion).await.unwrap();
        let (_, on_disk) = log_ends(&pool).await;
        waiting += usize::from(on_disk <= before);
    }
    assert!(waiting > 0, "no completion was left to the background");
}

#[tokio::test]
async fn a_postgres_server_that_syncs_nothing_syncs_orders_all_the_same() {
    let server = Postgres::start().await;
    sqlx::any::install_default_drivers();
    let pool = AnyPool::connect(&server.url()).await.unwrap();
    for (configured, expected) in
        [("off", "on"), ("remote_apply", "remote_apply"), ("local", "local")]
    {
        let sql = format!("ALTER SYSTEM SET synchronous_commit = {configured}");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        sqlx::raw_sql("SELECT pg_reload_conf()").execute(&pool).await.unwrap();
        stampede_testkit::eventually(Duration::from_secs(10), || async {
            let mut new = AnyPool::connect(&server.url()).await.unwrap().acquire().await.unwrap();
            let row = sqlx::query("SHOW synchronous_commit").fetch_one(&mut *new).await.unwrap();
            let now: String = row.get(0);
            if now == configured { Ok(()) } else { Err(now) }
        })
        .await;
        let store =
            Store::connect(&Config { url: server.url(), ..Config::default() }).await.unwrap();
        let store = store.with_ticket_secret(&secret());
        store.migrate().await.unwrap();
        sqlx::raw_sql(
            "DROP TABLE IF EXISTS committed; CREATE TABLE committed (durability TEXT); \
             CREATE OR REPLACE FUNCTION record_durability() RETURNS trigger LANGUAGE plpgsql AS $$ \
             BEGIN INSERT INTO committed VALUES (current_setting('synchronous_commit')); \
             RETURN NULL; END $$; DROP TRIGGER IF EXISTS probe ON events; \
             CREATE TRIGGER probe AFTER INSERT ON events EXECUTE FUNCTION record_durability()",
        )
        .execute(&pool)
        .await
        .unwrap();
        store.insert_event(&event("ann")).await.unwrap();
        let row = sqlx::query("SELECT durability FROM committed").fetch_one(&pool).await.unwrap();
        assert_eq!(row.get::<String, _>(0), expected, "configured as {configured}");
    }
}
