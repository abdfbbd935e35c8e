//! Campaigns: from a list to a report, with the real binary.

mod commands;
mod hooks;
mod mistakes;
mod moves;
mod owners;
mod seed;
mod unsubscribe;
mod ways;

use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Client, eventually, send};

use crate::{PATIENCE, text};

/// Makes an account of the console that is as fast as it can be.
async fn fast_account(client: &Client, id: &str) {
    let fast = json!({ "limit": { "max": 100_000, "perMs": 1_000 } });
    let account = json!({ "id": id, "channel": "console", "pacing": fast });
    client.post("/api/accounts", &account).await.expect(201);
}

/// A list of so many recipients with telephone numbers, names and messages of their own.
fn people(count: usize) -> Vec<Value> {
    let one = |n: usize| json!({ "phoneNumber": format!("+4915100{n:06}"), "message": format!("Hello {n}"), "name": format!("Guest {n}") });
    (0..count).map(one).collect()
}

/// Makes a campaign of people; returns its path.
async fn campaign(client: &Client, account: &str, count: usize) -> String {
    let body = json!({ "accountId": account, "name": "News", "recipients": people(count) });
    let made = client.post("/api/contracts", &body).await.expect(201);
    assert_eq!(made["recipients"]["added"], count, "{made}");
    format!("/api/contracts/{}", text(&made["id"]))
}

/// Carries out a verb of a campaign.
async fn verb(client: &Client, path: &str, verb: &str) -> Answer {
    client.post(&format!("{path}/{verb}"), &json!({})).await
}

/// Waits until a campaign satisfies a condition; returns its last state.
async fn until(client: &Client, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(PATIENCE, || async {
        let answer = client.try_get(path).await?;
        if is_so(&answer.body) { Ok(answer.body) } else { Err(answer.body.to_string()) }
    })
    .await
}

/// Waits until a campaign is completed.
async fn completed(client: &Client, path: &str) -> Value {
    until(client, path, |contract| contract["status"] == "completed").await
}

/// Uploads a file of recipients.
async fn upload(client: &Client, path: &str, kind: &str, file: impl Into<String>) -> Answer {
    let request = client.request(reqwest::Method::POST, path);
    send(request.header("content-type", kind).body(file.into())).await
}

/// The fields that a refusal names.
fn fields(problem: &Value) -> Vec<String> {
    let errors = problem["errors"].as_array().unwrap_or_else(|| panic!("no errors: {problem}"));
    errors.iter().map(|error| text(&error["field"])).collect()
}

/// A client of an organiser.
fn organiser(app: &App, user: &str) -> Client {
    crate::access::client(app, "organiser", user)
}
