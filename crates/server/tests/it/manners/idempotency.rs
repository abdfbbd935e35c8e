//! `Idempotency-Key` on every POST: carried out once, answered again, also when clients hang up and servers die.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_api::Right;
use stampede_testkit::{Answer, App, Client, eventually, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::access::client;
use crate::{PATIENCE, create_event, start, text};

async fn post(client: &Client, path: &str, key: &str, body: &Value) -> Answer {
    send(client.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

async fn events(app: &App) -> usize {
    let page = app.admin().get("/api/events?limit=1000").await.expect(200);
    page["events"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_repeated_request_is_carried_out_once_and_answered_again() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let night = json!({ "name": "Night" });
    let first = post(&app.admin(), "/api/events", "k-1", &night).await;
    assert!(!is_replayed(&first));
    let again = post(&app.admin(), "/api/events", "k-1", &night).await;
    assert!(is_replayed(&again));
    assert_eq!(first.headers["content-type"], again.headers["content-type"]);
    assert_ne!(first.headers["x-request-id"], again.headers["x-request-id"]);
    assert_eq!(first.bytes, again.bytes);
    assert_eq!((first.status, again.status, events(&app).await), (201, 201, 1));

    let other =
        post(&app.admin(), "/api/events", "k-1", &json!({ "name": "Day" })).await.expect(422);
    assert_eq!(other["code"], "key_reused");
    let path = format!("/api/events/{}/gates", text(&first.body["id"]));
    let elsewhere = post(&app.admin(), &path, "k-1", &night).await.expect(422);
    assert_eq!(elsewhere["code"], "key_reused");
    let ann = client(&app, "organiser", "ann");
    assert!(!is_replayed(&post(&ann, "/api/events", "k-1", &night).await), "keys of others");
    for wrong in ["", &"x".repeat(201)] {
        post(&app.admin(), "/api/events", wrong, &night).await.expect(400);
    }
    assert_eq!(events(&app).await, 2);
}

#[tokio::test]
async fn of_many_requests_at_once_one_is_carried_out() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let mut asking = JoinSet::new();
    for _ in 0..40 {
        let admin = app.admin();
        asking.spawn(
            async move { post(&admin, "/api/events", "k", &json!({ "name": "Night" })).await },
        );
    }
    let answers = asking.join_all().await;
    for answer in &answers {
        match answer.status {
            201 => {}
            409 => {
                assert_eq!(answer.body["code"], "in_flight");
                assert!(answer.headers.contains_key("retry-after"));
            }
            _ => panic!("{answer:?}"),
        }
    }
    let ids: std::collections::BTreeSet<String> = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .map(|answer| text(&answer.body["id"]))
        .collect();
    assert_eq!((ids.len(), events(&app).await), (1, 1));
}

#[tokio::test]
async fn a_refused_request_frees_its_key() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    post(&app.admin(), "/api/events", "k", &json!({ "nam": "Night" })).await.expect(422);
    post(&app.stranger(), "/api/events", "k", &json!({ "name": "Night" })).await.expect(401);
    post(&client(&app, "viewer", "ann"), "/api/events", "k", &json!({ "name": "x" }))
        .await
        .expect(403);
    let done = post(&app.admin(), "/api/events", "k", &json!({ "name": "Night" })).await;
    assert!(!is_replayed(&done));
    done.expect(201);
}

#[tokio::test]
async fn a_secret_that_is_shown_once_is_shown_again_and_is_not_in_the_database() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let key = json!({ "name": "till", "role": "organiser", "user": "ann" });
    let first = post(&app.admin(), "/api/keys", "k", &key).await.expect(201);
    let again = post(&app.admin(), "/api/keys", "k", &key).await.expect(201);
    assert_eq!(first, again);
    let secret = text(&first["secret"]);
    for file in std::fs::read_dir(app.data_dir()).unwrap() {
        let Ok(bytes) = std::fs::read(file.unwrap().path()) else { continue };
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
    }
    // Another key of the same user, with a limit, is not told.
    let event = create_event(&app).await;
    let limited = json!({ "name": "limited", "role": "admin", "user": "admin", "event": event });
    let limited = app.admin().post("/api/keys", &limited).await.expect(201);
    let refused = post(&app.client(&text(&limited["secret"])), "/api/keys", "k", &key).await;
    assert!(refused.status >= 400 && !refused.body.to_string().contains(&secret), "{refused:?}");
}

#[tokio::test]
async fn a_client_that_hangs_up_finds_the_answer_later() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let body = r#"{"name":"Night"}"#;
    let head = format!(
        "POST /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: k\r\nContent-Length: {}\r\n\r\n{body}",
        stampede_testkit::ADMIN_KEY,
        body.len()
    );
    let address = app.url().replace("http://", "");
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    drop(socket);
    let night = json!({ "name": "Night" });
    eventually(PATIENCE, || async {
        let answer = post(&app.admin(), "/api/events", "k", &night).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.body) }
    })
    .await;
    assert_eq!(events(&app).await, 1);
}

