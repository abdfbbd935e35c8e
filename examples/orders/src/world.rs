//! The outside world of the example: a bank, a warehouse and a mail server, with books of their own. They
//! misbehave in ways that depend only on the order's number and on earlier calls.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A line of the report that must be zero: orders with more than one payment.
pub(super) const CHARGED_TWICE: &str = "orders charged twice";

/// A line of the report that must be zero: mails that were sent before all other steps were done.
pub(super) const TOO_EARLY: &str = "orders confirmed too early";

/// A line of the report that must be zero: messages above the rate limit of the warehouse.
pub(super) const TOO_MANY: &str = "messages beyond what the warehouse takes in a second";

/// As many messages as the warehouse takes in any second.
pub(super) const WAREHOUSE_MOST: u32 = 100;

/// The bank's answer to a charge.
pub(super) enum Charge {
    /// The bank has the money.
    Paid,
    /// The bank will never accept this card.
    Declined,
    /// The bank had an internal error; a retry may work.
    Failed,
    /// The bank has the money, but its answer was lost.
    AnswerLost,
    /// The bank does not answer.
    Down,
}

#[derive(Default)]
struct Books {
    bank_calls: u32,
    /// The keys of the payments of each order.
    charged: HashMap<u32, HashSet<String>>,
    failed_once: HashSet<u32>,
    reserved: HashSet<u32>,
    told_warehouse: HashSet<u32>,
    /// When the warehouse was told something.
    messages: Vec<Instant>,
    confirmed: HashSet<u32>,
    first_tries: HashSet<(&'static str, u32)>,
    counts: BTreeMap<String, u64>,
}

/// The bank, the warehouse and the mail server.
pub(super) struct World {
    books: Mutex<Books>,
    /// The calls, by number, that find the bank down.
    outage: std::ops::Range<u32>,
}

impl World {
    pub(super) fn new(orders: u32) -> Self {
        // In the middle of the run, and longer than the breaker's patience.
        let middle = orders / 2;
        Self { books: Mutex::default(), outage: middle..middle + 8 }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an order has anything in it.
    pub(super) fn has_items(order: u32) -> bool {
        !order.is_multiple_of(25)
    }

    /// Charges an order. Idempotent by key: a repeated call with the same key takes no money again.
    pub(super) fn charge(&self, order: u32, card: &str, key: &str) -> Charge {
        let mut books = self.books();
        books.bank_calls += 1;
        if self.outage.contains(&books.bank_calls) {
            books.count("calls of the bank while it was down");
            return Charge::Down;
        }
        if order.is_multiple_of(17) && card != "another" {
            books.count("cards declined");
            return Charge::Declined;
        }
        if order.is_multiple_of(10) && books.failed_once.insert(order) {
            books.count("times the bank stumbled");
            return Charge::Failed;
        }
        if !books.charged.entry(order).or_default().insert(key.to_owned()) {
            books.count("payments asked for again, and made once");
        } else if order.is_multiple_of(13) {
            return Charge::AnswerLost;
        }
        Charge::Paid
    }

    /// Reserves what was ordered.
    pub(super) fn reserve(&self, order: u32) {
        let mut books = self.books();
        if order.is_multiple_of(30) && books.first_tries.insert(("reserve", order)) {
            books.count("panics in the warehouse's driver");
            drop(books);
            panic!("the warehouse's driver has a bug with order {order}");
        }
        books.reserved.insert(order);
    }

    /// Tells the warehouse.
    pub(super) fn tell_warehouse(&self, order: u32) {
        let mut books = self.books();
        books.told_warehouse.insert(order);
        books.messages.push(Instant::now());
    }

    /// Whether the mail server hangs this time.
    pub(super) fn mail_hangs(&self, order: u32) -> bool {
        let mut books = self.books();
        let hangs = order.is_multiple_of(40) && books.first_tries.insert(("mail", order));
        if hangs {
            books.count("times the mail server hung");
        }
        hangs
    }

    /// Notes that the customer has the mail. All steps before it must be done.
    pub(super) fn confirm(&self, order: u32) {
        let mut books = self.books();
        let is_done = books.charged.contains_key(&order)
            && books.reserved.contains(&order)
            && books.told_warehouse.contains(&order);
        if !is_done {
            books.count(TOO_EARLY);
        }
        books.confirmed.insert(order);
    }

    /// Orders whose customers have their mail.
    pub(super) fn confirmed(&self) -> usize {
        self.books().confirmed.len()
    }

    /// Notes something for the report.
    pub(super) fn note(&self, what: &str) {
        self.books().count(what);
    }

    pub(super) fn note_retry(&self, reason: &str) {
        let what = reason.split(" with order").next().unwrap_or(reason);
        self.books().count(&format!("attempts tried again: {what}"));
    }

    /// The books, as lines of a report.
    pub(super) fn report(&self) -> BTreeMap<String, u64> {
        let books = self.books();
        let mut lines = books.counts.clone();
        lines.insert("orders charged".to_owned(), books.charged.len() as u64);
        let twice = books.charged.values().filter(|payments| payments.len() > 1).count();
        lines.insert(CHARGED_TWICE.to_owned(), twice as u64);
        lines.entry(TOO_EARLY.to_owned()).or_default();
        lines.insert(TOO_MANY.to_owned(), books.messages_too_many());
        lines.insert("orders reserved".to_owned(), books.reserved.len() as u64);
        lines
    }
}

impl Books {
    /// Messages above the rate limit in the second with the most messages.
    fn messages_too_many(&self) -> u64 {
        let within = |from: &Instant| {
            let second = *from..*from + Duration::from_secs(1);
            self.messages.iter().filter(|at| second.contains(*at)).count() as u64
        };
        let most = self.messages.iter().map(within).max().unwrap_or(0);
        most.saturating_sub(WAREHOUSE_MOST.into())
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }
}
