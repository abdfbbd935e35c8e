//! A worker that dies of its start, again and again.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{eventually, kill, temp_dir};

use super::{NOTICED, all_made, event_at, nodes};
use crate::{start, text};

fn processes(nodes: &[Value]) -> Vec<Value> {
    nodes[0]["workerProcesses"].as_array().cloned().unwrap_or_default()
}

/// Seconds of processor time that a process has used.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Its own and that of children it waited for.
    let ticks: u64 = fields[11..15].iter().map(|n| n.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

#[tokio::test]
async fn a_worker_in_a_crash_loop_is_shown_eats_no_processor_and_does_not_stop_the_others() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, "#field(\"name\") #qr(40mm)").unwrap();
    let path = template.display().to_string();
    let app = start(&[("TICKET_TEMPLATE", &path)]).await;
    let client = app.admin();
    eventually(NOTICED, || async { (app.workers().len() == 2).then_some(()) }).await;
    // Workers read a copy of the template when they start. Without it, none can start any more.
    let copy = std::fs::read_dir(app.data_dir()).unwrap().find_map(|entry| {
        let path = entry.ok()?.path();
        path.extension().is_some_and(|e| e == "typ").then_some(path)
    });
    eventually(NOTICED, || async { app.log().matches("INFO ready").nth(1).map(drop) }).await;
    std::fs::remove_file(copy.unwrap()).unwrap();
    kill(app.workers()[0]);

    let looping = eventually(NOTICED, || async {
        let processes = processes(&nodes(&client).await?);
        let looping = processes.iter().find(|worker| worker["state"] == "crash-looping");
        looping.cloned().ok_or_else(|| format!("{processes:?}"))
    })
    .await;
    assert!(looping["deaths"].as_u64() >= Some(4), "{looping}");
    assert!(text(&looping["problem"]).contains("exit status"), "{looping}");
    let (shown, table) = app.command(&["nodes"]);
    assert!(shown && table.contains("1 crash-looping"), "{table}");

    // The other one works.
    let event = event_at(&client).await;
    let order = json!({ "target": event, "quantity": 30, "name": "Crowd" });
    let order = client.post("/api/tickets", &order).await.expect(200);
    all_made(&client, &text(&order["batchId"]), 30).await;

    let (deaths, cpu) = (looping["deaths"].as_u64().unwrap(), cpu_seconds(app.pid()));
    tokio::time::sleep(Duration::from_secs(8)).await;
    let later = processes(&nodes(&client).await.unwrap());
    let later = later.iter().find(|worker| worker["id"] == looping["id"]).unwrap();
    let more = later["deaths"].as_u64().unwrap() - deaths;
    assert!(more <= 5, "more and more seldom, not {more} times in 8 s");
    let used = cpu_seconds(app.pid()) - cpu;
    assert!(used < 4.0, "{used} s of processor time in 8 s");
}
