//! Clients behind proxies, pages of other origins, and clients that accept compressed answers.

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use stampede_testkit::{Answer, App, eventually, send};

use crate::{PATIENCE, create_event, start, text};

/// The address that the admin's key was last used from.
async fn last_used_from(app: &App, request: RequestBuilder, wanted: &str) {
    send(request).await.expect(200);
    eventually(PATIENCE, || async {
        let keys = app.admin().get("/api/keys").await.expect(200);
        let used = keys["keys"].as_array().unwrap().iter().any(|key| key["lastUsedFrom"] == wanted);
        if used { Ok(()) } else { Err(keys.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_trusted_proxy_tells_the_address_of_its_client_and_nobody_else_does() {
    let app = start(&[("WORKER_MODE", "api"), ("TRUSTED_PROXIES", "127.0.0.0/8, 10.0.0.7")]).await;
    let key = json!({ "name": "till", "role": "viewer", "user": "ann" });
    let key = app.admin().post("/api/keys", &key).await.expect(201);
    let till = app.client(&text(&key["secret"]));
    let asked = till.request(Method::GET, "/api/events");
    let spoofed = "198.51.100.1, 203.0.113.9, 10.0.0.7";
    last_used_from(&app, asked.header("X-Forwarded-For", spoofed), "203.0.113.9").await;

    let app = start(&[("WORKER_MODE", "api")]).await;
    let asked = app.admin().request(Method::GET, "/api/events");
    last_used_from(&app, asked.header("X-Forwarded-For", "203.0.113.9"), "127.0.0.1").await;
    assert!(app.log().contains("X-Forwarded-For is ignored"), "{}", app.log());
    for hostile in ["\u{7f}", &",".repeat(30_000), &"1.1.1.1,".repeat(5_000), "\"for=\""] {
        let asked = app.admin().request(Method::GET, "/api/events");
        let value = reqwest::header::HeaderValue::from_bytes(hostile.as_bytes());
        let Ok(value) = value else { continue };
        send(asked.header("X-Forwarded-For", &value).header("Forwarded", value)).await.expect(200);
    }
}

async fn preflight(app: &App, origin: &str) -> Answer {
    let asked = app.stranger().request(Method::OPTIONS, "/api/events").header("Origin", origin);
    let asked = asked.header("Access-Control-Request-Method", "POST");
    send(asked.header("Access-Control-Request-Headers", "authorization,idempotency-key")).await
}

#[tokio::test]
async fn pages_of_listed_origins_may_use_the_api() {
    let (shop, other) = ("https://shop.example", "https://other.example");
    let app = start(&[("WORKER_MODE", "api"), ("CORS_ORIGINS", "https://shop.example")]).await;
    let allowed = preflight(&app, shop).await;
    let header = |answer: &Answer, name: &str| {
        answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(allowed.status, 200, "a preflight has no key");
    assert_eq!(header(&allowed, "access-control-allow-origin").as_deref(), Some(shop));
    assert_eq!(header(&allowed, "access-control-allow-credentials"), None);
    let methods = header(&allowed, "access-control-allow-methods").unwrap();
    assert!(methods.contains("PATCH") && methods.contains("DELETE"), "{methods}");
    let headers = header(&allowed, "access-control-allow-headers").unwrap();
    assert!(headers.contains("authorization") && headers.contains("idempotency-key"), "{headers}");
    assert_eq!(header(&preflight(&app, other).await, "access-control-allow-origin"), None);

    for (origin, wanted) in [(shop, Some(shop)), (other, None)] {
        let asked = app.admin().request(Method::GET, "/api/events").header("Origin", origin);
        let answer = send(asked).await;
        assert_eq!(header(&answer, "access-control-allow-origin").as_deref(), wanted);
        assert!(header(&answer, "vary").unwrap().contains("origin"), "caches tell origins apart");
        let exposed = header(&answer, "access-control-expose-headers").unwrap();
        for name in
            ["etag", "location", "retry-after", "ratelimit", "x-request-id", "x-left-out", "x-next"]
        {
            assert!(exposed.contains(name), "{exposed}");
        }
        answer.expect(200);
    }
    // A page must see refusals too, or it cannot tell why it was refused.
    let refused = app.stranger().request(Method::GET, "/api/events").header("Origin", shop);
    let refused = send(refused).await;
    assert_eq!(
        (refused.status, header(&refused, "access-control-allow-origin").as_deref()),
        (401, Some(shop))
    );
}

#[tokio::test]
async fn without_the_setting_no_other_origin_is_allowed() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let answer = preflight(&app, "https://shop.example").await;
    assert_eq!(answer.status, 405);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn long_answers_are_compressed_for_clients_that_accept_it() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let coded = async |path: &str, coding: &str| {
        send(app.admin().request(Method::GET, path).header("Accept-Encoding", coding)).await
    };
    let plain = app.admin().get("/api/openapi.json").await;
    assert!(!plain.headers.contains_key("content-encoding"));
    let zipped = coded("/api/openapi.json", "gzip").await;
    assert_eq!(zipped.headers["content-encoding"], "gzip");
    assert!(zipped.headers["vary"].to_str().unwrap().contains("accept-encoding"));
    assert!(zipped.bytes.len() * 3 < plain.bytes.len(), "{}", zipped.bytes.len());
    let mut read = vec![0; plain.bytes.len()];
    libdeflater::Decompressor::new().gzip_decompress(&zipped.bytes, &mut read).unwrap();
    assert_eq!(read, plain.bytes);

    let zipped = coded("/api/openapi.json", "gzip, zstd").await;
    assert_eq!(zipped.headers["content-encoding"], "zstd");
    assert!(zipped.bytes.len() * 3 < plain.bytes.len(), "{}", zipped.bytes.len());
    assert_eq!(zstd::bulk::decompress(&zipped.bytes, plain.bytes.len()).unwrap(), plain.bytes);

    let short = coded("/health", "gzip").await;
    assert!(!short.headers.contains_key("content-encoding"), "it fits into a packet");
    let refused = coded("/api/openapi.json", "gzip;q=0, identity").await;
    assert!(!refused.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn the_tag_of_a_compressed_answer_is_weak_and_still_names_the_version() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let template = |word: &str| {
        let long = "long ".repeat(600);
        let source = format!(
            "#set page(width: 120mm, height: 80mm)\n// {long}\n{word} #field(\"name\") #qr(40mm)\n"
        );
        json!({ "name": "Plain", "files": { "template.typ": source } })
    };
    let made = app.admin().post("/api/templates", &template("Blue")).await.expect(201);
    let path = format!("/api/templates/{}", text(&made["id"]));
    let asked = app.admin().request(Method::GET, &path).header("Accept-Encoding", "gzip");
    let zipped = send(asked).await;
    let tag = zipped.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(
        (zipped.headers["content-encoding"].to_str().unwrap(), tag.as_str()),
        ("gzip", "W/\"1\"")
    );
    let change =
        app.admin().request(Method::PUT, &path).header("If-Match", &tag).json(&template("Red"));
    send(change).await.expect(200);
    let change =
        app.admin().request(Method::PUT, &path).header("If-Match", &tag).json(&template("Green"));
    send(change).await.expect(412);
}

#[tokio::test]
async fn pdfs_are_sent_as_they_are() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let order = app.order(json!({ "target": create_event(&app).await, "name": "Ann" })).await;
    let path = format!("/api/tickets/{}/pdf", text(&order["tickets"][0]));
    let answer = eventually(PATIENCE, || async {
        let asked = app.admin().request(Method::GET, &path).header("Accept-Encoding", "gzip, zstd");
        let answer = send(asked).await;
        if answer.status == 200 { Ok(answer) } else { Err(answer.body.to_string()) }
    })
    .await;
    assert!(answer.bytes.starts_with(b"%PDF") && !answer.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn what_is_created_has_an_address() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let created = async |path: String, body: serde_json::Value, prefix: &str, pointer: &str| {
        let answer = app.admin().post(&path, &body).await;
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        let place = answer.headers["location"].to_str().unwrap().to_owned();
        let id = answer.body.pointer(pointer).unwrap_or_else(|| panic!("{path}: {}", answer.body));
        let id = id.as_str().map_or(id.to_string(), str::to_owned);
        assert_eq!(place, format!("{prefix}/{id}"), "{path}");
        place
    };
    let event =
        created("/api/events".into(), json!({ "name": "Night" }), "/api/events", "/id").await;
    app.admin().get(&event).await.expect(200);
    let key = json!({ "name": "till", "role": "viewer", "user": "ann" });
    let key = created("/api/keys".into(), key, "/api/keys", "/id").await;
    app.admin().get(&key).await.expect(200);
    let design = json!({ "name": "Mine", "design": "stub" });
    let template = created("/api/templates".into(), design, "/api/templates", "/id").await;
    app.admin().get(&template).await.expect(200);
    for (kind, pointer) in [("lists", "/id"), ("gates", "/id"), ("devices", "/device/id")] {
        let (path, prefix) = (format!("{event}/{kind}"), format!("/api/{kind}"));
        let place = created(path, json!({ "name": "North" }), &prefix, pointer).await;
        app.admin().delete(&place).await.expect(204);
    }
    created(format!("{event}/keys"), json!({}), &format!("{event}/keys"), "/kid").await;
}

fn header_of(answer: &Answer, name: &str) -> Option<String> {
    answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

/// Operations whose 201 or 202 has no address of its own, and why.
const WITHOUT_ADDRESS: [(&str, &str); 0] = [];

#[tokio::test]
async fn every_answer_of_201_and_202_has_an_address_in_the_description() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let document = app.stranger().get("/api/openapi.json").await.expect(200);
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for status in ["201", "202"] {
                let answer = &operation["responses"][status];
                if answer.is_null() {
                    continue;
                }
                seen += 1;
                let id = operation["operationId"].as_str().unwrap();
                let is_excepted = WITHOUT_ADDRESS.iter().any(|(other, _)| *other == id);
                assert_eq!(
                    answer["headers"]["Location"].is_null(),
                    is_excepted,
                    "{method} {path} answers {status}: use Located, or say why not"
                );
            }
        }
    }
    assert!(seen > 15, "{seen}");
}

#[tokio::test]
async fn what_is_sent_has_an_address() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let place = |answer: &Answer| header_of(answer, "location").unwrap();
    let made = admin.post("/api/webhooks", &json!({ "url": "https://example.com/" })).await;
    let webhook = place(&made);
    admin.get(&webhook).await.expect(200);
    let rotated = admin.post(&format!("{webhook}/rotate"), &json!({})).await;
    assert_eq!(header_of(&rotated, "etag"), header_of(&admin.get(&webhook).await, "etag"));
    let sent = admin.post(&format!("{webhook}/test"), &json!({})).await;
    assert_eq!(sent.status, 202);
    let delivery = place(&sent);
    assert_eq!(admin.get(&delivery).await.expect(200)["id"], sent.body["id"]);
    let again = admin.post(&format!("{delivery}/redeliver"), &json!({})).await;
    assert_eq!((again.status, place(&again)), (202, delivery));
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let all = admin.post(&format!("{webhook}/redeliver"), &since).await;
    assert_eq!((all.status, place(&all)), (202, format!("{webhook}/deliveries")));
    let order = app.order(json!({ "target": create_event(&app).await, "name": "Ann" })).await;
    for of in [
        format!("/api/tickets/{}", text(&order["tickets"][0])),
        format!("/api/batches/{}", text(&order["batchId"])),
    ] {
        let link = admin.post(&format!("{of}/links"), &json!({})).await;
        assert_eq!((link.status, place(&link)), (201, text(&link.body["url"])));
    }
}
