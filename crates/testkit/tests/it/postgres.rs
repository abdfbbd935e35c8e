//! What a test may rely on of its PostgreSQL.

use std::fs;
use std::process::Command;

use stampede_testkit::Postgres;

/// Runs one statement with the `psql` that came with the server.
fn query(url: &str, sql: &str) -> String {
    let psql = fs::read_dir("/usr/lib/postgresql")
        .unwrap()
        .map(|version| version.unwrap().path().join("bin/psql"))
        .find(|psql| psql.is_file())
        .unwrap();
    let output = Command::new(psql).args([url, "-Atqc", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn every_fresh_database_is_empty_and_its_own() {
    let mut server = Postgres::start().await;
    let (one, two) = tokio::join!(server.fresh_database(), server.fresh_database());
    query(&one, "CREATE TABLE seen (n int); INSERT INTO seen VALUES (1)");
    assert_eq!(query(&two, "SELECT to_regclass('seen') IS NULL"), "t");
    server.stop().await;
    server.start_again().await;
    assert_eq!(query(&one, "SELECT n FROM seen"), "1");
    assert_eq!(query(&server.url(), "SHOW server_encoding"), "UTF8");
}
