//! Links for people without a key: they open one file until their end, and nothing else.

use serde_json::{Value, json};
use stampede_testkit::{Answer, App, Postgres, Redis, pdf_text};

use crate::access::client;
use crate::{STAMPEDE, batch_ended, create_event, start, text};

/// A batch of two made tickets: its id and the id of the first ticket.
async fn made(app: &App) -> (String, String) {
    let event = create_event(app).await;
    let holders = json!([{ "name": "Ann" }, { "name": "Bob" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let batch = text(&order["batchId"]);
    batch_ended(app, &batch).await;
    (batch, text(&order["tickets"][0]))
}

async fn link(app: &App, of: &str, body: Value) -> String {
    let link = app.admin().post(&format!("{of}/links"), &body).await.expect(201);
    assert_eq!(link["format"], body.get("format").cloned().unwrap_or(json!("pdf")));
    text(&link["url"])
}

async fn opened(app: &App, url: &str) -> Answer {
    app.stranger().get(url).await
}

#[tokio::test]
async fn a_link_opens_its_file_for_everybody() {
    let app = start(&[]).await;
    let (batch, ticket) = made(&app).await;
    let (ticket, batch) = (format!("/api/tickets/{ticket}"), format!("/api/batches/{batch}"));
    for (of, format, kind, same) in [
        (&ticket, "pdf", "application/pdf", "pdf"),
        (&ticket, "qr.svg", "image/svg+xml", "qr.svg"),
        (&ticket, "qr.png", "image/png", "qr.png"),
        (&batch, "pdf", "application/pdf", "pdf"),
        (&batch, "zip", "application/zip", "zip"),
    ] {
        let url = link(&app, of, json!({ "format": format, "expiresIn": 600 })).await;
        assert!(url.starts_with("/api/links/"), "without PUBLIC_URL it is a path: {url}");
        let answer = opened(&app, &url).await;
        assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, kind));
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        let with_key = app.admin().get(&format!("{of}/{same}")).await;
        assert_eq!(answer.bytes, with_key.bytes, "{of} {format}");
        assert_eq!(answer.headers["etag"], with_key.headers["etag"]);
    }
    for (of, body) in [
        (&ticket, json!({ "format": "zip" })),
        (&batch, json!({ "format": "qr.svg" })),
        (&ticket, json!({ "expiresIn": 0 })),
        (&ticket, json!({ "expiresIn": 401 * 24 * 3600 })),
        (&ticket, json!({ "expiresAt": "2020-01-01T00:00:00Z" })),
        (&ticket, json!({ "expiresAt": "2999-01-01T00:00:00Z" })),
        (&ticket, json!({ "expiresIn": 60, "expiresAt": "2027-01-01T00:00:00Z" })),
        (&ticket, json!({ "expires": 60 })),
    ] {
        app.admin().post(&format!("{of}/links"), &body).await.expect(422);
        client(&app, "organiser", "bob").post(&format!("{of}/links"), &json!({})).await.expect(403);
        client(&app, "viewer", "ann").post(&format!("{of}/links"), &json!({})).await.expect(403);
    }
}

#[tokio::test]
async fn a_link_that_is_forged_ended_or_overtaken_opens_nothing() {
    let app = start(&[("LOG_LEVEL", "debug")]).await;
    let (batch, ticket) = made(&app).await;
    let ticket = format!("/api/tickets/{ticket}");
    let url = link(&app, &ticket, json!({})).await;
    let token = url.strip_prefix("/api/links/").unwrap();
    opened(&app, &url).await.expect(200);
    for place in 0..token.len() {
        let letter = if token.as_bytes()[place] == b'A' { "B" } else { "A" };
        let changed = format!("{}{letter}{}", &token[..place], &token[place + 1..]);
        let answer = opened(&app, &format!("/api/links/{changed}")).await;
        // The last letter has bits that nobody reads, unless they are set.
        assert_eq!(answer.status, 404, "{place}: {}", answer.body);
    }
    for forged in ["x", "", "..%2f..", &token[..40], &format!("{token}A"), &"A".repeat(5_000)] {
        assert_eq!(opened(&app, &format!("/api/links/{forged}")).await.status, 404, "{forged}");
    }
    let short = link(&app, &ticket, json!({ "expiresIn": 1 })).await;
    let expired = stampede_testkit::eventually(crate::PATIENCE, || async {
        let answer = opened(&app, &short).await;
        if answer.status == 410 { Ok(answer.body) } else { Err(answer.status.to_string()) }
    })
    .await;
    assert_eq!(expired["code"], "link_expired");

    // Whoever stole the link to a batch must not get the tickets that are issued instead.
    let stolen = link(&app, &format!("/api/batches/{batch}"), json!({ "format": "zip" })).await;
    opened(&app, &stolen).await.expect(200);
    // Whoever stole the link must not get the ticket that is issued instead.
    app.admin().post(&format!("{ticket}/reissue"), &json!({})).await.expect(200);
    assert_eq!(opened(&app, &url).await.expect(410)["code"], "gone");
    let new = link(&app, &ticket, json!({})).await;
    batch_ended(&app, &batch).await;
    assert_eq!(opened(&app, &stolen).await.expect(410)["code"], "gone");
    let again = link(&app, &format!("/api/batches/{batch}"), json!({ "format": "zip" })).await;
    opened(&app, &again).await.expect(200);
    assert!(pdf_text(&opened(&app, &new).await.bytes).contains("Ann"));
    app.admin().patch(&ticket, &json!({ "status": "void" })).await.expect(200);
    assert_eq!(opened(&app, &new).await.expect(410)["code"], "gone");
    let log = app.log();
    assert!(log.contains("/api/links/"), "debug lines name the route");
    assert!(!log.contains(&token[..20]), "a link is not logged");
}

#[tokio::test]
async fn links_are_absolute_and_hold_on_every_node() {
    let (postgres, redis) = (Postgres::start().await, Redis::start().await);
    let url = postgres.url();
    let settings = [
        ("DATABASE_URL", url.as_str()),
        ("REDIS_URL", &redis.url()),
        ("TICKET_KEY_SECRET", "a-secret-of-at-least-thirty-two-characters"),
        ("PUBLIC_URL", "https://tickets.example.org/"),
    ];
    let one = App::start(STAMPEDE, &settings).await;
    let (_, ticket) = made(&one).await;
    let made = link(&one, &format!("/api/tickets/{ticket}"), json!({ "format": "qr.svg" })).await;
    let path = made.strip_prefix("https://tickets.example.org").unwrap().to_owned();
    let mut others = settings.to_vec();
    others.extend([("CDN_URL", "https://cdn.example.org"), ("WORKER_MODE", "api")]);
    let two = App::start(STAMPEDE, &others).await;
    assert_eq!(opened(&two, &path).await.bytes, opened(&one, &path).await.bytes);
    let other = link(&two, &format!("/api/tickets/{ticket}"), json!({})).await;
    assert!(other.starts_with("https://cdn.example.org/api/links/"), "{other}");
}
