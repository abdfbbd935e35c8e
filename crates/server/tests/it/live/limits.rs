//! Slow readers are dropped, keys have a share of the streams, and a revoked key reads no more.

use std::time::Duration;

use serde_json::json;
use stampede_testkit::{ADMIN_KEY, Redis, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{next, reader};
use crate::{PATIENCE, start, text};

/// Events of one script.
const AT_ONCE: usize = 2_000;

/// Appends events as a script of Redis, much faster than anything that happens.
const FLOOD: &str = "for n = 1, tonumber(ARGV[1]) do \
    local id = string.format('01890a5d-ac96-774b-8cce-%012d', tonumber(ARGV[2]) + n) \
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', '200000', '*', 'id', id, 'event', '{\"id\":\"' .. id .. \
    '\",\"kind\":\"queue.paused\",\"at\":\"2026-11-18T15:00:00Z\",\"data\":{\"queue\":\"' .. \
    string.rep('x', 200) .. n .. '\"}}') end";

/// Resident memory of a process, in MB.
fn memory_mb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_no_memory_and_is_cut_off() {
    let redis = Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let address = app.url().replace("http://", "");
    let request = format!(
        "GET /api/events/stream HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {ADMIN_KEY}\r\n\r\n"
    );
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        // The head of the answer shows that the stream is open; nothing more is read.
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        idle.push(stream);
    }
    let mut quick = reader(&app, ADMIN_KEY)
        .stream("/api/events/stream?kinds=queue.paused", None)
        .await
        .unwrap();
    next(&mut quick).await.unwrap();
    let before = memory_mb(app.pid());
    for part in 0..100_000 / AT_ONCE {
        let (count, first) = (AT_ONCE.to_string(), (part * AT_ONCE).to_string());
        let told = redis.cli(&["EVAL", FLOOD, "1", "stampede:{feed}", &count, &first]);
        assert!(!told.contains("ERR"), "{told}");
        // A reader that reads keeps up.
        for _ in 0..AT_ONCE {
            assert_eq!(next(&mut quick).await.expect("it is not dropped").name, "queue.paused");
        }
    }
    let grown = memory_mb(app.pid()).saturating_sub(before);
    // 100,000 events are 40 MB for each of the 20 readers.
    assert!(grown < 40, "the server has grown by {grown} MB");
    for mut stream in idle {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        let _ = read.expect("the connection is cut off");
        assert!(!rest.ends_with(b"0\r\n\r\n"), "it is broken off, not ended");
    }
    let placed = eventually(PATIENCE, async || {
        reader(&app, ADMIN_KEY).stream("/api/events/stream?seconds=0", None).await
    });
    drop(placed.await);
}

#[tokio::test]
async fn a_key_has_its_share_of_the_streams() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let client = reader(&app, ADMIN_KEY);
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(client.stream("/api/events/stream", None).await.unwrap());
    }
    let refused = app.admin().get("/api/events/stream").await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (429, &"5".parse().unwrap()));
    // Others have theirs.
    let key = json!({ "name": "v", "role": "viewer", "user": "ann" });
    let key = text(&app.admin().post("/api/keys", &key).await.expect(201)["secret"]);
    reader(&app, &key).stream("/api/events/stream", None).await.unwrap();
    // A place is free as soon as its client is gone.
    drop(streams.pop());
    eventually(PATIENCE, async || client.stream("/api/events/stream?seconds=0", None).await).await;
}

#[tokio::test]
async fn a_revoked_key_reads_no_more_within_a_minute() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let key = json!({ "name": "v", "role": "viewer", "user": "ann" });
    let made = app.admin().post("/api/keys", &key).await.expect(201);
    let (id, key) = (text(&made["id"]), text(&made["secret"]));
    let mut stream = reader(&app, &key).stream("/api/events/stream", None).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "hello");
    assert!([200, 204].contains(&app.admin().delete(&format!("/api/keys/{id}")).await.status));
    let ended = tokio::time::timeout(Duration::from_secs(60), next(&mut stream)).await;
    let ended = ended.expect("the stream ends").unwrap();
    assert_eq!((ended.name.as_str(), ended.data.as_str()), ("end", r#"{"reason":"key"}"#));
    assert_eq!(next(&mut stream).await, None);
}
