//! Rate limits on real nodes: over two of them, without Redis, and against guessing.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use stampede_testkit::{Answer, App, Client, Proxy, Redis, TempDir, eventually, send, temp_dir};
use tokio::task::JoinSet;

use crate::access::client;
use crate::{PATIENCE, start};

/// Two API nodes with one Redis and one database, which lives as long as the folder.
struct Nodes {
    both: [App; 2],
    _folder: TempDir,
}

impl Nodes {
    async fn start(redis: &str, limits: &[(&str, &str)]) -> Self {
        let folder = temp_dir();
        let database = format!("sqlite:{}", folder.path().join("shared.db").display());
        let secret = "a-secret-that-both-nodes-of-this-test-share";
        let common = [
            ("WORKER_MODE", "api"),
            ("REDIS_URL", redis),
            ("DATABASE_URL", &database),
            ("TICKET_KEY_SECRET", secret),
        ];
        let named = |name| [&common, limits, &[("SERVER_NAME", name)]].concat();
        let both = [start(&named("one")).await, start(&named("two")).await];
        Self { both, _folder: folder }
    }

    fn admins(&self) -> [Client; 2] {
        self.both.each_ref().map(App::admin)
    }
}

/// Sends so many requests with each of the clients at once; returns how many were answered with 200 and with 429.
async fn flood(clients: &[Client], each: usize) -> (usize, usize) {
    let mut asking = JoinSet::new();
    for client in clients {
        for _ in 0..each {
            let client = client.clone();
            asking.spawn(async move { client.get("/api/events?limit=1").await.status });
        }
    }
    let statuses = asking.join_all().await;
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    let (let_in, refused) = (count(200), count(429));
    assert_eq!(let_in + refused, clients.len() * each, "{statuses:?}");
    (let_in, refused)
}

/// The number behind a parameter of one limit in a header: `"key";r=3;t=9`.
fn parameter(answer: &Answer, header: &str, limit: &str, name: &str) -> u64 {
    let text = answer.headers[header].to_str().unwrap();
    let own = text.split(", ").find(|item| item.starts_with(&format!("\"{limit}\";"))).unwrap();
    let value = own.split(';').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    value.unwrap().parse().unwrap()
}

/// Waits for a fresh window, so that the test does not run over the end of one.
async fn at_the_beginning_of_a_window(client: &Client) {
    eventually(Duration::from_secs(70), || async {
        let answer = client.get("/api/docs").await;
        let left = parameter(&answer, "ratelimit", "address", "t");
        if left > 20 { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn a_key_has_one_limit_on_all_nodes() {
    let redis = Redis::start().await;
    let nodes = Nodes::start(&redis.url(), &[("RATE_LIMIT_KEY", "60")]).await;
    let clients = nodes.admins();
    at_the_beginning_of_a_window(&nodes.both[0].stranger()).await;
    assert_eq!(flood(&clients, 50).await, (60, 40), "over both nodes");
    let refused = clients[0].get("/api/events").await;
    assert_eq!(refused.body["code"], "rate_limited");
    assert_eq!(refused.body["limit"], "key");
    let retry: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry), "{retry}");
    assert_eq!(parameter(&refused, "ratelimit", "key", "r"), 0);
    assert_eq!(parameter(&refused, "ratelimit-policy", "key", "q"), 60);
    refused.expect(429);
    nodes.both[1].stranger().get("/health").await.expect(200);
    nodes.both[1].stranger().get("/ready").await.expect(200);
    client(&nodes.both[0], "viewer", "ann").get("/api/events").await.expect(200);
}

#[tokio::test]
async fn an_address_has_one_limit_on_all_nodes_whatever_its_key() {
    let redis = Redis::start().await;
    let limits = [("RATE_LIMIT_ADDRESS", "150"), ("TRUSTED_PROXIES", "127.0.0.1")];
    let nodes = Nodes::start(&redis.url(), &limits).await;
    let clients = nodes.admins();
    at_the_beginning_of_a_window(&nodes.both[0].stranger()).await;
    // Other addresses behind the proxy are counted apart.
    let asked = |node: &App, from: &str| {
        node.admin().request(Method::GET, "/api/events?limit=1").header("X-Forwarded-For", from)
    };
    let mut asking = JoinSet::new();
    for number in 0..200 {
        let node = &nodes.both[number % 2];
        // One network of 64 bits.
        asking.spawn(send(asked(node, &format!("2001:db8::{number:x}"))));
    }
    let statuses: Vec<u16> = asking.join_all().await.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 150, "{statuses:?}");
    for node in &nodes.both {
        let refused = send(asked(node, "2001:db8::ffff")).await;
        assert_eq!(refused.body["limit"], "address");
        refused.expect(429);
        send(asked(node, "2001:db8:0:1::1")).await.expect(200);
        node.stranger().get("/health").await.expect(200);
        // Without a key: a made-up one costs a look into the database.
        let health = node.client("made-up").request(Method::GET, "/health");
        let health = send(health.header("X-Forwarded-For", "2001:db8::ffff")).await;
        assert_eq!(health.expect(429)["limit"], "address");
    }
    let seen = clients[0].get("/api/events").await;
    assert!(parameter(&seen, "ratelimit", "address", "r") < 150);
    seen.expect(200);
}

#[tokio::test]
async fn two_nodes_never_let_in_more_than_the_limit_and_go_on_alone_without_redis() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.port()).await;
    let nodes = Nodes::start(&proxy.url(), &[("RATE_LIMIT_ADDRESS", "300")]).await;
    let clients = nodes.admins();
    at_the_beginning_of_a_window(&nodes.both[0].stranger()).await;
    let used = {
        let answer = clients[0].get("/api/docs").await;
        300 - parameter(&answer, "ratelimit", "address", "r") as usize
    };
    let (let_in, _) = flood(&clients, 200).await;
    assert_eq!(let_in, 300 - used, "over both nodes");

    proxy.silence();
    // In the next window nobody can ask Redis.
    eventually(Duration::from_secs(90), || async {
        let status = nodes.both[0].admin().get("/api/docs").await.status;
        if status == 200 { Ok(()) } else { Err(status) }
    })
    .await;
    for client in &clients {
        let (let_in, refused) = flood(std::slice::from_ref(client), 400).await;
        assert!(
            (290..=300).contains(&let_in) && refused >= 100,
            "{let_in} let in, {refused} refused"
        );
    }
    proxy.mend();
}

