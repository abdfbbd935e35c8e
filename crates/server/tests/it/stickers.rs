//! Stickers over HTTP: at once, several, too many, and drawn by workers.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, eventually, send, temp_dir};

use crate::{start, text};

/// A node that draws by itself, and has no workers.
const ALONE: [(&str, &str); 2] = [("WORKER_MODE", "api"), ("WORKER_POOL_SIZE", "2")];

fn header(answer: &Answer, name: &str) -> String {
    answer.headers[name].to_str().unwrap().to_owned()
}

async fn draw(app: &App, body: Value) -> Answer {
    app.admin().post("/api/stickers", &body).await
}

#[tokio::test]
async fn a_sticker_is_drawn_at_once_and_read_by_its_name_in_every_format() {
    let app = start(&ALONE).await;
    for (format, kind, begins) in [
        ("webp", "image/webp", &b"RIFF"[..]),
        ("png", "image/png", b"\x89PNG"),
        ("tgs", "application/x-tgsticker", b"\x1f\x8b"),
    ] {
        let order = json!({ "text": "Hello 👋", "variant": "neon", "format": format });
        let drawn = draw(&app, order.clone()).await;
        assert_eq!((drawn.status, header(&drawn, "content-type").as_str()), (200, kind));
        assert!(drawn.bytes.starts_with(begins), "{format}");
        let path = header(&drawn, "location");
        assert!(path.ends_with(&format!(".{format}")), "{path}");
        assert_eq!(draw(&app, order).await.bytes, drawn.bytes);
        let read = app.admin().get(&path).await;
        assert_eq!((read.status, &read.bytes), (200, &drawn.bytes));
        assert!(header(&read, "cache-control").contains("immutable"));
        let known = app.admin().request(reqwest::Method::GET, &path);
        let known = known.header("If-None-Match", header(&read, "etag"));
        assert_eq!(send(known).await.status, 304);
        assert_eq!(app.stranger().get(&path).await.status, 401);
    }
    let pool = app.admin().get("/api/stickers/pool").await.expect(200);
    assert_eq!((&pool["totalWorkers"], &pool["tasksCompleted"]), (&json!(2), &json!(3)));
    assert_eq!((&pool["queueSize"], &pool["tasksRefused"]), (&json!(0), &json!(0)));
    let unknown = format!("/api/stickers/{}.webp", "0".repeat(64));
    assert_eq!(app.admin().get(&unknown).await.expect(404)["error"], "Sticker not found");
    app.admin().get("/api/stickers/hello.webp").await.expect(404);
}

#[tokio::test]
async fn several_variants_and_batches_are_answered_with_links() {
    let app = start(&ALONE).await;
    let variants = app.admin().get("/api/stickers/variants").await.expect(200);
    let variants = variants["variants"].as_array().unwrap().clone();
    assert_eq!(variants.len(), 8);
    for variant in &variants {
        app.admin().get(&text(&variant["picture"])).await.expect(200);
    }
    let names: Vec<&Value> = variants.iter().map(|variant| &variant["name"]).collect();
    let drawn = draw(&app, json!({ "text": "Set", "variants": names, "format": "tgs" })).await;
    let stickers = drawn.expect(200)["stickers"].as_array().unwrap().clone();
    assert_eq!(stickers.len(), 8);
    for (sticker, variant) in stickers.iter().zip(&variants) {
        assert_eq!((&sticker["status"], &sticker["variant"]), (&json!("ready"), &variant["name"]));
        assert_eq!(sticker["configId"], variant["configId"]);
        let file = app.admin().get(&text(&sticker["url"])).await;
        assert_eq!((file.status, json!(file.bytes.len())), (200, sticker["bytes"].clone()));
    }
    // A description is a variant, too; a text without glyphs leaves the others alone.
    let batch = json!({ "priority": "vip", "stickers": [
        { "text": "one", "variant": variants[2]["look"], "format": "png" },
        { "text": "\u{13000}" },
        { "text": "three" },
    ] });
    let drawn = app.admin().post("/api/stickers/batch", &batch).await.expect(200);
    let status = |index: usize| text(&drawn["stickers"][index]["status"]);
    assert_eq!([status(0), status(1), status(2)], ["ready", "failed", "ready"]);
    assert!(text(&drawn["stickers"][1]["error"]).contains("U+13000"), "{drawn}");
    assert_eq!(drawn["stickers"][0]["configId"], variants[2]["configId"]);
}

#[tokio::test]
async fn all_mistakes_of_an_order_are_told_at_once() {
    let app = start(&ALONE).await;
    for (body, told) in [
        (json!({}), vec!["text is missing"]),
        (
            json!({ "text": " ", "variant": "noen", "format": "gif", "priority": "now", "size": 1 }),
            vec![
                "text has nothing to draw",
                "did you mean neon?",
                "format must be webp, png or tgs",
                "priority must be vip, normal or batch",
                "size is not known here",
            ],
        ),
        (json!({ "text": "\u{301}" }), vec!["text has only combining marks"]),
        (json!({ "text": "x".repeat(10_000) }), vec!["text has more than 200 characters"]),
        (json!({ "text": "a\u{7}b" }), vec!["control character"]),
        (json!({ "text": "x", "variants": [] }), vec!["variants is empty"]),
        (json!({ "text": "x", "variants": ["neon", "noen"] }), vec!["variants[1]", "neon?"]),
        (
            json!({ "text": "x", "variant": "ink", "variants": ["ink"] }),
            vec!["cannot be given beside"],
        ),
        (json!({ "text": "\u{13000}" }), vec!["U+13000"]),
    ] {
        let refused = draw(&app, body.clone()).await.expect(422);
        for part in told {
            assert!(text(&refused["detail"]).contains(part), "{body}: {refused}");
        }
    }
}

