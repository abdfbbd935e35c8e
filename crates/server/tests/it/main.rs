//! The whole of Stampede: the real binary, real worker processes, real servers.

// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used)]

mod access;
mod announcements;
mod audit;
mod bad_input;
mod batch_files;
mod batch_verbs;
mod bodies;
mod campaigns;
mod checkin;
mod cluster;
mod commands;
mod crashes;
mod description;
mod engine;
mod engine_address;
mod failing_template;
mod faults;
mod full_disk;
mod guide;
mod hostile_bodies;
mod jwt;
mod keys;
mod layers;
mod links;
mod lists;
mod live;
mod manners;
mod metrics;
mod outside_readers;
mod pdf_files;
mod poison;
mod preflight;
mod qr_codes;
mod queues;
mod ranges;
mod role_matrix;
mod routes;
mod sandbox;
mod scopes;
mod slow_templates;
mod start;
mod sticker_bot;
mod stickers;
mod template_commands;
mod templates;
mod ticket_secret;
mod tickets;
mod uploads;
mod verify;
mod versions;
mod webhooks;
mod whole_way;

use std::time::Duration;

use serde_json::{Value, json};
use stampede_model::{KeyRing, Token};
use stampede_testkit::{App, eventually, pdf_codes};

/// The binary under test.
const STAMPEDE: &str = env!("CARGO_BIN_EXE_stampede");

/// How long an order may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

async fn start(settings: &[(&str, &str)]) -> App {
    App::start(STAMPEDE, settings).await
}

/// Creates an event as the admin; returns its id.
async fn create_event(app: &App) -> String {
    let event = json!({ "name": "Opening Night", "location": "Main Hall", "currency": "EUR" });
    let event = app.admin().post("/api/events", &event).await.expect(201);
    text(&event["id"])
}

/// Waits until a batch has no pending ticket; returns its last state.
async fn batch_ended(app: &App, batch_id: &str) -> Value {
    eventually(PATIENCE, || async {
        let answer = app.admin().try_get(&format!("/api/batches/{batch_id}")).await?;
        match answer.body["status"].as_str() {
            Some("completed" | "completed_with_errors") => Ok(answer.body),
            _ => Err(format!("{} {}", answer.status, answer.body)),
        }
    })
    .await
}

/// All tickets of a batch, in order.
async fn tickets_of(app: &App, batch_id: &str) -> Vec<Value> {
    let path = format!("/api/tickets?batch={batch_id}&limit=1000");
    let page = app.admin().get(&path).await.expect(200);
    page["tickets"].as_array().unwrap().clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// The public keys of an event, as a scanner has them.
async fn key_ring(app: &App, event: &str) -> KeyRing {
    let answer = app.admin().get(&format!("/api/events/{event}/keys")).await;
    KeyRing::from_json(std::str::from_utf8(&answer.bytes).unwrap()).unwrap()
}

/// The one QR code of a PDF proves exactly this ticket.
fn assert_proves(pdf: &[u8], keys: &KeyRing, ticket: &Value) {
    let [code] = pdf_codes(pdf).try_into().expect("one QR code");
    let claims = code.parse::<Token>().and_then(|token| token.verify(keys)).unwrap();
    assert_eq!(
        (json!(claims.serial), json!(claims.event)),
        (ticket["number"].clone(), ticket["target"].clone())
    );
}

/// Every ticket of the batch is completed, counted once, and its PDF can be downloaded.
async fn assert_all_ready(app: &App, batch_id: &str, total: u64) {
    let batch = batch_ended(app, batch_id).await;
    assert_eq!(
        (&batch["total"], &batch["completed"], &batch["failed"]),
        (&json!(total), &json!(total), &json!(0)),
        "{batch}"
    );
    let tickets = tickets_of(app, batch_id).await;
    assert_eq!(tickets.len() as u64, total);
    for ticket in &tickets {
        assert_eq!(ticket["status"], "completed", "{ticket}");
        let file =
            app.data_dir().join("public").join(text(&ticket["image"]).trim_start_matches('/'));
        assert!(
            std::fs::read(&file).is_ok_and(|pdf| pdf.starts_with(b"%PDF")),
            "{}",
            file.display()
        );
    }
}
