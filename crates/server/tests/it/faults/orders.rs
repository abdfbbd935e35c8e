//! The account of orders and tickets: orders with an `Idempotency-Key`, edits, voids and deletions over HTTP.
//!
//! Every request is repeated until it is answered, so at the end nothing is unknown. Counted:
//!
//! - lost: an order or ticket that was acknowledged and is not there; a change that was acknowledged and is not there;
//!   a ticket without its PDF
//! - doubled: a ticket that no answer named, an id or a number that two tickets have
//! - wrong: a ticket that has failed or is still pending, counters that do not match, a PDF that is damaged

mod reading;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::reading::{check_pdf, observe};
use super::caller::Caller;
use super::ledger::{Account, Audit, Site};
use super::observed::compare;
use crate::text;

/// Clients that order and change tickets at the same time.
const CLIENTS: u64 = 4;
/// Longest pause between two requests of a client.
const PAUSE: Duration = Duration::from_millis(400);
/// PDFs that are checked with qpdf: the others are compared byte for byte with the file.
const CHECKED_WELL: usize = 25;

/// What was acknowledged last about a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is valid, for the holder of this name.
    Valid {
        name: String,
    },
    Void,
    Deleted,
}

/// What was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) event: String,
    /// Batch → its tickets.
    pub(super) orders: BTreeMap<String, Vec<String>>,
    pub(super) tickets: BTreeMap<String, Fate>,
    /// Contradictions that were seen while the answers came in.
    pub(super) contradictions: Vec<String>,
    pub(super) edits: usize,
    /// Requests that succeeded after a try without an answer.
    pub(super) settled_by_retry: usize,
}

/// The account.
pub(super) struct Orders {
    seed: u64,
    book: Mutex<Book>,
}

impl Orders {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, book: Mutex::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contradiction(&self, text: String) {
        self.book().contradictions.push(text);
    }

    async fn client(&self, caller: &Caller, client: u64, stop: &CancellationToken) {
        let mut rng = Rng::with_seed(self.seed.wrapping_mul(31) + client);
        let mut mine: Vec<String> = Vec::new();
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            match rng.u32(..100) {
                0..65 => {
                    mine.extend(self.order(caller, &mut rng, &format!("{client}-{number}")).await)
                }
                // The newest are still being made: the more interesting ones to change.
                choice if !mine.is_empty() => {
                    let ticket = mine.len() - 1 - rng.usize(..mine.len().min(6));
                    match choice {
                        65..78 => {
                            self.rename(caller, &mine[ticket], &format!("Renamed {number}")).await
                        }
                        78..89 => self.void(caller, &mine.swap_remove(ticket)).await,
                        _ => self.delete(caller, &mine.swap_remove(ticket)).await,
                    }
                }
                _ => {}
            }
            tokio::time::sleep(PAUSE.mul_f64(rng.f64())).await;
        }
    }

    /// Places an order, sometimes a second time; returns its tickets.
    async fn order(&self, caller: &Caller, rng: &mut Rng, name: &str) -> Vec<String> {
        let (event, quantity) = (self.book().event.clone(), rng.usize(1..6));
        let holders: Vec<Value> = (0..quantity)
            .map(|index| json!({ "name": format!("Holder {name}-{index}") }))
            .collect();
        let order = json!({ "target": event, "name": "Group", "holders": holders });
        let send = || {
            caller.until_answered(Method::POST, "/api/tickets", |request| {
                request.header("Idempotency-Key", format!("order-{name}")).json(&order)
            })
        };
        let answer = send().await;
        if answer.status != 200 {
            self.contradiction(format!(
                "order {name} was refused: {} {}",
                answer.status, answer.body
            ));
            return Vec::new();
        }
        let tickets = ids(&answer.body["tickets"]);
        if rng.u32(..8) == 0 {
            let again = send().await;
            if again.body["batchId"] != answer.body["batchId"]
                || ids(&again.body["tickets"]) != tickets
            {
                self.contradiction(format!(
                    "order {name} was answered twice: {} and {}",
                    answer.body, again.body
                ));
            }
        }
        self.acknowledge(
            &text(&answer.body["batchId"]),
            &tickets,
            name,
            quantity,
            answer.was_unknown,
        );
        tickets
    }

    fn acknowledge(
        &self,
        batch: &str,
        tickets: &[String],
        name: &str,
        quantity: usize,
        was_unknown: bool,
    ) {
        let mut book = self.book();
        if tickets.len() != quantity {
            book.contradictions
                .push(format!("order {name} of {quantity} has {} tickets", tickets.len()));
        }
        for (index, ticket) in tickets.iter().enumerate() {
            let fate = Fate::Valid { name: format!("Holder {name}-{index}") };
            if book.tickets.insert(ticket.clone(), fate).is_some() {
                book.contradictions.push(format!("ticket {ticket} was given out twice"));
            }
        }
        if book.orders.insert(batch.to_owned(), tickets.to_vec()).is_some() {
            book.contradictions.push(format!("batch {batch} was given out twice"));
        }
        book.settled_by_retry += usize::from(was_unknown);
    }

    async fn rename(&self, caller: &Caller, ticket: &str, name: &str) {
        let body = json!({ "name": name });
        if self.change(caller, Method::PATCH, ticket, Some(body), &[200]).await {
            self.book().tickets.insert(ticket.to_owned(), Fate::Valid { name: name.to_owned() });
        }
    }

    async fn void(&self, caller: &Caller, ticket: &str) {
        if self
            .change(caller, Method::PATCH, ticket, Some(json!({ "status": "void" })), &[200])
            .await
        {
            self.book().tickets.insert(ticket.to_owned(), Fate::Void);
        }
    }

    async fn delete(&self, caller: &Caller, ticket: &str) {
        // 404: a try without an answer had deleted it.
        if self.change(caller, Method::DELETE, ticket, None, &[204, 404]).await {
            self.book().tickets.insert(ticket.to_owned(), Fate::Deleted);
        }
    }

    async fn change(
        &self,
        caller: &Caller,
        method: Method,
        ticket: &str,
        body: Option<Value>,
        fine: &[u16],
    ) -> bool {
        let path = format!("/api/tickets/{ticket}");
        let answer = caller
            .until_answered(method.clone(), &path, |request| match &body {
                Some(body) => request.json(body),
                None => request,
            })
            .await;
        let acknowledged =
            fine.contains(&answer.status) && (answer.status != 404 || answer.was_unknown);
        let mut book = self.book();
        if acknowledged {
            book.edits += 1;
            book.settled_by_retry += usize::from(answer.was_unknown);
        } else {
            book.contradictions
                .push(format!("{method} {path} was refused: {} {}", answer.status, answer.body));
        }
        acknowledged
    }
}

