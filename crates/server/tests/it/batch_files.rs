//! Whole batches as one file: complete, in order, checked, and without a trace in the server's memory.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{App, eventually, pdf_is_sound, pdf_pages, pdf_text, send, temp_dir};

use crate::access::client;
use crate::{PATIENCE, batch_ended, create_event, start, text};

/// What Python's own reader finds in a ZIP, after it has checked all sums: name → SHA-256.
fn entries(zip: &Path) -> BTreeMap<String, String> {
    let script = "import sys, zipfile, hashlib, json\n\
                  z = zipfile.ZipFile(sys.argv[1])\n\
                  assert z.testzip() is None\n\
                  assert all(i.compress_type == zipfile.ZIP_STORED for i in z.infolist())\n\
                  print(json.dumps({n: hashlib.sha256(z.read(n)).hexdigest() for n in z.namelist()}))";
    let output = Command::new("python3").args(["-c", script]).arg(zip).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn entry(zip: &Path, name: &str) -> Vec<u8> {
    let script = "import sys, zipfile\nsys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";
    Command::new("python3").args(["-c", script]).arg(zip).arg(name).output().unwrap().stdout
}

async fn download(app: &App, path: &str) -> Vec<u8> {
    let answer = app.admin().get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.bytes
}

async fn ordered(app: &App, order: Value) -> (String, Vec<String>) {
    let order = app.order(order).await;
    let tickets = order["tickets"].as_array().unwrap().iter().map(text).collect();
    (text(&order["batchId"]), tickets)
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

/// A number of KB from `/proc/<pid>/status`.
fn memory_kb(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    value.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

/// Downloads to a file, like a client that has other things to do as well: it takes a piece now and
/// then. Returns how much more memory the server had at its peak than before, in KB.
async fn download_slowly(app: &App, path: &str, file: &Path) -> u64 {
    let pid = app.pid();
    // The peak starts anew here.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let before = memory_kb(pid, "VmRSS");
    let mut stream = open(app, path);
    let (mut body, mut buffer, mut noticed) = (Vec::new(), vec![0; 64 << 10], 0);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        body.extend_from_slice(&buffer[..read]);
        if body.len() - noticed > 1 << 20 {
            noticed = body.len();
            app.admin().get("/ready").await.expect(200);
        }
    }
    let peak = memory_kb(pid, "VmHWM");
    std::fs::write(file, unchunked(&body)).unwrap();
    peak.saturating_sub(before)
}

/// Sends the request; the answer is not read yet.
fn open(app: &App, path: &str) -> TcpStream {
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer the-admin-key-of-this-test\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The body of an answer, which must have its end.
fn unchunked(answer: &[u8]) -> Vec<u8> {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..head]));
    let told = String::from_utf8_lossy(&answer[..head]).to_lowercase();
    if let Some(length) = told.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        assert_eq!(length, (answer.len() - head - 4).to_string(), "the file has its end");
        return answer[head + 4..].to_vec();
    }
    let (mut rest, mut body) = (&answer[head + 4..], Vec::new());
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

#[tokio::test]
async fn two_thousand_tickets_leave_no_trace_in_memory() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let holders: Vec<Value> = (1..=2_000)
        .map(|n| json!({ "name": format!("Guest Nº {n}"), "seat": n.to_string() }))
        .collect();
    let (batch, tickets) = ordered(&app, json!({ "target": event, "holders": holders })).await;
    assert_eq!(batch_ended(&app, &batch).await["completed"], 2_000);
    let folder = temp_dir();

    // Once each for what is kept from then on: connections, the template, the allocator's reserves.
    let (zip, pdf) = (folder.path().join("a.zip"), folder.path().join("a.pdf"));
    download_slowly(&app, &format!("/api/batches/{batch}/zip"), &zip).await;
    download_slowly(&app, &format!("/api/batches/{batch}/pdf"), &pdf).await;
    let zip_kb = download_slowly(&app, &format!("/api/batches/{batch}/zip"), &zip).await;
    let pdf_kb = download_slowly(&app, &format!("/api/batches/{batch}/pdf"), &pdf).await;
    let size_kb = std::fs::metadata(&zip).unwrap().len() >> 10;
    println!("ZIP of {size_kb} KB: {zip_kb} KB more at the peak; PDF: {pdf_kb} KB more");
    assert!(size_kb > 20_000, "{size_kb} KB would fit into any buffer");
    assert!(zip_kb < 8_000 && pdf_kb < 8_000, "ZIP {zip_kb} KB, PDF {pdf_kb} KB");

    let found = entries(&zip);
    assert_eq!(found.len(), 2_000);
    for (n, ticket) in tickets.iter().enumerate().step_by(97) {
        let name = format!("ticket-{:04}-{ticket}.pdf", n + 1);
        let file = app.data_dir().join(format!("public/tickets/ticket-{ticket}.pdf"));
        assert_eq!(found[&name], sha256(&file), "{name}");
    }
    let listed = Command::new("unzip").arg("-tq").arg(&zip).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stdout));

    let merged = std::fs::read(&pdf).unwrap();
    pdf_is_sound(&merged);
    assert_eq!(pdf_pages(&merged), 2_000);
    let printed = pdf_text(&merged);
    for n in [1, 1_000, 2_000] {
        assert!(printed.contains(&format!("Guest Nº {n}")), "{n}");
    }
    let first = printed.find("Guest Nº 1\n").or_else(|| printed.find("Guest Nº 1 ")).unwrap();
    assert!(first < printed.find("Guest Nº 1999").unwrap(), "in the order of the tickets");
}

