//! Check-in over HTTP, with the real binary: tickets are redeemed once, whatever happens.
//!
//! No PDFs are made: the tokens are signed here, with the server's secret.

mod blocks;
mod bundle;
mod crowd;
mod devices;
mod offline;
mod redeem;

use serde_json::{Value, json};
use stampede_store::{Config, Store, TicketFilter, TicketSecret};
use stampede_testkit::{App, Client, Postgres};

use crate::access::client;
use crate::{start, text};

/// The ticket secret of all servers here.
const SECRET: &str = "the-ticket-secret-of-these-tests-.long-enough";

/// A server with an event and its tickets.
struct Hall {
    app: App,
    store: Store,
    event: String,
    /// The texts of the QR codes, by number.
    tokens: Vec<String>,
    /// The ids of the tickets, by number.
    tickets: Vec<String>,
    _postgres: Option<Postgres>,
}

impl Hall {
    /// A server on SQLite.
    async fn open(tickets: usize) -> Self {
        Self::open_with(tickets, &[], None).await
    }

    async fn open_on_postgres(tickets: usize) -> Self {
        let postgres = Postgres::start().await;
        Self::open_with(tickets, &[("DATABASE_URL", &postgres.url())], Some(&postgres.url()))
            .await
            .keep(postgres)
    }

    fn keep(self, postgres: Postgres) -> Self {
        Self { _postgres: Some(postgres), ..self }
    }

    async fn open_with(tickets: usize, settings: &[(&str, &str)], database: Option<&str>) -> Self {
        let settings: Vec<(&str, &str)> = [("WORKER_MODE", "api"), ("TICKET_KEY_SECRET", SECRET)]
            .into_iter()
            .chain(settings.iter().copied())
            .collect();
        let app = start(&settings).await;
        let sqlite = format!("sqlite:{}/stampede.db", app.data_dir().display());
        let url = database.map_or(sqlite, str::to_owned);
        let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
        let store = store.with_ticket_secret(&TicketSecret::new(SECRET));
        let ann = client(&app, "organiser", "ann");
        let event = ann.post("/api/events", &json!({ "name": "Opening Night" })).await.expect(201);
        let mut hall = Self {
            app,
            store,
            event: text(&event["id"]),
            tokens: Vec::new(),
            tickets: Vec::new(),
            _postgres: None,
        };
        hall.sell(&hall.event.clone(), tickets).await;
        hall
    }

    /// Orders tickets and signs their tokens; returns those of this order.
    async fn sell(&mut self, event: &str, quantity: usize) -> Vec<String> {
        let order =
            json!({ "target": event, "quantity": quantity, "name": "Guest", "seat": "A-1" });
        let order = self.app.order(order).await;
        let batch = Some(text(&order["batchId"]).parse().unwrap());
        let filter = TicketFilter { batch, ..TicketFilter::default() };
        let mut tokens = Vec::new();
        for ticket in self.store.tickets(&filter, None, 10_000).await.unwrap() {
            tokens.push(self.store.token(&ticket).await.unwrap().to_string());
            if event == self.event {
                self.tickets.push(ticket.id.to_string());
            }
        }
        if event == self.event {
            self.tokens.extend(tokens.iter().cloned());
        }
        tokens
    }

    /// The organiser.
    fn ann(&self) -> Client {
        client(&self.app, "organiser", "ann")
    }

    /// A client with the key of a new device, and the device's id.
    async fn device(&self, name: &str) -> (Client, String) {
        let path = format!("/api/events/{}/devices", self.event);
        let made = self.app.admin().post(&path, &json!({ "name": name })).await.expect(201);
        (self.app.client(&text(&made["key"])), text(&made["device"]["id"]))
    }

    /// The log, oldest first.
    async fn log(&self) -> Vec<Value> {
        let path = format!("/api/events/{}/scans?limit=1000", self.event);
        let page = self.app.admin().get(&path).await.expect(200);
        let mut scans = page["scans"].as_array().unwrap().clone();
        scans.reverse();
        scans
    }

    async fn statistics(&self) -> Value {
        self.app.admin().get(&format!("/api/events/{}/checkin", self.event)).await.expect(200)
    }
}

/// Redeems a token; returns the answer.
async fn redeem(client: &Client, token: &str, nonce: &str) -> Value {
    scan(client, json!({ "token": token, "nonce": nonce })).await
}

async fn scan(client: &Client, body: Value) -> Value {
    client.post("/api/checkin/redeem", &body).await.expect(200)
}
