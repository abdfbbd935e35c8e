//! Campaigns: from a list to a report, with the real binary.

mod commands;
mod hooks;
mod limit;
mod lost_answer;
mod meanwhile;
mod mistakes;
mod moves;
mod owners;
mod pause;
mod pauses;
mod recorder;
mod seed;
mod storm;
mod tickets_by_link;
mod tickets_by_mail;
mod trial;
mod unsubscribe;
mod ways;

use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Client, eventually, send};

use crate::{PATIENCE, text};

/// Lets campaigns reach providers on this machine.
const HERE: (&str, &str) = ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1");

/// A database that other nodes could use wants a secret.
const TICKET_SECRET: (&str, &str) = ("TICKET_KEY_SECRET", "0123456789abcdef0123456789abcdef");

/// How large a test is: the number in this variable of the environment, else `small`.
fn size(variable: &str, small: usize) -> usize {
    match std::env::var(variable) {
        Ok(given) => given.parse().unwrap_or_else(|_| panic!("{variable}={given}: use a number")),
        Err(_) => small,
    }
}

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

/// Makes a campaign of people who come in a file; returns its path.
async fn large_campaign(client: &Client, account: &str, count: usize) -> String {
    let body = json!({ "accountId": account, "name": "News" });
    let made = client.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    let rows: Vec<String> = people(count).iter().map(Value::to_string).collect();
    let file = rows.join("\n");
    let report = upload(client, &format!("{path}/recipients"), "application/x-ndjson", file).await;
    let report = report.expect(200);
    assert_eq!(report["added"], count, "{report}");
    path
}

/// All recipients of a campaign, by position.
async fn ledger(client: &Client, path: &str) -> Vec<Value> {
    let (mut rows, mut after) = (Vec::new(), 0);
    loop {
        let page = format!("{path}/recipients?limit=1000&after={after}");
        let page = client.get(&page).await.expect(200);
        rows.extend(page["recipients"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => return rows,
        }
    }
}

/// How many recipients of a campaign are in a state; `total`: all.
fn number(contract: &Value, state: &str) -> u64 {
    let number = contract["counts"][state].as_u64();
    number.unwrap_or_else(|| panic!("no number of {state}: {contract}"))
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
