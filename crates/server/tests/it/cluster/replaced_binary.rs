//! The program is replaced on the disk while it runs.

use std::path::Path;

use serde_json::Value;
use stampede_testkit::{App, eventually, kill, temp_dir};

use super::{NOTICED, nodes};
use crate::STAMPEDE;

/// Puts another file in the place of a program, as an update does.
fn replace(program: &Path, by: &str) {
    let draft = program.with_extension("new");
    std::fs::copy(by, &draft).unwrap();
    std::fs::rename(draft, program).unwrap();
}

/// What a process runs, as the system tells it.
fn program_of(pid: u32) -> String {
    let path = std::fs::read_link(format!("/proc/{pid}/exe"));
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

async fn until(app: &App, looks: impl Fn(&Value) -> bool) -> Value {
    let client = app.admin();
    eventually(NOTICED, || async {
        let node = nodes(&client).await?.into_iter().next().unwrap_or_default();
        if looks(&node) { Ok(node) } else { Err(node.to_string()) }
    })
    .await
}

#[tokio::test]
async fn a_replaced_program_is_used_after_a_rolling_restart_and_only_if_it_starts() {
    let folder = temp_dir();
    let program = folder.path().join("stampede");
    replace(&program, STAMPEDE);
    let app = App::start(&program, &[]).await;
    until(&app, |node| node["workers"] == 2).await;
    let old = app.workers();

    // A worker that dies is started with what the server runs, not with what lies there now.
    replace(&program, "/bin/false");
    kill(old[0]);
    eventually(NOTICED, || async {
        let now = app.workers();
        if now.len() == 2 && !now.contains(&old[0]) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    let before = {
        until(&app, |node| node["workers"] == 2).await;
        let mut workers = app.workers();
        workers.sort_unstable();
        workers
    };
    assert!(before.iter().all(|pid| program_of(*pid).ends_with("(deleted)")), "{before:?}");

    // A new one that does not start changes nothing.
    let client = app.admin();
    let restart = serde_json::json!({ "action": "restart" });
    client.post("/api/nodes/all/commands", &restart).await.expect(202);
    let node = until(&app, |node| node["restartProblem"].is_string()).await;
    assert!(node["restartProblem"].as_str().unwrap().contains("does not start"), "{node}");
    until(&app, |node| node["workers"] == 2).await;
    let mut now = app.workers();
    now.sort_unstable();
    assert_eq!(now, before, "the old ones stay");

    // One that does replaces them all.
    replace(&program, STAMPEDE);
    client.post("/api/nodes/all/commands", &restart).await.expect(202);
    until(&app, |node| node["restartProblem"].is_null() && node["workers"] == 2).await;
    let place = program.display().to_string();
    eventually(NOTICED, || async {
        let now = app.workers();
        let programs: Vec<String> = now.iter().map(|pid| program_of(*pid)).collect();
        let replaced = now.len() == 2 && programs.iter().all(|program| *program == place);
        if replaced { Ok(()) } else { Err(format!("{programs:?}")) }
    })
    .await;
}
