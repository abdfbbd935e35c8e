//! The WebSocket: keys, origins, subscriptions, mistakes.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use stampede_testkit::{ADMIN_KEY, App};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{PATIENCE, create_event, start};

pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub(crate) async fn open(
        app: &App,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, StatusCode> {
        let address = app.url().replace("http://", "");
        let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(&address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => Err(answer.status()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message that is no heartbeat; `None`: closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a message") {
                Some(Ok(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["type"] != "position" {
                        return Some(message);
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }
}

#[tokio::test]
async fn a_socket_hears_what_it_subscribes_to_and_resumes() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    // A browser sends its key as the first message.
    let mut socket = Socket::open(&app, &[("origin", &app.url())]).await.unwrap();
    socket.say(json!({ "type": "auth", "key": ADMIN_KEY })).await;
    let hello = socket.next().await.unwrap();
    assert_eq!(hello["type"], "hello", "{hello}");
    socket.say(json!({ "type": "subscribe", "id": "a", "kinds": ["event.created"] })).await;
    assert_eq!(socket.next().await.unwrap(), json!({ "type": "subscribed", "id": "a" }));
    socket.say(json!({ "type": "subscribe", "id": "b", "kinds": ["event.deleted"] })).await;
    socket.next().await.unwrap();
    let event = create_event(&app).await;
    let told = socket.next().await.unwrap();
    assert_eq!((&told["type"], &told["subscriptions"]), (&json!("event"), &json!(["a"])), "{told}");
    assert_eq!(
        (&told["event"]["kind"], &told["event"]["data"]["eventId"]),
        (&json!("event.created"), &json!(event))
    );
    socket.say(json!({ "type": "unsubscribe", "id": "a" })).await;
    assert_eq!(socket.next().await.unwrap()["type"], "unsubscribed");
    let other = create_event(&app).await;
    app.admin().delete(&format!("/api/events/{event}")).await.expect(204);
    let told = socket.next().await.unwrap();
    assert_eq!(told["event"]["kind"], "event.deleted", "{told}");

    // Another socket, with the key in a header, goes on after the first event.
    let bearer = format!("Bearer {ADMIN_KEY}");
    let mut socket = Socket::open(&app, &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["type"], "hello");
    let after = &hello["position"];
    socket.say(json!({ "type": "subscribe", "kinds": ["event.created"], "after": after })).await;
    assert_eq!(socket.next().await.unwrap()["type"], "subscribed");
    for wanted in [event, other] {
        assert_eq!(socket.next().await.unwrap()["event"]["data"]["eventId"], json!(wanted));
    }
}

#[tokio::test]
async fn strangers_foreign_pages_and_wrong_messages_are_refused() {
    let app = start(&[("WORKER_MODE", "api"), ("CORS_ORIGINS", "https://app.example")]).await;
    let refused = |headers: Vec<(&'static str, String)>| {
        let app = &app;
        async move {
            let headers: Vec<(&'static str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Socket::open(app, &headers).await.err().map(|status| status.as_u16())
        }
    };
    assert_eq!(refused(vec![("origin", "https://evil.example".into())]).await, Some(403));
    assert_eq!(refused(vec![("origin", "https://app.example".into())]).await, None);
    assert_eq!(refused(vec![("authorization", "Bearer stp_wrong".into())]).await, Some(401));
    app.stranger().get("/ws").await.expect(400);

    let mut socket = Socket::open(&app, &[]).await.unwrap();
    socket.say(json!({ "type": "auth", "key": "stp_wrong" })).await;
    let error = socket.next().await.unwrap();
    assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("unauthorized")));
    assert_eq!(socket.next().await, None);
    let mut socket = Socket::open(&app, &[]).await.unwrap();
    socket.say(json!({ "type": "subscribe" })).await;
    assert_eq!(socket.next().await, None, "nothing before the key");

    let bearer = format!("Bearer {ADMIN_KEY}");
    let mut socket = Socket::open(&app, &[("authorization", &bearer)]).await.unwrap();
    socket.next().await.unwrap();
    for (message, told) in [
        (json!({ "type": "subscribe", "kinds": ["batch.craeted"] }), "did you mean batch.created?"),
        (json!({ "type": "unsubscribe", "id": "x" }), "no such subscription"),
        (json!({ "type": "auth", "key": "again" }), "known already"),
        (json!([1]), "cannot be read"),
    ] {
        socket.say(message).await;
        let error = socket.next().await.unwrap();
        assert!(error["detail"].as_str().unwrap().contains(told), "{error}");
    }
    for n in 0..32 {
        socket.say(json!({ "type": "subscribe", "id": n.to_string() })).await;
        assert_eq!(socket.next().await.unwrap()["type"], "subscribed");
    }
    socket.say(json!({ "type": "subscribe", "id": "one more" })).await;
    assert!(socket.next().await.unwrap()["detail"].as_str().unwrap().contains("at most 32"));
    let long = json!({ "type": "subscribe", "id": "x".repeat(20_000) });
    socket.say(long).await;
    assert_eq!(socket.next().await, None, "a message that is too long ends the socket");
}

#[tokio::test]
async fn a_client_that_sends_without_pause_cannot_put_off_the_check_of_its_key() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let key = json!({ "name": "v", "role": "viewer", "user": "ann" });
    let made = app.admin().post("/api/keys", &key).await.expect(201);
    let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
    let mut socket = Socket::open(&app, &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["type"], "hello");
    let revoked = app.admin().delete(&format!("/api/keys/{}", made["id"].as_str().unwrap())).await;
    assert!([200, 204].contains(&revoked.status));
    let (mut sending, mut receiving) = socket.0.split();
    let flood = async {
        while sending.feed(Message::Pong(Default::default())).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let closed = async {
        while let Some(Ok(message)) = receiving.next().await {
            if let Message::Close(frame) = message {
                return frame.map(|frame| u16::from(frame.code));
            }
        }
        None
    };
    let closed = tokio::time::timeout(PATIENCE.max(std::time::Duration::from_secs(50)), async {
        tokio::select! { () = flood => None, closed = closed => closed }
    });
    assert_eq!(closed.await.expect("the key is checked every 30 seconds"), Some(1008));
}

#[tokio::test]
async fn strangers_have_few_sockets_and_end_with_the_node() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let mut strangers = Vec::new();
    for _ in 0..32 {
        strangers.push(Socket::open(&app, &[]).await.unwrap());
    }
    let refused = Socket::open(&app, &[]).await.err().map(|status| status.as_u16());
    assert_eq!(refused, Some(429));
    let bearer = format!("Bearer {ADMIN_KEY}");
    let mut known = Socket::open(&app, &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(known.next().await.unwrap()["type"], "hello", "those with a key have their own");
    // A stranger who says who it is makes room.
    strangers[0].say(json!({ "type": "auth", "key": ADMIN_KEY })).await;
    assert_eq!(strangers[0].next().await.unwrap()["type"], "hello");
    let mut late = Socket::open(&app, &[]).await.unwrap();
    app.signal(stampede_testkit::Signal::TERM);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(4), late.next()).await;
    assert_eq!(ended.expect("it ends with the node, not after ten seconds"), None);
    assert!(app.ended().await.success());
}