#[tokio::test]
async fn a_batch_that_is_not_done_says_how_much_is_missing() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let (batch, _) = ordered(&app, json!({ "target": event, "name": "Ann", "quantity": 3 })).await;
    for kind in ["pdf", "zip"] {
        let answer = app.admin().get(&format!("/api/batches/{batch}/{kind}")).await;
        assert!(answer.headers.contains_key("retry-after"));
        let problem = answer.expect(409);
        assert_eq!((&problem["missing"], &problem["total"]), (&json!(3), &json!(3)));
        app.admin().get(&format!("/api/batches/{batch}/{kind}?partial=1")).await.expect(409);
        app.admin().get(&format!("/api/batches/{batch}/{kind}?partial=maybe")).await.expect(400);
        let other = client(&app, "organiser", "bob");
        other.get(&format!("/api/batches/{batch}/{kind}")).await.expect(403);
        let unknown = format!("/api/batches/01890a5d-ac96-774b-bcce-b302099a8057/{kind}");
        app.admin().get(&unknown).await.expect(404);
    }
}

#[tokio::test]
async fn tickets_that_are_left_out_are_named() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann" }, { "name": "Bob" }, { "name": "Eve" }]);
    let (batch, tickets) = ordered(&app, json!({ "target": event, "holders": holders })).await;
    batch_ended(&app, &batch).await;
    let path = format!("/api/tickets/{}", tickets[1]);
    app.admin().patch(&path, &json!({ "status": "void" })).await.expect(200);
    let folder = temp_dir();
    let zip = folder.path().join("b.zip");
    std::fs::write(&zip, download(&app, &format!("/api/batches/{batch}/zip")).await).unwrap();
    let names: Vec<String> = entries(&zip).into_keys().collect();
    assert_eq!(names.len(), 3);
    let left_out = String::from_utf8(entry(&zip, "left-out.txt")).unwrap();
    assert!(left_out.contains(&format!("ticket-0002-{}.pdf: void", tickets[1])), "{left_out}");
    let answer = app.admin().get(&format!("/api/batches/{batch}/pdf")).await;
    assert_eq!(answer.headers["x-left-out"], format!("void: {}", tickets[1]).as_str());
    assert_eq!(pdf_pages(&answer.bytes), 2);
    assert!(!pdf_text(&answer.bytes).contains("Bob"));
}

#[tokio::test]
async fn stale_and_missing_files_are_made_anew_for_a_zip() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let (batch, tickets) =
        ordered(&app, json!({ "target": event, "name": "Ann", "quantity": 30 })).await;
    batch_ended(&app, &batch).await;
    let file = |n: usize| app.data_dir().join(format!("public/tickets/ticket-{}.pdf", tickets[n]));
    let folder = temp_dir();
    let zip = folder.path().join("c.zip");
    let path = format!("/api/batches/{batch}/zip");
    std::fs::write(&zip, download(&app, &path).await).unwrap();
    let first = entries(&zip);

    let size = std::fs::metadata(file(3)).unwrap().len() as usize;
    std::fs::remove_file(file(0)).unwrap();
    std::fs::write(file(1), "short").unwrap();
    std::fs::write(file(3), vec![b'x'; size]).unwrap();
    std::fs::write(&zip, download(&app, &path).await).unwrap();
    assert_eq!(entries(&zip), first, "made again byte for byte");

    let change = json!({ "location": "Open Air Stage" });
    app.admin().patch(&format!("/api/events/{event}"), &change).await.expect(200);
    std::fs::write(&zip, download(&app, &path).await).unwrap();
    let changed = entries(&zip);
    assert_eq!(changed.len(), 30);
    assert!(changed.iter().all(|(name, sum)| first[name] != *sum));
    let printed = pdf_text(&entry(&zip, changed.keys().next().unwrap()));
    assert!(printed.contains("Open Air Stage"), "{printed}");
}

#[tokio::test]
async fn clients_that_go_away_make_room_for_others() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let (batch, _) =
        ordered(&app, json!({ "target": event, "name": "Ann", "quantity": 300 })).await;
    batch_ended(&app, &batch).await;
    let path = format!("/api/batches/{batch}/zip");
    // None of these reads anything; each file is larger than what the system takes for them.
    let mut idle: Vec<TcpStream> = Vec::new();
    let refused = eventually(PATIENCE, || {
        idle.push(open(&app, &path));
        let request = app.admin().request(Method::HEAD, &path);
        async move {
            let answer = send(request).await;
            if answer.status == 503 { Ok(answer) } else { Err(answer.status.to_string()) }
        }
    })
    .await;
    assert!(refused.headers.contains_key("retry-after"));
    drop(idle);
    let whole = eventually(PATIENCE, || async {
        let answer = app.admin().get(&path).await;
        if answer.status == 200 { Ok(answer.bytes) } else { Err(answer.body.to_string()) }
    })
    .await;
    let folder = temp_dir();
    let zip = folder.path().join("d.zip");
    std::fs::write(&zip, whole).unwrap();
    assert_eq!(entries(&zip).len(), 300);
}
