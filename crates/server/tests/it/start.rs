//! A start that cannot work says which part, why, and what to do; and exits with an error.

use std::net::TcpListener;
use std::process::{Command, Output};

use stampede_testkit::{Redis, eventually, temp_dir};

use crate::{PATIENCE, STAMPEDE};

/// Runs `stampede serve` in a new data directory; it is expected to end by itself.
fn serve(settings: &[(&str, &str)]) -> Output {
    let folder = temp_dir();
    Command::new("timeout")
        .args(["60", STAMPEDE, "serve"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("DATA_DIR", folder.path())
        .env("PORT", closed_port().to_string())
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

fn refused(settings: &[(&str, &str)], code: i32, parts: &[&str]) {
    let output = serve(settings);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    assert!(!message.contains("secret"), "passwords are never shown: {message}");
}

/// A port of this machine where nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn wrong_settings_are_all_named_at_once() {
    refused(
        &[("PORT", "http"), ("WORKER_MODE", "boss"), ("WORKER_COUNT", "-1"), ("LOG_FORMAT", "xml")],
        2,
        &[
            "PORT=http",
            "WORKER_MODE=boss",
            "WORKER_COUNT=-1",
            "LOG_FORMAT=xml",
            "must be text or json",
        ],
    );
}

#[test]
fn secrets_in_wrong_settings_are_not_shown() {
    refused(
        &[("DATABASE_URL", "mysql://me:secret@host/db")],
        2,
        &["DATABASE_URL=mysql://***@host/db"],
    );
    refused(&[("REDIS_URL", "http://:secret@host")], 2, &["REDIS_URL=http://***@host"]);
}

#[test]
fn a_template_that_does_not_work_is_refused_at_start() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, "#let x = (").unwrap();
    let port = closed_port().to_string();
    let path = template.display().to_string();
    refused(
        &[("PORT", &port), ("TICKET_TEMPLATE", &path)],
        1,
        &["TICKET_TEMPLATE", "template.typ:1"],
    );
}

#[test]
fn a_port_in_use_is_named() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    refused(&[("PORT", &port)], 1, &[&port, "in use", "set PORT"]);
}

#[test]
fn an_engine_that_others_reach_needs_a_password() {
    refused(&[("ENGINE_HOST", "0.0.0.0")], 2, &["ENGINE_HOST=0.0.0.0", "set ENGINE_PASSWORD"]);
}

#[test]
fn an_unreachable_redis_is_named() {
    let (port, redis) = (closed_port().to_string(), closed_port());
    let url = format!("redis://:secret@127.0.0.1:{redis}");
    refused(
        &[("PORT", &port), ("REDIS_URL", &url)],
        1,
        &["cannot reach Redis", &redis.to_string(), "REDIS_URL"],
    );
}

