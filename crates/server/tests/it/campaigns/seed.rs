//! The requests of the former campaign software, word for word but for the key: docs/compatibility.md, system 3.

use std::process::Command;

use serde_json::{Value, json};
use stampede_testkit::App;

use super::{completed, text, until};
use crate::start;

/// What its manual says.
const CREATE: &str = r#"curl -X POST http://localhost:5001/api/contracts \
  -H "Content-Type: application/json" \
  -d '{
    "accountId": "your_account_id",
    "name": "Рассылка на 1000 человек",
    "recipients": [
      {"phoneNumber": "79991234567", "message": "Привет!"},
      {"phoneNumber": "79997654321", "message": "Привет!"}
    ]
  }'"#;
const START: &str = "curl -X POST http://localhost:5001/api/contracts/CONTRACT_ID/start";
const STATUS: &str = "curl http://localhost:5001/api/queues/status";
const PAUSE: &str = "curl -X POST http://localhost:5001/api/contracts/CONTRACT_ID/pause";
const DELETE: &str = "curl -X DELETE http://localhost:5001/api/contracts/CONTRACT_ID";
const CLEAN: &str = "curl -X POST http://localhost:5001/api/queues/clean";

/// Runs a line of the manual against this server, with its key.
fn run(app: &App, line: &str, contract: &str) -> Value {
    let line = line.replace("http://localhost:5001", &app.url()).replace("CONTRACT_ID", contract);
    let key = format!("curl -sS -H 'Authorization: Bearer {}'", stampede_testkit::ADMIN_KEY);
    let line = line.replacen("curl", &key, 1);
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[tokio::test]
async fn the_lines_of_the_former_manual_work_as_they_are() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let admin = app.admin();
    // What the manual calls your_account_id has to exist.
    let account = json!({ "id": "your_account_id", "channel": "console" });
    admin.post("/api/accounts", &account).await.expect(201);

    let made = run(&app, CREATE, "");
    assert_eq!(made["success"], true, "{made}");
    assert_eq!(made["id"], made["contractId"]);
    assert_eq!(
        (&made["name"], &made["status"]),
        (&json!("Рассылка на 1000 человек"), &json!("draft"))
    );
    assert_eq!(made["counts"]["total"], 2, "{made}");
    let id = text(&made["contractId"]);
    let path = format!("/api/contracts/{id}");

    let started = run(&app, START, &id);
    assert_eq!(started["status"], "running", "{started}");
    let ended = completed(&admin, &path).await;
    assert_eq!((&ended["counts"]["sent"], &ended["progress"]), (&json!(2), &json!(100)), "{ended}");
    let recipients = admin.get(&format!("{path}/recipients")).await.expect(200);
    let addresses: Vec<&Value> =
        recipients["recipients"].as_array().unwrap().iter().map(|row| &row["address"]).collect();
    assert_eq!(
        addresses,
        ["+79991234567", "+79997654321"],
        "as E.164, though the plus was left out"
    );

    let status = run(&app, STATUS, "");
    for queue in ["contracts", "messages"] {
        for field in ["waiting", "active", "completed", "failed", "delayed"] {
            assert!(status[queue][field].is_u64(), "{queue}.{field}: {status}");
        }
        assert!(status[queue]["activeJobs"].is_array(), "{status}");
    }
    assert_eq!(run(&app, CLEAN, "")["success"], true);
    let refused = run(&app, PAUSE, &id);
    assert_eq!(
        (&refused["code"], &refused["state"]),
        (&json!("campaign_state"), &json!("completed"))
    );
    assert_eq!(run(&app, DELETE, &id), Value::Null);
    admin.get(&path).await.expect(404);
}

#[tokio::test]
async fn a_running_campaign_shows_its_job_with_its_progress() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let admin = app.admin();
    // 20 messages a minute: it is still running when we look.
    let slow = json!({ "id": "your_account_id", "channel": "console" });
    admin.post("/api/accounts", &slow).await.expect(201);
    let path = super::campaign(&admin, "your_account_id", 40).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    run(&app, START, &id);
    until(&admin, &path, |contract| contract["counts"]["sent"] == 20).await;
    // Its feeder looks every two seconds how far it is.
    let job = until(&admin, &format!("/api/queues/contracts/jobs/contract-{id}"), |job| {
        job["progress"] == 50
    })
    .await;
    assert_eq!((&job["name"], &job["data"]["contractId"]), (&json!("campaign"), &json!(id)));
    let paused = run(&app, PAUSE, &id);
    assert_eq!((&paused["status"], &paused["inFlight"]), (&json!("paused"), &json!(0)), "{paused}");
    let status = run(&app, STATUS, "");
    let waiting = &status["messages"];
    for field in ["waiting", "active", "delayed", "prioritized"] {
        assert_eq!(waiting[field].as_u64().unwrap_or_default(), 0, "{field}: {status}");
    }
    assert_eq!(run(&app, START, &id)["status"], "running", "start resumes");
}