#[tokio::test]
async fn a_body_is_part_of_the_request_however_it_arrives() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let id = create_event(&app).await;
    let order = json!({ "target": id, "name": "Ann" });
    let ticket = text(&app.admin().post("/api/tickets", &order).await.expect(200)["tickets"][0]);
    let path = format!("/api/tickets/{ticket}/reissue");
    let reissue = || app.admin().request(Method::POST, &path).header("Idempotency-Key", "r");
    let first = send(reissue()).await.expect(200);
    assert_eq!(send(reissue()).await.expect(200), first, "a route that reads no body");
    send(reissue().body("more")).await.expect(422);
    let now = app.admin().get(&format!("/api/tickets/{ticket}")).await.expect(200);
    assert_eq!(now["generation"], 2, "issued anew once: {now}");

    let head = format!(
        "POST /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: c\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         8\r\n{{\"name\":\r\n8\r\n\"Night\"}}\r\n0\r\n\r\n",
        stampede_testkit::ADMIN_KEY
    );
    let mut socket = TcpStream::connect(app.url().replace("http://", "")).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let whole = post(&app.admin(), "/api/events", "c", &json!({ "name": "Night" })).await;
    assert!(is_replayed(&whole) && answer.ends_with(std::str::from_utf8(&whole.bytes).unwrap()));
    post(&app.admin(), "/api/events", "c", &json!({ "name": "Day" })).await.expect(422);
}

#[tokio::test]
async fn after_a_crash_the_key_is_in_flight_and_the_answers_of_others_are_there() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let night = json!({ "name": "Night" });
    let first = post(&app.admin(), "/api/events", "done", &night).await.expect(201);
    // Half a request: the claim is made, the body never comes.
    let tries = std::sync::atomic::AtomicU64::new(0);
    let (half, _socket) = eventually(PATIENCE, || async {
        // The second request may be quicker than the first: then both begin anew with another key.
        let nth = tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let half = format!("half-{nth}");
        let head = format!(
            "POST /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Idempotency-Key: {half}\r\nContent-Length: 100\r\n\r\n{{",
            stampede_testkit::ADMIN_KEY
        );
        let mut socket = TcpStream::connect(app.url().replace("http://", "")).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20 * nth)).await;
        let answer = post(&app.admin(), "/api/events", &half, &night).await;
        if answer.status == 409 { Ok((half, socket)) } else { Err(answer.status) }
    })
    .await;
    app.kill();
    app.start_again(&[]).await;
    let again = post(&app.admin(), "/api/events", "done", &night).await;
    assert!(is_replayed(&again));
    assert_eq!(again.expect(201), first);
    let held = post(&app.admin(), "/api/events", &half, &night).await.expect(409);
    assert_eq!(held["code"], "in_flight", "until the time limit of its dead holder");
}

