//! What happens while an upload arrives and is read: keys are revoked, events change, clients hang up.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use stampede_testkit::{App, eventually, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::arrival::open_files;
use super::{orders, path, upload};
use crate::access::client;
use crate::{create_event, start, text};

const PATIENCE: Duration = Duration::from_secs(30);

/// Begins an upload of a file, of which `body` is the beginning.
async fn begin(app: &App, path: &str, key: &str, length: usize, body: &str) -> TcpStream {
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nConnection: close\r\n\
         Content-Type: text/csv\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn status(mut stream: TcpStream) -> u16 {
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer));
    read.await.expect("an answer").unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn files_open(app: &App, wanted: usize) {
    eventually(PATIENCE, || async {
        match open_files(app) {
            open if open >= wanted => Ok(()),
            open => Err(format!("{open} files are open")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_revoked_while_its_upload_arrives_orders_nothing() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let key = json!({ "name": "box office", "role": "admin" });
    let made = app.admin().post("/api/keys", &key).await.expect(201);
    let event = create_event(&app).await;
    let file = "name,price\nAnn,49.90\n";
    let mut stream = begin(&app, &path(&event), &text(&made["secret"]), file.len() + 4, file).await;
    files_open(&app, 1).await;
    app.admin().delete(&format!("/api/keys/{}", text(&made["id"]))).await.expect(204);
    stream.write_all(b"Bob,").await.unwrap();
    assert_eq!(status(stream).await, 401);
    assert_eq!(orders(&app, &event).await, 0);
}

#[tokio::test]
async fn prices_are_those_of_the_currency_that_the_event_has_when_the_file_has_arrived() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let file = "name,price\nAnn,49.90\n";
    let mut stream =
        begin(&app, &path(&event), stampede_testkit::ADMIN_KEY, file.len() + 1, file).await;
    files_open(&app, 1).await;
    let yen = json!({ "currency": "JPY" });
    app.admin().patch(&format!("/api/events/{event}"), &yen).await.expect(200);
    stream.write_all(b"\n").await.unwrap();
    assert_eq!(status(stream).await, 422, "there are no fractions of a yen");
    assert_eq!(orders(&app, &event).await, 0);
}

#[tokio::test]
async fn a_client_that_hangs_up_keeps_its_place_until_its_file_is_read() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let ann = client(&app, "organiser", "ann");
    let own = ann.post("/api/events", &json!({ "name": "Own" })).await.expect(201);
    let path_of_ann = format!("{}?dryRun=1", path(&text(&own["id"])));
    let file = format!("name\n{}", "Ann Example\n".repeat(100_000));
    for _ in 0..2 {
        let request = ann.request(Method::POST, &path_of_ann).header("Content-Type", "text/csv");
        let sending = tokio::spawn(send(request.body(file.clone())));
        let open = open_files(&app);
        // The upload, and the guests that are read from it.
        files_open(&app, open + 2).await;
        sending.abort();
    }
    let refused = upload(&ann, &path_of_ann, "text/csv", "name\nBob\n").await;
    refused.expect(429);
    upload(&app.admin(), &path(&event), "text/csv", "name\nBob\n").await.expect(202);
    eventually(Duration::from_secs(60), || async {
        match upload(&ann, &path_of_ann, "text/csv", "name\nBob\n").await.status {
            200 => Ok(()),
            status => Err(format!("{status}")),
        }
    })
    .await;
}

#[tokio::test]
async fn the_same_bytes_in_another_encoding_are_another_order_and_jobs_name_the_request() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let send_as = async |charset: &str| {
        let request = app.admin().request(Method::POST, &path(&event));
        let request = request.header("Content-Type", format!("text/csv; charset={charset}"));
        let request = request.header("Idempotency-Key", "guests-1").header("X-Request-Id", "up-1");
        send(request.body(super::CYRILLIC)).await
    };
    let ordered = send_as("windows-1251").await.expect(202);
    assert_eq!(send_as("cp1251").await.expect(202)["batchId"], ordered["batchId"]);
    let reused = send_as("koi8-r").await;
    assert!([409, 422].contains(&reused.status), "{}", reused.body);
    let batch = text(&ordered["batchId"]);
    let ticket = text(&crate::tickets_of(&app, &batch).await[0]["id"]);
    eventually(PATIENCE, || async {
        let job = app.admin().get(&format!("/api/queues/tickets/jobs/{ticket}")).await;
        match job.body["data"]["requestId"] == "up-1" {
            true => Ok(()),
            false => Err(job.body.to_string()),
        }
    })
    .await;
}
