//! Connecting, migrating, and what an operator reads when that fails.

use std::time::{Duration, Instant};

use stampede_store::{Config, Durability, Error, Store};
use stampede_testkit::{Postgres, eventually, temp_dir};

use crate::database::{Database, secret};
use crate::samples::{event, ordered};

on_every_backend!(
    processes_that_migrate_at_once_all_succeed,
    a_database_newer_than_the_program_is_refused,
    records_outlive_the_handle,
    a_closed_store_is_unavailable,
);

async fn connect(url: &str) -> Result<Store, Error> {
    let durability = Durability::EveryCommit;
    let config = Config { url: url.into(), durability, max_connections: 2, ..Config::default() };
    Store::connect(&config).await.map(|store| store.with_ticket_secret(&secret()))
}

async fn processes_that_migrate_at_once_all_succeed(db: Database) {
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let url = db.url.clone();
            tokio::spawn(async move {
                let store = connect(&url).await.unwrap();
                store.migrate().await.unwrap();
                store.migrate().await.unwrap();
                store.insert_event(&event("ann")).await.unwrap();
            })
        })
        .collect();
    for start in starts {
        start.await.unwrap();
    }
    let events = db.store().await.events(None, None, 10).await.unwrap();
    assert_eq!(events.len(), 6);
}

async fn a_database_newer_than_the_program_is_refused(db: Database) {
    let store = db.store().await;
    sqlx::any::install_default_drivers();
    let newer = sqlx::AnyPool::connect(&db.url).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET version = 9998 + version")
        .execute(&newer)
        .await
        .unwrap();
    let error = store.migrate().await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error}");
    assert!(error.to_string().contains("newer than this program"), "{error}");
}

async fn records_outlive_the_handle(db: Database) {
    let store = db.store().await;
    let (event, _) = ordered(&store, 1).await;
    store.close().await;
    let store = connect(&db.url).await.unwrap();
    store.ping().await.unwrap();
    assert_eq!(store.event(event.id).await.unwrap(), Some(event));
}

async fn a_closed_store_is_unavailable(db: Database) {
    let store = db.store().await;
    store.close().await;
    assert!(matches!(store.ping().await, Err(Error::Unavailable(_))));
    assert!(matches!(store.insert_event(&event("ann")).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let start = Instant::now();
    for url in [
        "postgres://ann:s3cret@127.0.0.1:1/tickets?application_name=s3cret",
        "postgres://ann:s3cret@no-such-host.invalid/tickets",
    ] {
        let error = connect(url).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("postgres://ann@") && text.contains("/tickets"), "{text}");
        assert!(text.contains("check that it runs"), "{text}");
        assert!(!format!("{text}{error:?}").contains("s3cret"), "{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let start = Instant::now();
    let error = connect(&format!("postgres://127.0.0.1:{port}/tickets")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("no answer within 5s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn a_missing_database_is_not_worth_a_retry() {
    let server = Postgres::start().await;
    let error = connect(&server.url().replace("/postgres", "/nowhere")).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains("\"nowhere\" does not exist"), "{error}");
}

#[tokio::test]
async fn a_store_recovers_when_its_server_comes_back() {
    let mut server = Postgres::start().await;
    let store = connect(&server.url()).await.unwrap();
    store.migrate().await.unwrap();
    server.stop().await;
    let error = store.insert_event(&event("ann")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(store.ping().await.is_err());
    server.start_again().await;
    eventually(Duration::from_secs(10), || store.ping()).await;
    store.insert_event(&event("ann")).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = temp_dir();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let error = connect(&format!("sqlite:{}/stampede.db", file.display())).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    assert!(error.to_string().contains("may write to"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let folder = temp_dir();
    let file = folder.path().join("letter.txt");
    std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
    let error = connect(&format!("sqlite:{}", file.display())).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert!(error.to_string().contains("not a database"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_and_its_folder_are_their_owners_only() {
    use std::os::unix::fs::PermissionsExt;

    let folder = temp_dir();
    let file = folder.path().join("new/data/stampede.db");
    let store = connect(&format!("sqlite:{}", file.display())).await.unwrap();
    store.migrate().await.unwrap();
    store.insert_event(&event("ann")).await.unwrap();
    let data = file.parent().unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["stampede.db", "stampede.db-shm", "stampede.db-wal"]);
    for folder in [data, data.parent().unwrap()] {
        let mode = std::fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder:?}");
    }
}

#[tokio::test]
async fn a_path_is_taken_as_it_is_written() {
    let folder = temp_dir();
    for name in ["a b", "a%20b", "50% off?", "mode=memory?mode=ro#x", "ü:memory:", "x/../y"] {
        let path = folder.path().join(name);
        let file = path.join("stampede.db?mode=ro");
        std::fs::create_dir_all(&path).unwrap();
        let store = connect(&format!("sqlite:{}", file.display())).await.unwrap();
        store.migrate().await.unwrap();
        store.insert_event(&event("ann")).await.unwrap();
        assert!(std::fs::metadata(&file).unwrap().is_file(), "{name}");
        let again = connect(&format!("sqlite://{}", file.display())).await.unwrap();
        assert_eq!(again.events(None, None, 9).await.unwrap().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_folder_that_went_away_is_an_outage() {
    let folder = temp_dir();
    let store = connect(&format!("sqlite:{}/data/x.db", folder.path().display())).await.unwrap();
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    let error = store.insert_event(&event("ann")).await.unwrap_err();
    assert!(error.is_outage(), "{error:?}");
}
