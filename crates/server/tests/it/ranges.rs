//! Parts of files: a download that broke off goes on where it was, and the bytes are the same every time.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, pdf_is_sound, pdf_pages, send, temp_dir};

use crate::{batch_ended, create_event, start, text};

async fn made(app: &App, count: usize) -> (String, String) {
    let event = create_event(app).await;
    let holders: Vec<Value> =
        (1..=count).map(|n| json!({ "name": format!("Guest {n}") })).collect();
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let batch = text(&order["batchId"]);
    assert_eq!(batch_ended(app, &batch).await["completed"], count);
    (batch, text(&order["tickets"][0]))
}

async fn get(app: &App, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = app.admin().request(Method::GET, path);
    send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

fn header(answer: &Answer, name: &str) -> String {
    answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn any_part_of_any_file_is_a_part_of_the_whole() {
    let app = start(&[]).await;
    let (batch, ticket) = made(&app, 120).await;
    let voided = app.admin().get(&format!("/api/tickets?batch={batch}&limit=2")).await.expect(200);
    let second = text(&voided["tickets"][1]["id"]);
    app.admin()
        .patch(&format!("/api/tickets/{second}"), &json!({ "status": "void" }))
        .await
        .expect(200);
    for path in [
        format!("/api/tickets/{ticket}/pdf"),
        format!("/api/batches/{batch}/zip"),
        format!("/api/batches/{batch}/pdf"),
    ] {
        // First a part: the length of a merged PDF is not known yet.
        let early = get(&app, &path, &[("Range", "bytes=10-19")]).await;
        assert_eq!(early.status, 206, "{path}");
        let whole = get(&app, &path, &[]).await;
        let (tag, length) = (header(&whole, "etag"), whole.bytes.len());
        assert_eq!(early.bytes, whole.bytes[10..20], "{path}");
        assert_eq!((whole.status, header(&whole, "accept-ranges").as_str()), (200, "bytes"));
        assert_eq!(header(&whole, "content-length"), length.to_string(), "{path}");
        let again = get(&app, &path, &[]).await;
        assert!(again.bytes == whole.bytes, "{path} is the same every time");
        let half = length / 2;
        for (range, part) in [
            (format!("bytes=0-{}", half - 1), 0..half),
            (format!("bytes={half}-"), half..length),
            ("bytes=-7".to_owned(), length - 7..length),
            (format!("bytes={}-{}", half - 1, half + 1), half - 1..half + 2),
        ] {
            for if_range in [None, Some(("If-Range", tag.as_str()))] {
                let headers: Vec<_> =
                    [("Range", range.as_str())].into_iter().chain(if_range).collect();
                let answer = get(&app, &path, &headers).await;
                assert_eq!(answer.status, 206, "{path} {range}");
                let said = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                assert_eq!(header(&answer, "content-range"), said);
                assert!(answer.bytes == whole.bytes[part.clone()], "{path} {range}");
                assert_eq!(header(&answer, "etag"), tag);
            }
        }
        let beyond = get(&app, &path, &[("Range", &format!("bytes={length}-"))]).await;
        assert_eq!(header(&beyond, "content-range"), format!("bytes */{length}"));
        assert_eq!(beyond.expect(416)["code"], "range_not_satisfiable");
        let other = get(&app, &path, &[("Range", "bytes=5-"), ("If-Range", "\"other\"")]).await;
        assert!(other.status == 200 && other.bytes == whole.bytes);
        assert_eq!(get(&app, &path, &[("If-None-Match", &tag)]).await.status, 304);
        let head = send(app.admin().request(Method::HEAD, &path)).await;
        assert_eq!((head.status, header(&head, "content-length")), (200, length.to_string()));
        assert_eq!(header(&head, "etag"), tag);
        if path.ends_with("/pdf") {
            pdf_is_sound(&whole.bytes);
        }
    }
    let merged = get(&app, &format!("/api/batches/{batch}/pdf"), &[]).await;
    assert_eq!(pdf_pages(&merged.bytes), 119);
    assert!(header(&merged, "x-left-out").contains(&second));
}

#[tokio::test]
async fn a_changed_batch_is_another_version() {
    let app = start(&[]).await;
    let (batch, ticket) = made(&app, 3).await;
    let path = format!("/api/batches/{batch}/zip");
    let mut tags = vec![header(&get(&app, &path, &[]).await, "etag")];
    let change = json!({ "name": "Another" });
    app.admin().patch(&format!("/api/tickets/{ticket}"), &change).await.expect(200);
    batch_ended(&app, &batch).await;
    tags.push(header(&get(&app, &path, &[]).await, "etag"));
    app.admin()
        .patch(&format!("/api/tickets/{ticket}"), &json!({ "status": "void" }))
        .await
        .expect(200);
    tags.push(header(&get(&app, &path, &[]).await, "etag"));
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    // The event changes: all PDFs are made again while the file is sent, so it has no version yet.
    let event =
        text(&app.admin().get(&format!("/api/batches/{batch}")).await.expect(200)["eventId"]);
    let moved = json!({ "location": "Elsewhere" });
    app.admin().patch(&format!("/api/events/{event}"), &moved).await.expect(200);
    let renewing = get(&app, &path, &[("Range", "bytes=100-")]).await;
    assert_eq!((renewing.status, header(&renewing, "etag").as_str()), (200, ""));
    batch_ended(&app, &batch).await;
    let renewed = get(&app, &path, &[]).await;
    assert!(renewed.bytes == renewing.bytes && !tags.contains(&header(&renewed, "etag")));
}

/// `curl -C -` until the file is there.
fn resumed(url: &str, file: &Path) -> String {
    let output = Command::new("curl")
        .args(["-sS", "--fail", "-C", "-", "-H", "X-API-Key: the-admin-key-of-this-test", "-o"])
        .arg(file)
        .args(["-w", "%{http_code} %{size_download}", url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_download_that_broke_off_goes_on_where_it_was() {
    let mut app = start(&[]).await;
    let (batch, _) = made(&app, 150).await;
    let folder = temp_dir();
    for (kind, name) in [("zip", "tickets.zip"), ("pdf", "tickets.pdf")] {
        let path = format!("/api/batches/{batch}/{kind}");
        let whole = get(&app, &path, &[]).await.bytes;
        let file = folder.path().join(name);
        std::fs::write(&file, &whole[..whole.len() / 3]).unwrap();
        // Another process, which remembers nothing.
        app.stop().await;
        app.start_again(&[]).await;
        let told = resumed(&format!("{}{path}", app.url()), &file);
        assert_eq!(told, format!("206 {}", whole.len() - whole.len() / 3), "{kind}");
        assert!(std::fs::read(&file).unwrap() == whole, "{kind}");
    }
    let tested =
        Command::new("unzip").arg("-tq").arg(folder.path().join("tickets.zip")).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
}