#[test]
fn an_unreachable_database_is_named() {
    let (port, database) = (closed_port().to_string(), closed_port());
    let url = format!("postgres://me:secret@127.0.0.1:{database}/tickets");
    refused(
        &[("PORT", &port), ("DATABASE_URL", &url)],
        1,
        &[&database.to_string(), "DATABASE_URL"],
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let port = closed_port().to_string();
    refused(
        &[("PORT", &port), ("PUBLIC_PATH", "/proc/nothing")],
        1,
        &["/proc/nothing", "PUBLIC_PATH"],
    );
}

#[tokio::test]
async fn a_redis_that_may_evict_jobs_is_refused() {
    let redis = Redis::with_config(&[("maxmemory-policy", "allkeys-lru")]).await;
    let (port, url) = (closed_port().to_string(), redis.url());
    refused(
        &[("PORT", &port), ("REDIS_URL", &url)],
        1,
        &["allkeys-lru", "CONFIG SET maxmemory-policy noeviction"],
    );
}

#[tokio::test]
async fn a_password_for_a_redis_that_has_none_is_named_as_such() {
    let redis = Redis::start().await;
    for login in [":secret", "bob:secret"] {
        let url = redis.url().replace("redis://", &format!("redis://{login}@"));
        refused(&[("REDIS_URL", &url)], 1, &["has no password, but the settings give one"]);
    }
}

#[test]
fn a_worker_with_a_wrong_redis_is_told_of_that_alone() {
    let database = "postgres://me@127.0.0.1/tickets";
    let output = serve(&[
        ("WORKER_MODE", "worker"),
        ("REDIS_URL", "localhost:6379"),
        ("DATABASE_URL", database),
    ]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message.lines().count(), 2, "{message}");
    assert!(message.contains("REDIS_URL=localhost:6379: is not a Redis URL: it has no scheme"));
    assert!(!message.contains("unreadable"), "{message}");
}

#[test]
fn an_engine_whose_port_is_taken_says_so_and_touches_nothing() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = temp_dir();
    let dir = folder.path().join("jobs");
    let engine = Command::new(STAMPEDE)
        .args(["engine", "--port", &port, "--dir", &dir.display().to_string()])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&engine.stderr);
    assert!(
        message.contains("in use by another program") && message.contains("--port"),
        "{message}"
    );
    assert!(!message.contains("journal") && !dir.exists(), "{message}");
}

#[tokio::test]
async fn two_servers_do_not_share_a_data_directory() {
    let app = crate::start(&[("WORKER_MODE", "api")]).await;
    let (port, folder) = (closed_port().to_string(), app.data_dir().display().to_string());
    refused(
        &[("PORT", &port), ("DATA_DIR", &folder)],
        1,
        &["in use by another stampede", "DATA_DIR"],
    );
}

#[tokio::test]
async fn a_server_may_wait_for_its_redis() {
    let mut redis = Redis::start().await;
    redis.stop().await;
    let url = redis.url();
    let settings = [("REDIS_URL", url.as_str()), ("WORKER_MODE", "api"), ("START_TIMEOUT", "60")];
    let (app, ()) = tokio::join!(crate::start(&settings), redis.start_again());
    app.stranger().get("/ready").await.expect(200);
    redis.stop().await;
    let answer = app.stranger().get("/ready").await.expect(503);
    assert_eq!((&answer["redis"], &answer["database"]), (&"down".into(), &"up".into()));
}

#[tokio::test]
async fn a_server_may_wait_for_a_redis_that_takes_no_writes() {
    let redis = Redis::start().await;
    let url = redis.url();
    let settings = [("REDIS_URL", url.as_str()), ("START_TIMEOUT", "60")];
    let mut app = crate::start(&settings).await;
    app.kill_everything();
    // Every write is refused until a replica is there.
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    app.launch_again();
    eventually(PATIENCE, || async {
        let log = app.log();
        if log.contains("NOREPLICAS") { Ok(()) } else { Err(log) }
    })
    .await;
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    eventually(PATIENCE, || async {
        let answer = app.stranger().try_get("/ready").await?;
        if answer.status == 200 { Ok(()) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert!(!app.has_ended(), "{}", app.log());
}

#[test]
fn a_profile_that_is_not_filled_in_says_what_is_missing() {
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/profiles/run");
    let profile = |name: &str, settings: &[(&str, &str)]| {
        let output = Command::new("timeout")
            .args(["60", run, name])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("STAMPEDE", STAMPEDE)
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let message = profile("api-main", &[]);
    for name in ["REDIS_URL", "DATABASE_URL", "NFS_PATH", "TICKET_KEY_SECRET"] {
        assert!(message.contains(&format!("{name}=…: is not filled in")), "{message}");
    }
    // What is set already wins over the profile.
    let message = profile("development", &[("PORT", "http"), ("WORKER_COUNT", "none")]);
    assert!(message.contains("PORT=http") && message.contains("WORKER_COUNT=none"), "{message}");
    assert!(profile("nothing", &[]).contains("development.env"));
}
