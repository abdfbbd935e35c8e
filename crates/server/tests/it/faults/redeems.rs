//! The account of check-ins: doors that redeem the same tickets over HTTP, and undo some of the entries.
//!
//! Every request is repeated until it is answered, a scan with the same nonce, so at the end nothing is unknown. Counted:
//!
//! - lost: a scan or an undo that was acknowledged and is not in the log
//! - doubled: a scan that no answer named, an id that two nonces were given, a ticket whose guest was let in twice
//! - wrong: a scan whose result is not the acknowledged one, a refusal as "already redeemed" of a ticket that nobody has
//!   redeemed, figures that do not match the log

mod audit;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::audit::{compare, observe};
use super::caller::{Answer, Caller};
use super::ledger::{Account, Audit, Site};
use super::orders::ids;
use crate::text;

/// Doors that scan at the same time.
const DOORS: u64 = 4;
/// Tickets in an order.
const ORDER: usize = 20;
/// Longest pause between two scans of a door.
const PAUSE: Duration = Duration::from_millis(250);

/// A scan as it was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Acknowledged {
    ticket: String,
    result: String,
    undone: bool,
}

/// What was acknowledged.
#[derive(Debug, Default)]
struct Book {
    event: String,
    tickets: Vec<String>,
    /// Scan → what its answer said.
    scans: BTreeMap<String, Acknowledged>,
    /// Contradictions that were seen while the answers came in.
    contradictions: Vec<String>,
}

/// The account.
pub(super) struct Redeems {
    seed: u64,
    book: Mutex<Book>,
}

impl Redeems {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, book: Mutex::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contradiction(&self, text: String) {
        self.book().contradictions.push(text);
    }

    async fn door(&self, caller: &Caller, door: u64, stop: &CancellationToken) {
        let mut rng = Rng::with_seed(self.seed.wrapping_mul(37) + door);
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            // One new ticket for four scans: most tickets are shown more than once.
            if number % (4 * ORDER) == 0 {
                self.order(caller, &format!("{door}-{number}")).await;
            }
            if let Some(ticket) = self.some_ticket(&mut rng) {
                self.scan(caller, &mut rng, &ticket, &format!("{door}-{number}")).await;
            }
            tokio::time::sleep(PAUSE.mul_f64(rng.f64())).await;
        }
    }

    /// One of the newest tickets: all doors see them.
    fn some_ticket(&self, rng: &mut Rng) -> Option<String> {
        let book = self.book();
        let newest = book.tickets.iter().rev().take(2 * ORDER * DOORS as usize);
        rng.choice(newest.collect::<Vec<_>>()).cloned()
    }

    async fn order(&self, caller: &Caller, name: &str) {
        let order = json!({ "target": self.book().event, "name": "Guest", "quantity": ORDER });
        let answer = caller
            .until_answered(Method::POST, "/api/tickets", |request| {
                request.header("Idempotency-Key", format!("guests-{name}")).json(&order)
            })
            .await;
        let tickets = ids(&answer.body["tickets"]);
        if tickets.len() != ORDER {
            self.contradiction(format!("order {name}: {} {}", answer.status, answer.body));
        }
        self.book().tickets.extend(tickets);
    }

    /// Redeems a ticket, sometimes a second time with the same nonce; takes some entries back.
    async fn scan(&self, caller: &Caller, rng: &mut Rng, ticket: &str, nonce: &str) {
        let answer = redeem(caller, ticket, nonce).await;
        let (scan, result) = (text(&answer.body["scan"]), text(&answer.body["result"]));
        if answer.status != 200 || scan.is_empty() {
            self.contradiction(format!("scan {nonce}: {} {}", answer.status, answer.body));
            return;
        }
        if rng.u32(..8) == 0 {
            let again = redeem(caller, ticket, nonce).await;
            if (text(&again.body["scan"]), text(&again.body["result"]))
                != (scan.clone(), result.clone())
            {
                self.contradiction(format!(
                    "scan {nonce} was answered twice: {} and {}",
                    answer.body, again.body
                ));
            }
        }
        let undone = result == "ok" && rng.u32(..6) == 0 && self.undo(caller, &scan).await;
        let acknowledged = Acknowledged { ticket: ticket.to_owned(), result, undone };
        if self.book().scans.insert(scan.clone(), acknowledged).is_some() {
            self.contradiction(format!("scan {scan} was given out twice"));
        }
    }

    async fn undo(&self, caller: &Caller, scan: &str) -> bool {
        let body = json!({ "scan": scan });
        let answer = caller
            .until_answered(Method::POST, "/api/checkin/undo", |request| request.json(&body))
            .await;
        if answer.status != 200 {
            self.contradiction(format!("undo of {scan}: {} {}", answer.status, answer.body));
        }
        answer.status == 200
    }
}

async fn redeem(caller: &Caller, ticket: &str, nonce: &str) -> Answer {
    let body = json!({ "ticketId": ticket, "nonce": nonce });
    caller.until_answered(Method::POST, "/api/checkin/redeem", |request| request.json(&body)).await
}

impl Account for Redeems {
    fn work(self: Arc<Self>, site: Site, stop: CancellationToken) -> BoxFuture<'static, ()> {
        async move {
            let caller = Caller::new(&site);
            let event = json!({ "name": "Fault Campaign, Doors" });
            let event = caller
                .until_answered(Method::POST, "/api/events", |request| request.json(&event))
                .await;
            self.book().event = text(&event.body["id"]);
            let doors = (0..DOORS).map(|door| self.door(&caller, door, &stop));
            futures::future::join_all(doors).await;
        }
        .boxed()
    }

    fn settled<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let event = self.book().event.clone();
            let path = format!("/api/tickets?target={event}&status=pending&limit=1");
            let pending = Caller::new(site).get(&path).await?;
            match &pending["tickets"][0] {
                Value::Null => Ok(()),
                ticket => Err(format!("a guest's ticket is pending: {ticket}")),
            }
        }
        .boxed()
    }

    fn audit<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Audit> {
        async move {
            let event = self.book().event.clone();
            match observe(&Caller::new(site), &event).await {
                Ok(observed) => compare(&self.book(), &observed),
                Err(reason) => Audit {
                    wrong: vec![format!("the scans cannot be read: {reason}")],
                    ..Audit::default()
                },
            }
        }
        .boxed()
    }
}
