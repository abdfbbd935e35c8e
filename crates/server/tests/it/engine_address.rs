//! The address of the embedded engine: a setting, kept from start to start, and never moved silently.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use stampede_testkit::App;

use crate::{STAMPEDE, start};

fn engine_url(app: &App) -> String {
    std::fs::read_to_string(app.data_dir().join("engine.url")).unwrap()
}

fn port_of(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().trim_end_matches("/0").parse().unwrap()
}

/// What redis-cli prints when it connects with a URL.
fn redis_cli(url: &str, words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["--no-auth-warning", "-u", url])
        .args(words)
        .output()
        .expect("redis-cli comes with redis-server: apt-get install redis-server");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim_end().to_owned()
}

#[tokio::test]
async fn port_and_password_stay_the_same_over_kills() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let url = engine_url(&app);
    for round in 0..2 {
        // Connections that end leave the port in TIME_WAIT, which must not be in the way.
        for _ in 0..3 {
            assert_eq!(redis_cli(&url, &["PING"]), "PONG", "round {round}");
        }
        app.kill_everything();
        app.start_again(&[]).await;
        assert_eq!(engine_url(&app), url);
    }
    for (name, right) in [("engine.url", 0o600), ("engine", 0o700)] {
        let mode = std::fs::metadata(app.data_dir().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, right, "{name}");
    }
}

#[tokio::test]
async fn a_port_that_was_taken_meanwhile_fails_the_start_and_changes_nothing() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    app.stop().await;
    let url = engine_url(&app);
    let holder = TcpListener::bind(("127.0.0.1", port_of(&url))).unwrap();
    let serve = || {
        Command::new("timeout")
            .args(["60", STAMPEDE, "serve"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DATA_DIR", app.data_dir())
            .env("PORT", free_port().to_string())
            .output()
            .unwrap()
    };
    let refused = serve();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    for part in [&port_of(&url).to_string(), "in use", "engine.url", "set ENGINE_PORT", "ss -ltnp"]
    {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    assert_eq!(engine_url(&app), url);
    let (well, report) = app.command(&["doctor"]);
    assert!(!well && report.contains("in use"), "{report}");
    drop(holder);
    app.start_again(&[]).await;
    assert_eq!(redis_cli(&engine_url(&app), &["PING"]), "PONG");
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn host_port_and_password_are_settings_and_the_password_is_not_shown() {
    let (port, password) = (free_port().to_string(), "p@ss/w%20rd :+ü");
    let settings = [
        ("WORKER_MODE", "both"),
        ("WORKER_COUNT", "1"),
        ("ENGINE_HOST", "127.0.0.2"),
        ("ENGINE_PORT", port.as_str()),
        ("ENGINE_PASSWORD", password),
    ];
    let mut app = start(&settings).await;
    let url = engine_url(&app);
    assert!(url.ends_with(&format!("@127.0.0.2:{port}/0")), "{url}");
    assert_eq!(redis_cli(&url, &["PING"]), "PONG");
    let direct = ["-h", "127.0.0.2", "-p", &port, "-a", password, "--no-auth-warning", "PING"];
    let answer = Command::new("redis-cli").args(direct).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "PONG");
    for pid in app.workers().into_iter().chain([app.pid()]) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&line).contains("p@ss"), "in the process list");
    }
    assert!(!app.log().contains("p@ss") && !app.log().contains("p%40ss"), "in the log");
    // Without the variables, port and password stay; the host does not.
    app.stop().await;
    app.start_again(&[("ENGINE_HOST", ""), ("ENGINE_PORT", ""), ("ENGINE_PASSWORD", "")]).await;
    assert_eq!(engine_url(&app), url.replace("127.0.0.2", "127.0.0.1"));
    assert_eq!(redis_cli(&engine_url(&app), &["PING"]), "PONG");
}
