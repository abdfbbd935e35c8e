//! A test that is killed leaves nothing behind.
//!
//! The test binary starts itself again: the second process runs only [`hold_a_server`], tells which
//! server it started and waits to be killed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use stampede_testkit::{Postgres, Redis, eventually};

/// Set for the process that is going to be killed.
const HOLD: &str = "STAMPEDE_TESTKIT_HOLD";

#[tokio::test]
async fn hold_a_server() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let redis = Redis::start().await;
    let postgres = Postgres::start().await;
    println!("ports {} {}", redis.port(), postgres.port());
    std::future::pending().await
}

#[tokio::test]
async fn servers_die_with_a_test_that_is_killed() {
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "guarded::hold_a_server", "--nocapture"])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ports: Vec<u16> = BufReader::new(test.stdout.take().unwrap())
        .lines()
        .find_map(|line| Some(line.unwrap().split_once("ports ")?.1.to_owned()))
        .unwrap()
        .split(' ')
        .map(|port| port.parse().unwrap())
        .collect();
    let servers: Vec<PathBuf> = children_of(test.id());
    assert!(servers.len() >= 2, "{servers:?}");
    let folders: Vec<PathBuf> =
        servers.iter().map(|process| process.join("cwd").read_link().unwrap()).collect();
    assert!(folders.iter().all(|folder| folder.is_dir()));

    test.kill().unwrap();
    test.wait().unwrap();

    for port in ports {
        eventually(Duration::from_secs(10), || async move {
            match tokio::net::TcpStream::connect(("127.0.0.1", port)).await {
                Ok(_) => Err(format!("something still listens on {port}")),
                Err(_) => Ok(()),
            }
        })
        .await;
    }
    for folder in folders {
        eventually(Duration::from_secs(10), || {
            let left = folder.exists();
            let reason = format!("{} is still there", folder.display());
            async move { if left { Err(reason) } else { Ok(()) } }
        })
        .await;
    }
}

/// The entries below `/proc` of the processes that `parent` started.
fn children_of(parent: u32) -> Vec<PathBuf> {
    let is_child = |process: &PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.map(|entry| entry.unwrap().path()).filter(is_child).collect()
}
