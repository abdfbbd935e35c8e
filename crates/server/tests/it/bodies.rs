//! Bodies must not multiply: however they are made, the server's memory stays bounded, is given back, and other callers
//! are answered meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Client, eventually, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::access::client;
use crate::{create_event, start, text};

/// Memory that bodies may take in all, in MB.
const MOST_MB: u64 = 300;
/// A request of another caller may take this long, on a busy machine and a server without optimisation.
const OTHERS_WAIT: Duration = Duration::from_secs(5);

/// A value of `/proc/{pid}/status` in MB.
fn memory(app: &App, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// About 16 MB of small objects, as `value` of a field; kept until the test ends.
fn small_objects(before: &str, after: &str) -> &'static [u8] {
    let objects = r#"{"a":0},"#.repeat((16 << 20) / 8 - 100);
    let body = format!("{before}{}{after}", objects.trim_end_matches(','));
    assert!(body.len() <= 16 << 20);
    Box::leak(body.into_bytes().into_boxed_slice())
}

async fn post(client: &Client, path: &str, body: &'static [u8]) -> Answer {
    let request = client.request(Method::POST, path).header("Content-Type", "application/json");
    send(request.body(body)).await
}

/// Asks as another caller until `done`; returns the longest time to an answer.
async fn others(bob: &Client, done: &tokio_util::sync::CancellationToken) -> Duration {
    let mut longest = Duration::ZERO;
    while !done.is_cancelled() {
        let begun = Instant::now();
        bob.get("/api/events").await.expect(200);
        bob.post("/api/verify", &json!({ "token": "x" })).await.expect(200);
        longest = longest.max(begun.elapsed());
    }
    longest
}

