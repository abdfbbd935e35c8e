//! A disk that is full, or that fails: an outage while it lasts, and nothing of it stays in a connection.
//!
//! SQLite runs in a child process, on a disk of its own or with a limit on the size of its files. PostgreSQL
//! reports the errors from a trigger, also at the commit.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{AnyPool, AssertSqlSafe};
use stampede_model::Order;
use stampede_store::{Config, Error, Store};
use stampede_testkit::temp_dir;

use crate::backends::{Database, Postgres, secret};
use crate::suite::samples::{
    Dice, assert_no_drift, completion, counts, event, failure, order, ordered,
};

on_every_sql_backend!(a_caller_who_stops_waiting_leaves_connections_that_work);

/// Tells the child process where its disk is.
const DISK: &str = "STAMPEDE_TEST_DISK";

/// Runs a test of this binary in a child process, after a line of shell; `$0` is the folder.
fn in_child(name: &str, before: &str) {
    let (folder, binary) = (temp_dir(), std::env::current_exe().unwrap());
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-ec"])
        .arg(format!("{before}\nexec \"$@\""))
        .args([folder.path(), &binary])
        .args(["--exact", name, "--nocapture"])
        .env(DISK, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", output.status);
}

fn disk_of_child() -> Option<PathBuf> {
    std::env::var_os(DISK).map(PathBuf::from)
}

async fn open(folder: &Path) -> Store {
    let url = format!("sqlite:{}/stampede.db", folder.display());
    let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
    store.with_ticket_secret(&secret())
}

/// Writes again and again, by several callers at once: each time it is an outage, and reads go on.
async fn assert_outage(store: &Store, pending: &Order) {
    let completions: Vec<_> = pending.tickets.iter().map(|t| completion(t.id)).collect();
    let failures: Vec<_> = pending.tickets.iter().map(|t| failure(t.id)).collect();
    for round in 0..10 {
        let (one, two, three) = tokio::join!(
            store.complete_tickets(&completions),
            store.complete_tickets(&completions),
            store.fail_tickets(&failures)
        );
        for result in [one, two, three] {
            let error = result.unwrap_err();
            assert!(error.is_outage(), "round {round}: {error}");
        }
        let again = store.place_order(&order(&event("bob"), 200)).await;
        assert!(again.is_ok() || again.as_ref().is_err_and(Error::is_outage), "{again:?}");
        assert_eq!(counts(store, pending.batch_id).await, [200, 0, 0, 0]);
    }
    let told = store.ping().await.unwrap_err();
    assert!(matches!(told, Error::Unavailable(_)), "{told}");
    println!("{told}");
}

/// Writes succeed again, on every connection.
async fn assert_over(store: &Store, pending: &Order) {
    store.ping().await.unwrap();
    let completions: Vec<_> = pending.tickets.iter().map(|t| completion(t.id)).collect();
    for done in completions.chunks(20) {
        store.complete_tickets(done).await.unwrap();
    }
    assert_eq!(counts(store, pending.batch_id).await, [200, 200, 0, 0]);
    assert_no_drift(store).await;
}

/// Fills the disk to its last byte.
fn fill(file: &Path) {
    use std::io::Write;
    let mut ballast = std::fs::File::create(file).unwrap();
    for size in [64 << 10, 4 << 10, 1] {
        let block = vec![b'x'; size];
        while ballast.write(&block).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_outage_of_sqlite_and_over_when_there_is_room() {
    let Some(folder) = disk_of_child() else {
        let name = "sql::full_disk::a_full_disk_is_an_outage_of_sqlite_and_over_when_there_is_room";
        return in_child(name, "mount -t tmpfs -o size=8m none \"$0\"");
    };
    let store = open(&folder).await;
    store.migrate().await.unwrap();
    let (_, pending) = ordered(&store, 200).await;
    fill(&folder.join("ballast"));
    assert_outage(&store, &pending).await;
    let told = store.ping().await.unwrap_err().to_string();
    assert!(told.contains("disk of the database is full"), "{told}");
    // Another process that starts now can read, too.
    let other = open(&folder).await;
    assert_eq!(counts(&other, pending.batch_id).await, [200, 0, 0, 0]);
    other.close().await;
    std::fs::remove_file(folder.join("ballast")).unwrap();
    assert_over(&store, &pending).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_to_write_is_an_outage_of_sqlite() {
    let Some(folder) = disk_of_child() else {
        // Without the signal, a write beyond the limit is an IO error.
        let name = "sql::full_disk::a_disk_that_fails_to_write_is_an_outage_of_sqlite";
        return in_child(name, "trap '' XFSZ");
    };
    let limit = |bytes: &str| {
        let me = std::process::id().to_string();
        let limited = Command::new("prlimit")
            .args(["--pid", &me, &format!("--fsize={bytes}:unlimited")])
            .status();
        assert!(limited.unwrap().success());
    };
    let store = open(&folder).await;
    store.migrate().await.unwrap();
    let (_, pending) = ordered(&store, 200).await;
    // The write-ahead log cannot grow.
    let log = std::fs::metadata(folder.join("stampede.db-wal")).unwrap().len();
    limit(&log.to_string());
    assert_outage(&store, &pending).await;
    limit("unlimited");
    assert_over(&store, &pending).await;
    store.close().await;
}

/// Errors that PostgreSQL reports when it is out of something, or about to stop.
const OUTAGES: [&str; 7] = ["53100", "53200", "53300", "58030", "57P01", "57P03", "25006"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_without_room_is_an_outage_and_over_when_it_has_some() {
    let db = Database::fresh::<Postgres>().await;
    let store = db.store().await;
    let (_, pending) = ordered(&store, 200).await;
    sqlx::any::install_default_drivers();
    let admin = AnyPool::connect(&db.url).await.unwrap();
    let run = async |sql: String| {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&admin).await.unwrap();
    };
    for code in OUTAGES {
        run(format!(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'out of it' USING ERRCODE = '{code}'; END $$"
        ))
        .await;
        for when in ["", "DEFERRABLE INITIALLY DEFERRED"] {
            // A deferred trigger fails the commit itself.
            run(format!(
                "CREATE CONSTRAINT TRIGGER failing AFTER UPDATE ON tickets {when} \
                 FOR EACH ROW EXECUTE FUNCTION fail()"
            ))
            .await;
            for _ in 0..5 {
                let failed = store.fail_tickets(&[failure(pending.tickets[0].id)]).await;
                assert!(failed.as_ref().is_err_and(Error::is_outage), "{code} {when}: {failed:?}");
                assert_eq!(counts(&store, pending.batch_id).await, [200, 0, 0, 0]);
            }
            run("DROP TRIGGER failing ON tickets".to_owned()).await;
        }
        run("DROP FUNCTION fail".to_owned()).await;
    }
    assert_over(&store, &pending).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_ends_its_sessions_or_has_none_left_is_an_outage() {
    let db = Database::fresh::<Postgres>().await;
    sqlx::any::install_default_drivers();
    let admin = AnyPool::connect(&db.url).await.unwrap();
    let run = async |sql: &'static str| {
        sqlx::raw_sql(sql).execute(&admin).await.unwrap();
    };
    // No limit holds for a superuser.
    run("CREATE ROLE app LOGIN; GRANT ALL ON SCHEMA public TO app").await;
    let url = db.url.replace("postgres@", "app@");
    let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
    let store = store.with_ticket_secret(&secret());
    store.migrate().await.unwrap();
    let (_, pending) = ordered(&store, 200).await;
    run("ALTER ROLE app CONNECTION LIMIT 0").await;
    run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'").await;
    for _ in 0..3 {
        let error = store.complete_tickets(&[completion(pending.tickets[0].id)]).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
    }
    run("ALTER ROLE app CONNECTION LIMIT -1").await;
    assert_over(&store, &pending).await;
}

async fn a_caller_who_stops_waiting_leaves_connections_that_work(db: Database) {
    let store = db.store().await;
    let (_, pending) = ordered(&store, 200).await;
    let mut dice = Dice(7);
    for ticket in &pending.tickets {
        let (store, failure) = (store.clone(), failure(ticket.id));
        let dropped = tokio::spawn(async move { store.fail_tickets(&[failure]).await });
        // From before the BEGIN to after the COMMIT.
        for _ in 0..dice.below(400) {
            tokio::task::yield_now().await;
        }
        dropped.abort();
        let ended = dropped.await;
        assert!(ended.is_err() || ended.as_ref().is_ok_and(Result::is_ok), "{ended:?}");
    }
    for ticket in &pending.tickets {
        store.fail_tickets(&[failure(ticket.id)]).await.unwrap();
    }
    assert_eq!(counts(&store, pending.batch_id).await, [200, 0, 200, 0]);
    assert_no_drift(&store).await;
}
