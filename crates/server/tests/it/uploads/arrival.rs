//! Uploads that do not arrive: slow, half closed, broken off, too large. Others are served meanwhile, and nothing is left.

use std::time::{Duration, Instant};

use stampede_testkit::{ADMIN_KEY, App, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{orders, path, upload};
use crate::{create_event, start};

/// Begins an upload that announces a thousand bytes.
async fn begin(app: &App, event: &str) -> TcpStream {
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {ADMIN_KEY}\r\nConnection: close\r\n\
         Content-Type: text/csv\r\nContent-Length: 1000\r\n\r\nname\nAnn\n",
        path(event)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn status(mut stream: TcpStream) -> u16 {
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_string(&mut answer));
    read.await.expect("an answer").unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Files that the server has open in the folder of uploads.
pub(super) fn open_files(app: &App) -> usize {
    let folder = app.data_dir().join("uploads");
    let files = std::fs::read_dir(format!("/proc/{}/fd", app.pid())).unwrap();
    let paths = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    paths.filter(|path| path.starts_with(&folder)).count()
}

/// Waits until so many uploads are being received.
async fn until_open(app: &App, count: usize) {
    eventually(Duration::from_secs(20), || async {
        match open_files(app) {
            open if open == count => Ok(()),
            open => Err(format!("{open} files are open")),
        }
    })
    .await
}

#[tokio::test]
async fn an_upload_that_stops_is_ended_and_leaves_nothing_behind() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let stalled = begin(&app, &event).await;
    until_open(&app, 1).await;
    let mut half_closed = begin(&app, &event).await;
    until_open(&app, 2).await;
    // One user may upload two files at a time.
    assert_eq!(status(begin(&app, &event).await).await, 429);
    let begun = Instant::now();
    let page = app.admin().get("/api/events").await;
    assert!(page.status == 200 && begun.elapsed() < Duration::from_secs(5), "others are served");
    half_closed.shutdown().await.unwrap();
    assert_eq!(status(half_closed).await, 400);
    until_open(&app, 1).await;
    let gone = begin(&app, &event).await;
    until_open(&app, 2).await;
    drop(gone);
    assert_eq!(status(stalled).await, 408);
    until_open(&app, 0).await;
    assert_eq!(orders(&app, &event).await, 0);
    upload(&app.admin(), &path(&event), "text/csv", "name\nAnn\n").await.expect(202);
}

#[tokio::test]
async fn an_upload_that_is_too_large_is_refused_however_it_comes() {
    let app = start(&[("WORKER_MODE", "api"), ("MAX_UPLOAD_BYTES", "100000")]).await;
    let event = create_event(&app).await;
    let large = format!("name\n{}", "x".repeat(200_000));
    upload(&app.admin(), &path(&event), "text/csv", large.clone()).await.expect(413);
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {ADMIN_KEY}\r\nConnection: close\r\n\
         Content-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        path(&event),
        large.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(status(stream).await, 413);
    assert_eq!(orders(&app, &event).await, 0);
}

#[tokio::test]
async fn a_server_killed_in_the_middle_of_an_upload_leaves_no_file() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let _stalled = begin(&app, &event).await;
    until_open(&app, 1).await;
    app.kill();
    let left = std::fs::read_dir(app.data_dir().join("uploads")).unwrap().count();
    assert_eq!(left, 0, "the files have no names");
    app.start_again(&[]).await;
    assert_eq!(orders(&app, &event).await, 0);
}