#[tokio::test]
async fn of_1_000_requests_at_once_none_is_lost() {
    let app = start(&[ALONE[0], ("WORKER_POOL_SIZE", "1"), ("WORKER_QUEUE_SIZE", "100")]).await;
    let order = |number: u32| json!({ "text": format!("text {number}"), "format": "tgs" });
    let requests = (0..1_000).map(|number| draw(&app, order(number)));
    let (mut drawn, mut later, mut refused) = (0_u64, 0_u64, 0_u64);
    for answer in join_all(requests).await {
        match answer.status {
            200 => drawn += 1,
            // A slow machine draws a hundred in more than ten seconds.
            202 => later += 1,
            503 => {
                refused += 1;
                assert_eq!(answer.body["code"], "overloaded");
                assert!(header(&answer, "retry-after").parse::<u32>().unwrap() >= 1);
            }
            status => panic!("{status}: {}", answer.body),
        }
    }
    assert!(drawn + later >= 101, "{drawn} {later}");
    let pool = app.admin().get("/api/stickers/pool").await.expect(200);
    assert_eq!(pool["tasksRefused"], refused);
    assert!(pool["tasksCompleted"].as_u64().unwrap() >= drawn, "{pool}");
}

#[tokio::test]
async fn a_node_without_a_pool_answers_with_what_its_workers_draw() {
    let app = start(&[("WORKER_POOL_SIZE", "0"), ("WORKER_COUNT", "1")]).await;
    let order = json!({ "text": "Hello", "variant": "neon", "format": "tgs" });
    let drawn = draw(&app, order).await;
    assert_eq!(
        (drawn.status, header(&drawn, "content-type").as_str()),
        (200, "application/x-tgsticker")
    );
    let refused = draw(&app, json!({ "text": "\u{13000}" })).await.expect(422);
    assert!(text(&refused["detail"]).contains("U+13000"), "{refused}");
    let status = app.admin().get("/api/queues/status").await.expect(200);
    assert_eq!(status["stickers"]["failed"], 0, "{}", status["stickers"]);
    assert_eq!(app.admin().get("/api/stickers/pool").await.expect(200)["totalWorkers"], 0);
}

#[tokio::test]
async fn a_sticker_that_nobody_draws_in_time_is_promised() {
    let app = start(&[ALONE[0], ("WORKER_POOL_SIZE", "0")]).await;
    let promised = draw(&app, json!({ "text": "Hello" })).await;
    assert_eq!(promised.status, 202, "{}", promised.body);
    assert_eq!(promised.body["status"], "pending");
    let path = header(&promised, "location");
    assert_eq!(promised.body["url"], path.as_str());
    let waiting = app.admin().get(&path).await;
    assert_eq!(header(&waiting, "retry-after"), "1");
    assert_eq!(waiting.expect(409)["code"], "not_ready");
}

#[tokio::test]
async fn a_client_that_hangs_up_frees_its_place() {
    let app = start(&[ALONE[0], ("WORKER_POOL_SIZE", "1"), ("WORKER_QUEUE_SIZE", "1000")]).await;
    // Long texts with many emoji, so that there is a queue to leave.
    let emoji = "👩‍👩‍👧🏳️‍🌈🧑🏽‍🚀".repeat(12);
    let requests = (0..300).map(|number| {
        let request = app.admin().separate().request(reqwest::Method::POST, "/api/stickers");
        let request = request.json(&json!({ "text": format!("{number}{emoji}") }));
        tokio::spawn(async move { drop(request.send().await) })
    });
    let requests: Vec<_> = requests.collect();
    let queue_size = async || {
        let pool = app.admin().get("/api/stickers/pool").await.expect(200);
        pool["queueSize"].as_u64().unwrap()
    };
    eventually(Duration::from_secs(60), async || (queue_size().await > 50).then_some(())).await;
    requests.iter().for_each(|request| request.abort());
    eventually(Duration::from_secs(60), async || (queue_size().await == 0).then_some(())).await;
    let pool = app.admin().get("/api/stickers/pool").await.expect(200);
    assert!(pool["tasksCompleted"].as_u64().unwrap() < 300, "{pool}");
}

#[tokio::test]
async fn the_command_line_writes_a_sticker() {
    let (app, folder) = (start(&ALONE).await, temp_dir());
    let file = folder.path().join("hello.tgs");
    let path = file.to_str().unwrap();
    let (well, told) = app.command(&["sticker", "Hello", "--variant", "neon", "-o", path]);
    assert!(well && told.contains("hello.tgs"), "{told}");
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x1f\x8b"));
    let (well, told) = app.command(&["sticker", "Hello", "-o", "hello.gif"]);
    assert!(!well && told.contains("must end in .webp, .png or .tgs"), "{told}");
    let (well, told) = app.command(&["sticker", "Hello", "--variant", "noen", "-o", path]);
    assert!(!well && told.contains("did you mean neon?"), "{told}");
}