async fn burst(count: usize) {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let bob = client(&app, "organiser", "bob");
    let bodies = [
        small_objects(r#"{"files":["#, "]}"),
        small_objects(r#"{"design":"a4","x":["#, "]}"),
        small_objects(r#"{"design":"a4","event":{"x":["#, "]}}"),
    ];
    let idle = memory(&app, "VmRSS");
    let done = tokio_util::sync::CancellationToken::new();
    let sending = async {
        let clients: Vec<Client> =
            (0..5).map(|n| client(&app, "organiser", &format!("user-{n}"))).collect();
        let requests = (0..count)
            .map(|n| post(&clients[n % 5], "/api/templates/validate", bodies[n % bodies.len()]));
        let answers = join_all(requests).await;
        done.cancel();
        answers
    };
    let (answers, longest) = tokio::join!(sending, others(&bob, &done));
    let mut refused = 0;
    for answer in &answers {
        assert!(matches!(answer.status, 422 | 429 | 503), "{} {}", answer.status, answer.body);
        if answer.status != 422 {
            assert!(answer.headers.contains_key("retry-after"), "{}", answer.body);
            refused += 1;
        }
    }
    assert!(refused < count, "at least one is read");
    let peak = memory(&app, "VmHWM");
    assert!(peak < idle + MOST_MB, "{count} bodies: idle {idle} MB, peak {peak} MB");
    assert!(longest < OTHERS_WAIT, "others waited {longest:?}");
    assert_given_back(&app, idle).await;
}

/// Waits until the server has about as much memory as before the bodies: what stays is bounded, too.
async fn assert_given_back(app: &App, idle: u64) {
    eventually(Duration::from_secs(20), || async {
        let now = memory(app, "VmRSS");
        if now < idle + 64 { Ok(()) } else { Err(format!("idle {idle} MB, now {now} MB")) }
    })
    .await;
}

#[tokio::test]
async fn five_bodies_of_small_objects_stay_small_in_memory() {
    burst(5).await;
}

#[tokio::test]
async fn fifty_bodies_of_small_objects_stay_small_in_memory() {
    burst(50).await;
}

#[tokio::test]
async fn large_payloads_and_orders_stay_small_in_memory() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let idle = memory(&app, "VmRSS");
    let order = small_objects(&format!(r#"{{"target":"{event}","holders":["#), "]}");
    let job = small_objects(r#"{"name":"x","data":["#, "]}");
    let ids = small_objects(r#"{"ids":["#, "]}");
    app.admin().post("/api/queues/mails/jobs", &json!({ "name": "x" })).await.expect(200);
    for (path, body, message) in [
        ("/api/tickets", order, "holders[0].name is missing"),
        ("/api/queues/mails/jobs", job, "data has more than 262144 bytes"),
        ("/api/queues/mails/dead-letters/replay", ids, "ids must be a list of texts"),
    ] {
        let admin = app.admin();
        let answers = join_all((0..5).map(|_| post(&admin, path, body))).await;
        let read: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 422).collect();
        assert!(!read.is_empty(), "{path}");
        for answer in read {
            assert!(text(&answer.body["error"]).contains(message), "{path}: {}", answer.body);
        }
        assert!(answers.iter().all(|answer| matches!(answer.status, 422 | 429 | 503)), "{path}");
    }
    let peak = memory(&app, "VmHWM");
    assert!(peak < idle + MOST_MB, "idle {idle} MB, peak {peak} MB");
    assert_given_back(&app, idle).await;
}

#[tokio::test]
async fn an_order_of_a_million_holders_is_refused_with_their_number() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let holders = r#"{"name":"A"},"#.repeat(1_000_000);
    let body = format!(r#"{{"target":"{event}","holders":[{}]}}"#, holders.trim_end_matches(','));
    let body = Box::leak(body.into_bytes().into_boxed_slice());
    let refused = post(&app.admin(), "/api/tickets", body).await.expect(422);
    assert_eq!(refused["error"], "holders may have at most 100000 entries, has 1000000");
}

/// Opens a request with a body of this length and sends only its beginning.
async fn slow(app: &App, key: &str, length: usize) -> TcpStream {
    sent(app, key, length, b"{").await
}

/// Opens a request with a body of this length and sends only these bytes of it.
async fn sent(app: &App, key: &str, length: usize, bytes: &[u8]) -> TcpStream {
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /api/templates/validate HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // One that is refused is read to its end, or its connection is closed.
    stream.write_all(bytes).await.ok();
    stream
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok();
    answer
}

/// A body that is as large as may be.
fn large_body() -> &'static [u8] {
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(15 << 20));
    Box::leak(large.into_bytes().into_boxed_slice())
}

#[tokio::test]
async fn bodies_that_are_announced_and_not_sent_keep_nobody_out() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let keys = ["ann", "bob"].map(|user| {
        let (worked, key) =
            app.command(&["token", "create", "--role", "organiser", "--user", user]);
        assert!(worked, "{key}");
        key.trim().to_owned()
    });
    let mut idle = Vec::new();
    for key in keys.iter().cycle().take(40) {
        idle.push(slow(&app, key, 16 << 20).await);
    }
    let others = [app.client(&keys[0]), app.client(&keys[1]), client(&app, "organiser", "eve")];
    for caller in &others {
        let read = post(caller, "/api/templates/validate", large_body()).await.expect(422);
        assert_eq!(text(&read["errors"][0]["field"]), "x");
    }
}

#[tokio::test]
async fn a_slow_caller_uses_up_its_own_share_and_gives_it_back_by_hanging_up() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (worked, key) = app.command(&["token", "create", "--role", "organiser", "--user", "ann"]);
    assert!(worked, "{key}");
    let (ann, bob) = (app.client(key.trim()), client(&app, "organiser", "bob"));
    let (large, path) = (large_body(), "/api/templates/validate");
    // Bodies that lack their last byte: one more before each try, because one that comes together with a large body is
    // refused itself.
    let waiting = Mutex::new(vec![]);
    let refused = eventually(Duration::from_secs(8), || async {
        let opened = sent(&app, key.trim(), large.len(), &large[1..]).await;
        waiting.lock().await.push(opened);
        let answer = post(&ann, path, large).await;
        if answer.status == 429 { Ok(answer) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(text(&refused.body["error"]).contains("your other requests"), "{}", refused.body);
    // Her small requests, and the large ones of others, go on.
    ann.post("/api/verify", &json!({ "token": "x" })).await.expect(200);
    assert_eq!(text(&post(&bob, path, large).await.expect(422)["errors"][0]["field"]), "x");
    drop(waiting);
    eventually(Duration::from_secs(5), || async {
        let answer = post(&ann, path, large).await;
        if answer.status == 422 { Ok(()) } else { Err(answer.body.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_stops_arriving_is_answered_in_the_end() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (_, key) = app.command(&["token", "create", "--role", "organiser", "--user", "ann"]);
    let mut paused = slow(&app, key.trim(), 100).await;
    let told = answer(&mut paused).await;
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("did not arrive"), "{told}");
    // A length that is too small: the rest is no request.
    let mut short = slow(&app, key.trim(), 1).await;
    short.write_all(b"\"x\": 1}\r\n\r\n").await.unwrap();
    let told = answer(&mut short).await;
    assert!(told.starts_with("HTTP/1.1 400") && told.contains("not valid JSON"), "{told}");
    // A length that is too large, and a client that stops there.
    let mut long = slow(&app, key.trim(), 100).await;
    long.shutdown().await.unwrap();
    let told = answer(&mut long).await;
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 400"), "{told}");
    app.stranger().get("/ready").await.expect(200);
}

#[tokio::test]
async fn strangers_have_no_body_read() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let body = small_objects(r#"{"files":["#, "]}");
    let idle = memory(&app, "VmHWM");
    for client in [app.stranger(), app.client("stp_wrong"), app.client("stp_…")] {
        let refused = post(&client, "/api/templates/validate", body).await;
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
        refused.expect(401);
    }
    let peak = memory(&app, "VmHWM");
    assert!(peak < idle + 20, "idle {idle} MB, peak {peak} MB");
}

#[tokio::test]
async fn a_placeholder_in_place_of_a_key_is_told() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let told = app.client("stp_…").get("/api/events").await.expect(401);
    assert!(text(&told["error"]).contains("characters that no key has"), "{told}");
    let told = app.stranger().get("/api/events").await.expect(401);
    assert!(text(&told["error"]).contains("an API key is needed"), "{told}");
}

#[tokio::test]
async fn headers_of_any_length_are_not_kept() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nX: {}", "x".repeat(200_000));
    // The server may hang up in the middle.
    stream.write_all(head.as_bytes()).await.ok();
    let told = answer(&mut stream).await;
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 431"), "{told}");
    app.stranger().get("/ready").await.expect(200);
}

/// The mistakes of a body, by field.
pub(crate) fn mistakes(problem: &Value) -> Vec<(String, String)> {
    let errors = problem["errors"].as_array().into_iter().flatten();
    errors.map(|error| (text(&error["field"]), text(&error["message"]))).collect()
}

#[tokio::test]
async fn a_typo_inside_holders_is_told_when_the_order_is_refused() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "holders": [{ "nmae": "Ann" }, { "name": "Bob" }] });
    let refused = app.admin().post("/api/tickets", &order).await.expect(422);
    let [missing, typo] = &mistakes(&refused)[..] else { panic!("{refused}") };
    assert_eq!(missing, &("holders[0].name".to_owned(), "is missing".to_owned()));
    assert_eq!(typo.0, "holders[0].nmae");
    assert!(typo.1.contains("did you mean name?"), "{refused}");
}

#[tokio::test]
async fn a_missing_record_is_named_by_its_id() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (path, error) in [
        (format!("/api/events/{id}"), "Event not found"),
        (format!("/api/tickets/{id}"), "Ticket not found"),
        (format!("/api/batches/{id}"), "Batch not found"),
        (format!("/api/templates/{id}"), "Template not found"),
    ] {
        let problem = app.admin().get(&path).await.expect(404);
        assert_eq!(problem["error"], error, "words that older clients compare");
        assert_eq!(problem["detail"], format!("{error}: {id}"));
    }
    let problem = app.admin().get("/api/events/not-an-id").await.expect(404);
    assert_eq!(problem["detail"], "not found: \"not-an-id\" is not an id");
}
