//! Every node has a name of its own.

use std::process::Command;
use std::time::{Duration, Instant};

use stampede_testkit::{Redis, Signal, eventually, temp_dir};

use super::NOTICED;
use crate::{STAMPEDE, start};

#[tokio::test]
async fn a_second_node_with_the_same_name_does_not_start_and_says_who_has_it() {
    let redis = Redis::start().await;
    let url = redis.url();
    let settings =
        [("REDIS_URL", url.as_str()), ("WORKER_MODE", "api"), ("SERVER_NAME", "only-one")];
    let mut app = start(&settings).await;
    let pid = app.pid();
    let folder = temp_dir();
    let database = format!("sqlite:{}", folder.path().join("other.db").display());
    let output = tokio::task::spawn_blocking(move || {
        Command::new("timeout")
            .args(["60", STAMPEDE, "serve"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DATA_DIR", folder.path())
            .envs([("REDIS_URL", url.as_str()), ("WORKER_MODE", "worker")])
            .env("DATABASE_URL", database)
            .env("SERVER_NAME", "only-one")
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in ["\"only-one\"", &pid.to_string(), "SERVER_NAME"] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    // One that was killed on this machine can be seen to be dead: no waiting.
    app.kill();
    let begun = Instant::now();
    app.start_again(&[]).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_node_that_was_away_too_long_may_find_its_name_taken_and_says_so() {
    let redis = Redis::start().await;
    let url = redis.url();
    let settings = [("REDIS_URL", url.as_str()), ("WORKER_MODE", "api"), ("SERVER_NAME", "wanted")];
    let mut first = start(&settings).await;
    first.signal(Signal::STOP);
    // It cannot be seen to be dead, for it lives: its entry has to expire first.
    let begun = Instant::now();
    let second = start(&settings).await;
    assert!(begun.elapsed() > Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(second.log().contains("waiting whether it is gone"), "{}", second.log());
    let holder = format!("process {} on ", first.pid());
    assert!(second.log().contains(&holder) && !second.log().contains("Some("), "{}", second.log());
    first.signal(Signal::CONT);
    eventually(NOTICED, || async {
        let log = first.log();
        if log.contains("another process took this node's name") { Ok(()) } else { Err(log) }
    })
    .await;
    let nodes = second.admin().get("/api/nodes").await.expect(200);
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 1, "{nodes}");
    assert_eq!(nodes["nodes"][0]["pid"], second.pid(), "the name stays with the second");
}
