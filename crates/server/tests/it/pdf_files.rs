//! A PDF that is missing, short or stale is noticed when it is asked for, and made anew.

use serde_json::json;
use stampede_testkit::{App, eventually, pdf_text};

use crate::{PATIENCE, batch_ended, create_event, start, text};

struct OneTicket {
    app: App,
    event: String,
    path: String,
    file: std::path::PathBuf,
    pdf: Vec<u8>,
}

async fn one_ticket() -> OneTicket {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let id = text(&order["tickets"][0]);
    let path = format!("/api/tickets/{id}/pdf");
    let file = app.data_dir().join(format!("public/tickets/ticket-{id}.pdf"));
    let pdf = app.admin().get(&path).await.bytes;
    OneTicket { app, event, path, file, pdf }
}

impl OneTicket {
    async fn download(&self) -> Vec<u8> {
        eventually(PATIENCE, || async {
            let answer = self.app.admin().get(&self.path).await;
            match answer.status {
                200 => Ok(answer.bytes),
                409 => {
                    assert!(answer.headers.contains_key("retry-after"));
                    Err(answer.body.to_string())
                }
                status => panic!("{status} {}", answer.body),
            }
        })
        .await
    }
}

#[tokio::test]
async fn a_missing_file_is_made_again_byte_for_byte() {
    let ticket = one_ticket().await;
    std::fs::remove_file(&ticket.file).unwrap();
    assert_eq!(ticket.download().await, ticket.pdf);
    assert_eq!(std::fs::read(&ticket.file).unwrap(), ticket.pdf);
}

#[tokio::test]
async fn a_short_file_is_made_again() {
    let ticket = one_ticket().await;
    std::fs::write(&ticket.file, &ticket.pdf[..100]).unwrap();
    assert_eq!(ticket.download().await, ticket.pdf);
}

#[tokio::test]
async fn a_file_of_the_right_size_with_other_content_is_made_again() {
    let ticket = one_ticket().await;
    std::fs::write(&ticket.file, vec![0; ticket.pdf.len()]).unwrap();
    assert_eq!(ticket.download().await, ticket.pdf);
}

#[tokio::test]
async fn a_changed_event_changes_the_pdf() {
    let ticket = one_ticket().await;
    let path = format!("/api/events/{}", ticket.event);
    ticket.app.admin().patch(&path, &json!({ "location": "Open Air Stage" })).await.expect(200);
    let printed = pdf_text(&ticket.download().await);
    assert!(printed.contains("Open Air Stage") && !printed.contains("Main Hall"), "{printed}");
}

#[tokio::test]
async fn a_pdf_that_is_not_ready_says_when_to_ask_again() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    let answer = app.admin().get(&format!("/api/tickets/{}/pdf", text(&order["tickets"][0]))).await;
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    answer.expect(409);
}

#[tokio::test]
async fn a_client_that_has_the_pdf_is_not_sent_it_again() {
    let ticket = one_ticket().await;
    let etag = ticket.app.admin().get(&ticket.path).await.headers["etag"].clone();
    let request = ticket.app.admin().request(reqwest::Method::GET, &ticket.path);
    let answer = stampede_testkit::send(request.header("If-None-Match", etag)).await;
    assert_eq!((answer.status, answer.bytes.len()), (304, 0));
}
