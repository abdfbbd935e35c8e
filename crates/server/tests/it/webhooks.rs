//! Webhooks: endpoints, signed messages to a real receiver, retries, and addresses that are never reached.

mod addresses;
mod crashes;
mod endpoints;
mod messages;
mod retries;

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{App, Client, Receiver, eventually};

use crate::{PATIENCE, start, text};

/// The setting that lets webhooks reach receivers of this machine.
const HERE: (&str, &str) = ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1");

/// A server whose webhooks may reach receivers of this machine.
async fn start_here() -> App {
    start(&[HERE, ("WORKER_COUNT", "1")]).await
}

/// Makes a webhook; returns its id and its secret.
async fn webhook(client: &Client, fields: Value) -> (String, String) {
    let made = client.post("/api/webhooks", &fields).await.expect(201);
    (text(&made["id"]), text(&made["secret"]))
}

/// Makes a webhook of a receiver for all messages.
async fn webhook_to(client: &Client, receiver: &Receiver) -> (String, String) {
    webhook(client, json!({ "url": receiver.url("/hook") })).await
}

/// Sends a test message; returns the path of its delivery.
async fn sent_test(client: &Client, webhook: &str) -> String {
    let sent = client.post(&format!("/api/webhooks/{webhook}/test"), &json!({})).await.expect(202);
    format!("/api/webhooks/{webhook}/deliveries/{}", text(&sent["id"]))
}

/// Waits until a record has a field with this value.
async fn becomes(client: &Client, path: &str, field: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    eventually(PATIENCE, || async {
        let answer = client.try_get(path).await?;
        match answer.body[field] == value {
            true => Ok(answer.body),
            false => Err(answer.body.to_string()),
        }
    })
    .await
}

/// Longer than the first pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(8);