#[tokio::test]
async fn every_post_takes_a_key_or_says_that_it_has_no_effect() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let document = app.stranger().get("/api/openapi.json").await.expect(200);
    let mut kinds = [0, 0];
    for route in stampede_api::routes().iter().filter(|route| route.method == "POST") {
        let operation = &document["paths"][route.path]["post"];
        if operation.is_null() {
            continue;
        }
        let parameters = operation["parameters"].as_array().unwrap();
        let key = parameters.iter().find(|parameter| parameter["name"] == "Idempotency-Key");
        let about = text(&key.unwrap_or_else(|| panic!("{route:?}"))["description"]);
        let is_idle = about.starts_with("Has no effect");
        assert!(!is_idle || route.right == Right::Nothing || about.contains("again"), "{about}");
        kinds[usize::from(is_idle)] += 1;
    }
    assert!(kinds[0] > 20 && (1..=14).contains(&kinds[1]), "{kinds:?}");
}

#[tokio::test]
async fn a_secret_is_shown_again_only_to_the_key_that_asked() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (one, two) = (client(&app, "organiser", "ann"), client(&app, "organiser", "ann"));
    let key = json!({ "name": "till", "role": "viewer" });
    let first = post(&one, "/api/keys", "k", &key).await.expect(201);
    let again = post(&one, "/api/keys", "k", &key).await;
    assert!(is_replayed(&again));
    assert_eq!(again.expect(201), first);
    let other = post(&two, "/api/keys", "k", &key).await;
    assert!(!is_replayed(&other));
    assert_eq!(other.expect(409)["code"], "name_taken", "it is another request");
    // What is no secret is answered again to all keys of the user.
    let night = json!({ "name": "Night" });
    let event = post(&one, "/api/events", "e", &night).await.expect(201);
    assert_eq!(post(&two, "/api/events", "e", &night).await.expect(201), event);
}

#[tokio::test]
async fn every_post_that_answers_with_a_secret_keeps_it_for_the_key_that_asked() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let document = app.stranger().get("/api/openapi.json").await.expect(200);
    let resolved = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap().clone(),
        None => schema.clone(),
    };
    let mut showing = Vec::new();
    for operations in document["paths"].as_object().unwrap().values() {
        let operation = &operations["post"];
        let answers = operation["responses"].as_object().into_iter().flatten();
        let shows = answers.filter(|(status, _)| status.starts_with('2')).any(|(_, answer)| {
            let schema = resolved(&answer["content"]["application/json"]["schema"]);
            let names: Vec<&String> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .collect();
            ["secret", "key", "enrolCode", "url"]
                .iter()
                .any(|name| names.iter().any(|other| other == name))
        });
        if shows {
            showing.push(text(&operation["operationId"]));
        }
    }
    showing.sort_unstable();
    // A stranger's key has no effect; it has its nonce. The path of a sticker opens nothing without a key.
    let others = ["enrolDevice", "testWebhook", "drawSticker"];
    showing.retain(|id| !others.contains(&id.as_str()));
    let mut kept = stampede_api::SHOWS_SECRET.to_vec();
    kept.sort_unstable();
    assert_eq!(showing, kept);
}

#[tokio::test]
async fn a_scanner_leaves_no_answers_behind() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let order =
        app.order(json!({ "target": crate::create_event(&app).await, "name": "Ann" })).await;
    let scan = json!({ "ticketId": order["tickets"][0], "nonce": "1" });
    let scan = |target: &Value| {
        let mut scan = scan.clone();
        scan["target"] = target.clone();
        scan
    };
    let batch = admin.get(&format!("/api/batches/{}", text(&order["batchId"]))).await.expect(200);
    let first =
        post(&admin, "/api/checkin/redeem", "k", &scan(&batch["eventId"])).await.expect(200);
    let again = post(&admin, "/api/checkin/redeem", "k", &scan(&batch["eventId"])).await;
    assert!(!is_replayed(&again), "its nonce answers, not a kept answer");
    let again = again.expect(200);
    assert_eq!((&again["result"], &again["replayed"]), (&first["result"], &json!(true)));
}