#[tokio::test]
async fn who_guesses_keys_is_refused_and_locks_nobody_out() {
    let app = start(&[("WORKER_MODE", "api"), ("RATE_LIMIT_FAILURES", "20")]).await;
    at_the_beginning_of_a_window(&app.stranger()).await;
    let ann = client(&app, "organiser", "ann");
    app.admin().get("/api/events").await.expect(200);
    let mut statuses = Vec::new();
    for number in 0..40 {
        statuses.push(app.client(&format!("guess-{number}")).get("/api/events").await.status);
    }
    assert_eq!(statuses[..20], [401; 20]);
    assert_eq!(statuses[20..], [429; 20]);
    let guess = app.client("guess").get("/health").await;
    assert_eq!(
        (guess.status, &guess.body["limit"]),
        (429, &json!("failures")),
        "health is no way around"
    );

    let random = format!("stp_{}", "0".repeat(64));
    app.client(&random).get("/api/events").await.expect(429);
    // A key that this node has never seen, and the preset key that it has.
    ann.get("/api/events").await.expect(200);
    app.admin().get("/api/events").await.expect(200);
    app.stranger().get("/api/docs").await.expect(200);
    app.stranger().get("/api/events").await.expect(401);
}

#[tokio::test]
async fn limits_can_be_switched_off() {
    let off = [("RATE_LIMIT_KEY", "0"), ("RATE_LIMIT_ADDRESS", "0"), ("RATE_LIMIT_FAILURES", "0")];
    let app = start(&[&[("WORKER_MODE", "api")], &off[..]].concat()).await;
    for number in 0..150 {
        app.client(&format!("guess-{number}")).get("/api/events").await.expect(401);
    }
    let answer = app.admin().get("/api/events").await;
    assert!(
        !answer.headers.contains_key("ratelimit")
            && !answer.headers.contains_key("ratelimit-policy")
    );
}

#[tokio::test]
async fn a_page_may_ask_before_it_is_counted() {
    let settings = [("WORKER_MODE", "api"), ("RATE_LIMIT_ADDRESS", "5"), ("CORS_ORIGINS", "*")];
    let app = start(&settings).await;
    eventually(PATIENCE, || async {
        let status = app.stranger().get("/api/docs").await.status;
        if status == 429 { Ok(()) } else { Err(status) }
    })
    .await;
    let asked = app
        .stranger()
        .request(Method::OPTIONS, "/api/events")
        .header("Origin", "https://a.example");
    let allowed = send(asked.header("Access-Control-Request-Method", "GET")).await;
    assert_eq!(
        (allowed.status, &allowed.headers["access-control-allow-origin"]),
        (200, &"*".parse().unwrap())
    );
    let refused = send(
        app.stranger().request(Method::GET, "/api/docs").header("Origin", "https://a.example"),
    )
    .await;
    assert_eq!(
        (refused.status, &refused.headers["access-control-allow-origin"]),
        (429, &"*".parse().unwrap())
    );
}
