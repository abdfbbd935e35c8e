//! The secret behind the ticket keys: made once, missed when it is gone, named when it is wrong.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;
use stampede_testkit::{App, Postgres, free_port, temp_dir};

use crate::{STAMPEDE, batch_ended, create_event, start, text};

/// Runs `stampede serve` on existing data; it is expected to end by itself with an error.
fn refused_start(data_dir: &std::path::Path, settings: &[(&str, &str)]) -> String {
    let output = Command::new("timeout")
        .args(["60", STAMPEDE, "serve"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("DATA_DIR", data_dir)
        .env("PORT", free_port().to_string())
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn valid(app: &App, token: &str) -> bool {
    let verdict = app.admin().post("/api/verify", &json!({ "token": token })).await.expect(200);
    verdict["valid"].as_bool().unwrap()
}

#[tokio::test]
async fn a_wrong_or_lost_secret_stops_the_start_and_new_keys_are_the_way_out() {
    let mut app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let pdf = format!("/api/tickets/{}/pdf", text(&order["tickets"][0]));
    let [token] =
        stampede_testkit::pdf_codes(&app.admin().get(&pdf).await.bytes).try_into().unwrap();
    let file = app.data_dir().join("ticket-master.key");
    let secret = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!app.log().contains(secret.trim()), "it is not logged");
    app.stop().await;

    let other = ("TICKET_KEY_SECRET", "another-secret-of-thirty-two-characters");
    let message = refused_start(&app.data_dir(), &[other]);
    assert!(message.contains("TICKET_KEY_SECRET is not the secret"), "{message}");
    assert!(!message.contains(other.1), "{message}");
    std::fs::write(&file, &secret[..20]).unwrap();
    let message = refused_start(&app.data_dir(), &[]);
    assert!(message.contains("ticket-master.key is damaged"), "{message}");
    std::fs::remove_file(&file).unwrap();
    let message = refused_start(&app.data_dir(), &[]);
    assert!(message.contains("ticket-master.key is gone"), "{message}");
    assert!(!file.exists(), "no second secret is made for a database that has one");

    let (well, output) = app.command(&["ticket-keys", "renew"]);
    assert!(well && output.contains("1 events have a new key"), "{output}");
    app.start_again(&[]).await;
    assert!(valid(&app, &token).await, "paper stays valid");
    let again = app.order(json!({ "target": event, "name": "Bob" })).await;
    batch_ended(&app, &text(&again["batchId"])).await;
}

#[tokio::test]
async fn a_shared_database_needs_a_shared_secret() {
    let postgres = Postgres::start().await;
    let folder = temp_dir();
    let message = refused_start(folder.path(), &[("DATABASE_URL", &postgres.url())]);
    for part in ["TICKET_KEY_SECRET is not set", "openssl rand -hex 32"] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    // A file from the time when this machine was alone is no secret that all nodes share.
    let file = folder.path().join("ticket-master.key");
    let secret = "ab".repeat(32);
    std::fs::write(&file, format!("{secret}\n")).unwrap();
    let message = refused_start(folder.path(), &[("DATABASE_URL", &postgres.url())]);
    assert!(
        message.contains("is of this machine alone") && !message.contains(&secret),
        "{message}"
    );
    let settings = [("DATABASE_URL", postgres.url()), ("TICKET_KEY_SECRET", secret)];
    let app = start(&settings.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
    create_event(&app).await;
    assert!(!app.log().contains("_sqlx_migrations"), "{}", app.log());
}
