//! "Send everybody their ticket": an order, one mail for each of its guests with the right PDF, and a worker that is killed meanwhile.
//! Of the mails of which nobody knows whether they came, a person looks into the mailboxes, and sends those that did not come again.
//!
//! `STAMPEDE_TICKET_MAILS` is the number of tickets (40).

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stampede_testkit::{App, Client, Mail, MailPart, MailServer, kill, pdf_text};

use super::recorder::limited;
use super::{HERE, completed, ledger, number, organiser, size, text, until, verb};
use crate::{batch_ended, start};

/// Mails in a second.
const RATE: usize = 20;
/// Most connections to the mail server, and so most mails that are on their way at once.
const CONNECTIONS: u64 = 4;

/// Orders tickets for guests, and makes them; returns the order.
async fn order(app: &App, ann: &Client, guests: usize) -> String {
    let event = json!({ "name": "Opening Night", "location": "Main Hall" });
    let event = ann.post("/api/events", &event).await.expect(201);
    let holders: Vec<Value> =
        (1..=guests).map(|n| json!({ "name": name(n), "email": address(n) })).collect();
    let order = json!({ "target": event["id"], "holders": holders });
    let order = ann.post("/api/tickets", &order).await.expect(200);
    let batch = text(&order["batchId"]);
    assert_eq!(batch_ended(app, &batch).await["completed"], guests);
    batch
}

/// The name of a guest. None of them is a part of another one.
fn name(guest: usize) -> String {
    format!("Guest {guest:06}")
}

fn address(guest: usize) -> String {
    format!("guest-{guest:06}@example.org")
}

/// Makes a campaign that mails their tickets to the guests of an order; returns its path.
async fn campaign_of_guests(ann: &Client, batch: &str, guests: usize) -> String {
    let content = json!({
        "subject": "Your ticket, {{ name }}", "text": "Hello {{ name }}, here is your ticket.", "attachTicket": true,
    });
    let body = json!({ "accountId": "mail", "name": "Tickets", "content": content });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    let of_batch = json!({ "batchId": batch });
    let report = ann.post(&format!("{path}/guests"), &of_batch).await.expect(200);
    assert_eq!(report["added"], guests, "{report}");
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guest_gets_one_mail_with_their_ticket_though_a_worker_is_killed() {
    let guests = size("STAMPEDE_TICKET_MAILS", 40);
    let server = MailServer::start().await;
    let app = start(&[HERE, ("WORKER_COUNT", "2")]).await;
    let ann = organiser(&app, "ann");
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
    let account = json!({
        "id": "mail", "channel": "smtp", "settings": { "url": url, "from": "Night <tickets@example.org>" },
        "pacing": limited(RATE, Duration::from_secs(1)),
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let batch = order(&app, &ann, guests).await;
    let path = campaign_of_guests(&ann, &batch, guests).await;
    verb(&ann, &path, "start").await.expect(200);
    until(&ann, &path, |contract| number(contract, "sent") as usize >= guests / 3).await;
    kill(app.workers()[0]);
    let ended = completed(&ann, &path).await;
    let (sent, unknown) = (number(&ended, "sent"), number(&ended, "unknown"));
    println!("{sent} sent, {unknown} unknown");
    assert_eq!((sent + unknown) as usize, guests, "{ended}");
    assert!(unknown <= CONNECTIONS, "more are unknown than were on their way: {ended}");

    let got = assert_right_tickets(&ann, &server.mails()).await;
    for row in ledger(&ann, &path).await {
        let has_come = got.contains(&text(&row["address"]));
        assert!(has_come || row["status"] == "unknown", "no mail came: {row}");
    }
    if settle(&ann, &path, &got).await > 0 {
        verb(&ann, &path, "resume").await.expect(200);
    }
    let ended = completed(&ann, &path).await;
    assert_eq!(
        (number(&ended, "sent") as usize, number(&ended, "unknown")),
        (guests, 0),
        "{ended}"
    );
    // Those that were sent again had not come, so nobody has got two.
    let got = assert_right_tickets(&ann, &server.mails()).await;
    assert_eq!(got, (1..=guests).map(address).collect());
}

/// Settles each unknown recipient by whether a mail has come; returns how many are sent again.
async fn settle(ann: &Client, path: &str, got: &BTreeSet<String>) -> usize {
    let rows = ledger(ann, path).await.into_iter().filter(|row| row["status"] == "unknown");
    let (come, not_come): (Vec<Value>, Vec<Value>) =
        rows.partition(|row| got.contains(&text(&row["address"])));
    for (action, rows) in [("sent", &come), ("resend", &not_come)] {
        if !rows.is_empty() {
            let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
            let body = json!({ "action": action, "ids": ids });
            let settled = ann.post(&format!("{path}/unknown"), &body).await.expect(200);
            assert_eq!(settled["recipients"], rows.len(), "{settled}");
        }
    }
    not_come.len()
}

/// Every mail has one recipient, who got no other one, and the PDF of the recipient's own ticket. Returns the recipients.
async fn assert_right_tickets(ann: &Client, mails: &[Mail]) -> BTreeSet<String> {
    let mut got = BTreeSet::new();
    for mail in mails {
        let [to] = mail.to.as_slice() else { panic!("{:?}", mail.to) };
        assert!(got.insert(to.clone()), "{to} got two mails");
        let is_pdf = |part: &&MailPart| part.kind == "application/pdf";
        let pdfs: Vec<&MailPart> = mail.parts.iter().filter(is_pdf).collect();
        let [pdf] = pdfs.as_slice() else { panic!("{} PDFs", pdfs.len()) };
        let file = pdf.name.as_deref().unwrap_or_default();
        let ticket = file.strip_prefix("ticket-").and_then(|name| name.strip_suffix(".pdf"));
        let path = format!("/api/tickets/{}", ticket.unwrap_or_else(|| panic!("{file}")));
        let ticket = ann.get(&path).await.expect(200);
        assert_eq!(ticket["email"], json!(to), "the ticket of somebody else: {ticket}");
        let bytes = STANDARD.decode(&pdf.bytes).unwrap();
        assert!(ann.get(&format!("{path}/pdf")).await.bytes == bytes, "{path} is another file");
        let printed = pdf_text(&bytes);
        assert!(printed.contains(&text(&ticket["name"])), "{printed}");
    }
    got
}
