//! Every route that takes a body, with every kind of hostile body: the answer is the right 4xx.

use reqwest::Method;
use serde_json::json;
use stampede_api::{Right, Route};
use stampede_testkit::{ADMIN_KEY, App, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::start;

/// Largest body in this test.
const MOST: usize = 1 << 20;

/// Routes that read no body, and answer that their record does not exist.
const WITHOUT_BODY: [&str; 5] = [
    "/api/events/{id}/keys",
    "/api/tickets/{id}/reissue",
    "/api/batches/{id}/retry",
    "/api/webhooks/{id}/test",
    "/api/webhooks/{id}/deliveries/{delivery}/redeliver",
];

/// Routes that look for their record before they read their body, which may be large.
const UPLOADS: [&str; 2] = ["/api/events/{id}/batches", "/api/contracts/{id}/recipients"];

/// A hostile body.
struct Hostile {
    name: &'static str,
    body: Vec<u8>,
    encoding: Option<&'static str>,
    /// Without an announced length.
    chunked: bool,
    /// Statuses that are right.
    right: &'static [u16],
}

fn hostile(name: &'static str, body: impl Into<Vec<u8>>, right: &'static [u16]) -> Hostile {
    Hostile { name, body: body.into(), encoding: None, chunked: false, right }
}

fn keys(count: usize) -> String {
    let keys: Vec<String> = (0..count).map(|n| format!("\"k{n}\":0")).collect();
    format!("{{{}}}", keys.join(","))
}

fn all() -> Vec<Hostile> {
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let deep_objects = "{\"name\":".repeat(20_000);
    let digits = "9".repeat(10_000);
    vec![
        hostile("deep lists", deep, &[400]),
        hostile("deep objects", deep_objects, &[400]),
        hostile("a huge number", format!("{{\"x\":{digits}}}"), &[400]),
        hostile("a number in a known field", format!("{{\"name\":{digits}}}"), &[400]),
        hostile("half a character", "{\"x\":\"\\ud800\"}", &[400]),
        hostile("no UTF-8", b"{\"x\":\"\xff\xfe\"}".to_vec(), &[400]),
        hostile("cut off", "{\"name\":\"x", &[400]),
        hostile("two bodies", "{}{}", &[400]),
        hostile("nothing", "", &[400]),
        hostile("a list", "[{}]", &[422]),
        hostile("null", "null", &[422]),
        hostile("a huge text", format!("{{\"name\":\"{}\"}}", "x".repeat(200_000)), &[422]),
        hostile("a huge name", format!("{{\"{}\":1}}", "x".repeat(200_000)), &[422]),
        hostile("the same name twice", "{\"name\":\"a\",\"name\":\"b\"}", &[422]),
        hostile("two thousand names", keys(2_000), &[422]),
        // Requests with few fields have small bodies.
        hostile("fifty thousand names", keys(50_000), &[413, 422]),
        hostile("too long", vec![b' '; MOST + 1], &[413]),
        Hostile { chunked: true, ..hostile("endless", vec![b' '; 3 * MOST], &[413]) },
        Hostile { encoding: Some("gzip"), ..hostile("compressed", "{}", &[415]) },
        Hostile { chunked: true, ..hostile("a chunked list", "[1]", &[422]) },
    ]
}

/// The route's path with values for its parameters; the queue exists.
fn path(route: &Route) -> String {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let path = route.path.replace("{id}", id).replace("{delivery}", id);
    path.replace("{name}", "mails").replace("{action}", "explode")
}

/// Sends a body; returns status, content type and body of the answer.
async fn answer(app: &App, route: &Route, hostile: &Hostile) -> (u16, String, String) {
    if hostile.chunked {
        return chunked(app, route, &hostile.body).await;
    }
    let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
    let request = app.admin().request(method, &path(route));
    let mut request = request.header("Content-Type", "application/json");
    if let Some(encoding) = hostile.encoding {
        request = request.header("Content-Encoding", encoding);
    }
    let answer = send(request.body(hostile.body.clone())).await;
    let kind = answer.headers["content-type"].to_str().unwrap().to_owned();
    (answer.status, kind, String::from_utf8(answer.bytes).unwrap())
}

/// Sends a body in pieces, without its length.
async fn chunked(app: &App, route: &Route, body: &[u8]) -> (u16, String, String) {
    let address = app.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let (method, path) = (&route.method, path(route));
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {ADMIN_KEY}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for piece in body.chunks(64 << 10) {
        request.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    stream.write_all(&request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap();
    (status, kind.to_owned(), body.to_owned())
}

async fn try_all(app: &App, route: &Route, hostile: &[Hostile]) {
    let reads_none = WITHOUT_BODY.contains(&route.path) || route.path.ends_with("{action}");
    for hostile in hostile {
        let (status, kind, body) = answer(app, route, hostile).await;
        let right = if reads_none { &[404] } else { hostile.right };
        let (method, path, name) = (&route.method, route.path, hostile.name);
        // A body without a mistake of its own reaches the record, which is not there.
        let is_missing = status == 404
            && path.contains("{id}")
            && (right.contains(&422) || UPLOADS.contains(&path));
        // Strangers may send few bytes.
        let is_missing = is_missing || (route.right == Right::Nothing && status == 413);
        assert!(is_missing || right.contains(&status), "{method} {path}, {name}: {status} {body}");
        assert_eq!(kind, "application/problem+json", "{method} {path}, {name}");
        assert!(body.len() < 20_000, "{method} {path}, {name}: a short answer");
    }
}

#[tokio::test]
async fn every_hostile_body_is_answered_with_the_right_status_on_every_route() {
    let most = MOST.to_string();
    let app = start(&[("WORKER_MODE", "api"), ("MAX_BODY_BYTES", &most)]).await;
    app.admin().post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    let hostile = all();
    let routes: Vec<Route> = stampede_api::routes()
        .into_iter()
        .filter(|route| ["POST", "PUT", "PATCH"].contains(&route.method.as_str()))
        // The body of a click is not read, that of a provider not before its account is found: campaigns/hooks.rs.
        .filter(|route| !["/u/", "/hooks/"].iter().any(|open| route.path.starts_with(open)))
        .collect();
    assert!(routes.len() > 25, "{}", routes.len());
    for route in &routes {
        let is_open = route.right == Right::Nothing && route.path != "/api/checkin/enrol";
        assert!(!is_open, "a body of a stranger would be read: {route:?}");
        try_all(&app, route, &hostile).await;
    }
    app.stranger().get("/ready").await.expect(200);
}
