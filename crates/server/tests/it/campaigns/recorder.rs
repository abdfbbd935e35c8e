//! A provider behind a webhook that notes who got a message, and when; and the ledger of a campaign compared with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_testkit::{Client, Provider, Reply, eventually};

use super::{ledger, number, text};
use crate::PATIENCE;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A message that has come.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// The recipient's id, which is the key of the message.
    pub(super) recipient: String,
    /// When the last byte of the request was read.
    pub(super) at: Instant,
}

/// A provider that accepts every message. It is not idempotent: whoever is sent to twice gets it twice.
pub(super) struct Recorder {
    provider: Provider,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Recorder {
    /// Starts a provider whose answers take this long.
    pub(super) async fn start(latency: Duration) -> Self {
        let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
        let log = arrivals.clone();
        let provider = Provider::slow(latency, move |asked| {
            let recipient = asked.header("webhook-id").to_owned();
            let mut log = log.lock().unwrap();
            log.push(Arrival { recipient, at: Instant::now() });
            Reply::Json(200, json!({}))
        });
        Self { provider: provider.await, arrivals }
    }

    /// Makes an account that sends here under a limit.
    pub(super) async fn account(&self, client: &Client, id: &str, max: usize, per: Duration) {
        let url = format!("{}/messages", self.provider.url());
        let account = json!({
            "id": id, "channel": "webhook", "settings": { "url": url }, "credentials": { "secret": SECRET },
            "pacing": limited(max, per),
        });
        client.post("/api/accounts", &account).await.expect(201);
    }

    /// All messages that have come, in their order.
    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// How many messages have come.
    pub(super) fn count(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    /// Waits until so many messages have come.
    pub(super) async fn has(&self, count: usize) {
        eventually(PATIENCE, || async {
            let come = self.count();
            if come >= count { Ok(()) } else { Err(format!("{come} of {count} messages")) }
        })
        .await;
    }

    /// Compares the ledger of an ended campaign with what has come: nobody got two messages, who is `sent` got one, and who got
    /// one is `sent` or `unknown`. Every recipient counts once. Returns how many are `sent`, and how many `unknown`.
    pub(super) async fn assert_agrees(&self, client: &Client, path: &str) -> (u64, u64) {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for Arrival { recipient, .. } in self.arrivals() {
            *times.entry(recipient).or_default() += 1;
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "sent more than once: {twice:?}");
        let rows = ledger(client, path).await;
        let mut states: BTreeMap<String, u64> = BTreeMap::new();
        for row in &rows {
            let has_come = times.remove(&text(&row["id"])).is_some();
            let state = text(&row["status"]);
            match state.as_str() {
                "sent" => assert!(has_come, "sent, and it never came: {row}"),
                "unknown" => {}
                _ => assert!(!has_come, "it has come: {row}"),
            }
            *states.entry(state).or_default() += 1;
        }
        assert!(times.is_empty(), "messages to nobody: {times:?}");
        let contract = client.get(path).await.expect(200);
        let ends = ["sent", "failed", "unknown", "skipped"];
        for state in ends {
            let counted = states.remove(state).unwrap_or_default();
            assert_eq!(number(&contract, state), counted, "{state}: {contract}");
        }
        assert!(states.is_empty(), "these have not ended: {states:?}");
        let ended: u64 = ends.iter().map(|state| number(&contract, state)).sum();
        assert_eq!((ended, number(&contract, "total")), (rows.len() as u64, rows.len() as u64));
        (number(&contract, "sent"), number(&contract, "unknown"))
    }
}

/// The pacing of an account: so many messages in every window.
pub(super) fn limited(max: usize, per: Duration) -> Value {
    json!({ "limit": { "max": max, "perMs": per.as_millis() as u64 } })
}
