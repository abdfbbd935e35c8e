//! Connecting, migrating, and the messages for the operator when that fails.

use std::time::{Duration, Instant};

use stampede_store::{Config, Error, Schema, Store};
use stampede_testkit::{Postgres, eventually, temp_dir};

use crate::backends::{Database, secret};
use crate::suite::samples::event;

on_every_sql_backend!(a_database_newer_than_the_program_is_refused);

async fn connect(url: &str) -> Result<Store, Error> {
    let config = Config { url: url.into(), max_connections: 2, ..Config::default() };
    Store::connect(&config).await.map(|store| store.with_ticket_secret(&secret()))
}

async fn a_database_newer_than_the_program_is_refused(db: Database) {
    let store = db.store().await;
    sqlx::any::install_default_drivers();
    let newer = sqlx::AnyPool::connect(&db.url).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET version = 9998 + version")
        .execute(&newer)
        .await
        .unwrap();
    assert!(matches!(store.schema().await.unwrap(), Schema::Newer(9_999..)));
    let error = store.migrate().await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error}");
    assert!(error.to_string().contains("newer than this program"), "{error}");
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
