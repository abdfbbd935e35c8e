//! The account of messages: campaigns that are made and started over HTTP, and a provider that notes who got what.
//!
//! The provider is not idempotent: a message that is sent twice comes twice. Counted:
//!
//! - lost: an acknowledged campaign or recipient that is not there, a recipient that is `sent` and got nothing
//! - doubled: a recipient that got two messages, a message to nobody whom a request has named
//! - wrong: a recipient that got a message and is neither `sent` nor `unknown`, or that is still to be sent to

mod audit;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Provider, Reply};
use tokio_util::sync::CancellationToken;

use self::audit::{compare, observe};
use super::caller::Caller;
use super::ledger::{Account, Audit, Site};
use crate::text;

/// Clients that make campaigns at the same time.
const SENDERS: u64 = 2;
/// Recipients of a campaign.
const RECIPIENTS: usize = 10;
/// Longest pause between two campaigns of a client.
const PAUSE: Duration = Duration::from_secs(4);
/// The account that sends.
const ACCOUNT: &str = "faults";

/// What was acknowledged, and what has come.
#[derive(Debug, Default)]
struct Book {
    /// Campaigns whose start was acknowledged.
    campaigns: Vec<String>,
    /// Recipient → how many messages have come.
    arrivals: BTreeMap<String, u32>,
    /// Contradictions that were seen while the answers came in.
    contradictions: Vec<String>,
}

/// The account.
pub(super) struct Messages {
    seed: u64,
    book: Arc<Mutex<Book>>,
    /// It answers until the end: messages leave while the work settles, too.
    provider: Mutex<Option<Provider>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Messages {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, book: Arc::default(), provider: Mutex::default() }
    }

    /// Makes the account that sends to the provider.
    async fn prepare(&self, caller: &Caller) {
        let book = self.book.clone();
        let provider = Provider::start(move |asked| {
            let recipient = asked.header("webhook-id").to_owned();
            *lock(&book).arrivals.entry(recipient).or_default() += 1;
            Reply::Json(200, json!({}))
        })
        .await;
        let account = json!({
            "id": ACCOUNT, "channel": "webhook",
            "settings": { "url": format!("{}/messages", provider.url()) },
            "credentials": { "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" },
            "pacing": { "limit": { "max": 1_000, "perMs": 1_000 } },
        });
        *lock(&self.provider) = Some(provider);
        let answer = caller
            .until_answered(Method::POST, "/api/accounts", |request| request.json(&account))
            .await;
        if answer.status != 201 && !(answer.status == 409 && answer.was_unknown) {
            self.contradiction(format!("the account: {} {}", answer.status, answer.body));
        }
    }

    fn contradiction(&self, text: String) {
        lock(&self.book).contradictions.push(text);
    }

    async fn sender(&self, caller: &Caller, sender: u64, stop: &CancellationToken) {
        let mut rng = Rng::with_seed(self.seed.wrapping_mul(41) + sender);
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            self.campaign(caller, &format!("{sender}-{number}")).await;
            tokio::time::sleep(PAUSE.mul_f64(rng.f64())).await;
        }
    }

    async fn campaign(&self, caller: &Caller, name: &str) {
        let one = |n: usize| json!({ "address": format!("{name}-{n}"), "message": "Doors open" });
        let recipients: Vec<Value> = (0..RECIPIENTS).map(one).collect();
        // Killed workers leave unknown messages behind: that is no reason to pause.
        let never = json!({ "inARow": 0, "failedPercent": 100, "bouncedPercent": 100 });
        let campaign = json!({
            "accountId": ACCOUNT, "name": name, "recipients": recipients, "autoPause": never,
        });
        // Without a key: one that is made and not acknowledged stays a draft. A key of a killed node is in flight for minutes.
        let answer = caller
            .until_answered(Method::POST, "/api/contracts", |request| request.json(&campaign))
            .await;
        let added = &answer.body["recipients"]["added"];
        if answer.status != 201 || added.as_u64() != Some(RECIPIENTS as u64) {
            return self
                .contradiction(format!("campaign {name}: {} {}", answer.status, answer.body));
        }
        let id = text(&answer.body["id"]);
        let start = format!("/api/contracts/{id}/start");
        let answer = caller.until_answered(Method::POST, &start, |request| request).await;
        // An earlier try may have started it, and it may have ended since.
        let has_ended = answer.was_unknown && answer.body["state"] == "completed";
        if answer.status != 200 && !has_ended {
            return self.contradiction(format!("start of {id}: {} {}", answer.status, answer.body));
        }
        lock(&self.book).campaigns.push(id);
    }
}

impl Account for Messages {
    fn work(self: Arc<Self>, site: Site, stop: CancellationToken) -> BoxFuture<'static, ()> {
        async move {
            let caller = Caller::new(&site);
            self.prepare(&caller).await;
            let senders = (0..SENDERS).map(|sender| self.sender(&caller, sender, &stop));
            futures::future::join_all(senders).await;
        }
        .boxed()
    }

    fn settled<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let running = "/api/contracts?state=running&limit=1";
            let running = Caller::new(site).get(running).await?;
            match &running["contracts"][0] {
                Value::Null => Ok(()),
                contract => Err(format!("a campaign is running: {contract}")),
            }
        }
        .boxed()
    }

    fn audit<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Audit> {
        async move {
            let campaigns = lock(&self.book).campaigns.clone();
            match observe(&Caller::new(site), &campaigns).await {
                Ok(observed) => compare(&lock(&self.book), &observed, RECIPIENTS),
                Err(reason) => Audit {
                    wrong: vec![format!("the recipients cannot be read: {reason}")],
                    ..Audit::default()
                },
            }
        }
        .boxed()
    }
}