impl Account for Orders {
    fn work(self: Arc<Self>, site: Site, stop: CancellationToken) -> BoxFuture<'static, ()> {
        async move {
            let caller = Caller::new(&site);
            let event =
                json!({ "name": "Fault Campaign", "location": "Main Hall", "currency": "EUR" });
            let event = caller
                .until_answered(Method::POST, "/api/events", |request| request.json(&event))
                .await;
            self.book().event = text(&event.body["id"]);
            let clients = (0..CLIENTS).map(|client| self.client(&caller, client, &stop));
            futures::future::join_all(clients).await;
        }
        .boxed()
    }

    fn settled<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let event = self.book().event.clone();
            let pending = Caller::new(site)
                .get(&format!("/api/tickets?target={event}&status=pending&limit=1000"))
                .await?;
            match pending["tickets"].as_array().map(Vec::len) {
                Some(0) => Ok(()),
                Some(count) => {
                    Err(format!("{count} tickets are pending, such as {}", pending["tickets"][0]))
                }
                None => Err(pending.to_string()),
            }
        }
        .boxed()
    }

    fn audit<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Audit> {
        async move {
            let caller = Caller::new(site);
            let (event, batches) = {
                let book = self.book();
                (book.event.clone(), book.orders.keys().cloned().collect::<Vec<String>>())
            };
            let observed = observe(&caller, &event, batches).await;
            let mut audit = match observed {
                Ok(observed) => compare(&self.book(), &observed),
                Err(reason) => Audit {
                    wrong: vec![format!("the tickets cannot be read: {reason}")],
                    ..Audit::default()
                },
            };
            let valid = self
                .book()
                .tickets
                .clone()
                .into_iter()
                .filter(|(_, fate)| matches!(fate, Fate::Valid { .. }));
            let valid: Vec<String> = valid.map(|(ticket, _)| ticket).collect();
            let pdfs = valid
                .into_iter()
                .enumerate()
                .map(|(number, ticket)| check_pdf(&caller, site, ticket, number < CHECKED_WELL));
            let mistakes =
                stream::iter(pdfs).buffer_unordered(4).filter_map(async |mistake| mistake.err());
            audit.lost.extend(mistakes.collect::<Vec<String>>().await);
            audit
        }
        .boxed()
    }
}

/// The ids of tickets in an answer.
pub(super) fn ids(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|id| id.as_str().map_or_else(|| text(&id["id"]), str::to_owned))
        .collect()
}
