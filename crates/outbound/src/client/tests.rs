//! Raw sockets that do to a client what servers do.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::address::NOT_PUBLIC;

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A server on a free port: each connection is given to `serve` with its number, from 0.
async fn server<F, Fut>(serve: F) -> Url
where
    F: Fn(usize, TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            tokio::spawn(serve(number, stream));
        }
    });
    format!("http://127.0.0.1:{port}/hook?key=secret").parse().unwrap()
}

/// A server that reads a request, sends pieces with a pause before each, and then holds the connection.
async fn sends(pieces: Vec<(Duration, Vec<u8>)>) -> Url {
    server(move |_, mut stream| {
        let pieces = pieces.clone();
        async move {
            request(&mut stream).await;
            for (pause, piece) in pieces {
                tokio::time::sleep(pause).await;
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        }
    })
    .await
}

/// Reads a request to its end; `false`: the connection was closed instead.
async fn request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    while !read.windows(4).any(|four| four == b"\r\n\r\n") || !read.ends_with(b"}") {
        match stream.read_buf(&mut read).await {
            Ok(1..) => {}
            _ => return false,
        }
    }
    true
}

fn at_once(text: impl Into<Vec<u8>>) -> Vec<(Duration, Vec<u8>)> {
    vec![(Duration::ZERO, text.into())]
}

fn client(allowed: &str) -> Client {
    let limits = Limits {
        connect: Duration::from_secs(2),
        whole: Duration::from_millis(1_500),
        ..Limits::default()
    };
    Client::new(allowed.parse().unwrap(), limits)
}

fn to(url: &Url) -> Request {
    let (method, headers) = (Method::POST, HeaderMap::new());
    Request { method, url: url.clone(), headers, body: Bytes::from_static(b"{}") }
}

async fn post(url: &Url) -> Result<Answer, Error> {
    client("127.0.0.1").send(to(url)).await
}

fn stage(error: Result<Answer, Error>) -> Stage {
    match error {
        Err(Error::NotSent { stage, reason }) => {
            assert!(!reason.contains("secret") && !reason.contains("127.0.0.1"), "{reason}");
            stage
        }
        other => panic!("{other:?}"),
    }
}

fn unanswered(error: Result<Answer, Error>) -> String {
    match error {
        Err(Error::Unanswered { reason }) => {
            assert!(!reason.contains("secret") && !reason.contains("127.0.0.1"), "{reason}");
            reason
        }
        other => panic!("{other:?}"),
    }
}

/// Closes so that the other side gets a reset.
fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

#[tokio::test]
async fn a_request_that_finds_no_server_is_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url: Url = format!("http://{closed}/?key=secret").parse().unwrap();
    assert_eq!(stage(post(&url).await), Stage::Connect);
    let unknown: Url = "http://no-such-host.invalid/".parse().unwrap();
    assert_eq!(stage(post(&unknown).await), Stage::Name);
    let strange: Url = "ftp://127.0.0.1/".parse().unwrap();
    assert_eq!(stage(post(&strange).await), Stage::Request);
}

#[tokio::test]
async fn a_server_without_tls_is_sent_nothing() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b""] {
        let url = server(move |_, mut stream| async move {
            let mut hello = [0; 100];
            let _ = stream.read(&mut hello).await;
            let _ = stream.write_all(answer).await;
        })
        .await;
        let secure: Url = url.as_str().replace("http:", "https:").parse().unwrap();
        assert_eq!(stage(post(&secure).await), Stage::Tls);
    }
    let silent = server(|_, _stream| std::future::pending()).await;
    let secure: Url = silent.as_str().replace("http:", "https:").parse().unwrap();
    assert_eq!(stage(post(&secure).await), Stage::Tls);
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_leaves_it_unanswered() {
    let before_reading = server(|_, mut stream| async move {
        // One byte has come, so the request has left.
        let _ = stream.read_u8().await;
        reset(stream);
    });
    unanswered(post(&before_reading.await).await);
    let after_reading = server(|_, mut stream| async move {
        request(&mut stream).await;
        reset(stream);
    });
    unanswered(post(&after_reading.await).await);
    let closed = server(|_, mut stream| async move {
        request(&mut stream).await;
    });
    unanswered(post(&closed.await).await);
    let in_its_head = server(|_, mut stream| async move {
        request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").await;
    });
    unanswered(post(&in_its_head.await).await);
    let no_http = sends(at_once("220 mail.example.com ESMTP\r\n")).await;
    unanswered(post(&no_http).await);
}

#[tokio::test]
async fn silence_leaves_a_request_unanswered() {
    assert!(unanswered(post(&sends(Vec::new()).await).await).contains("no answer within"));
    let slow = std::iter::repeat_n((Duration::from_millis(200), b"H".to_vec()), 100);
    assert!(unanswered(post(&sends(slow.collect()).await).await).contains("no answer"));
}

#[tokio::test]
async fn a_body_without_end_is_cut_and_its_status_counts() {
    let mut pieces = at_once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    pieces.extend(std::iter::repeat_n((Duration::from_millis(100), b"1\r\nx\r\n".to_vec()), 100));
    let begun = Instant::now();
    let accepted = post(&sends(pieces).await).await.unwrap();
    assert_eq!((accepted.status, accepted.is_whole), (200, false));
    assert!(begun.elapsed() < Duration::from_secs(3));
    let head = "HTTP/1.1 500 X\r\nRetry-After: 7\r\nContent-Length: 9000000\r\n\r\n";
    let body = [b"a\x00b\x1b[2J\xff\n".as_slice(), &[b'x'; 2_000_000]].concat();
    let answer = post(&sends(at_once([head.as_bytes(), &body].concat())).await).await.unwrap();
    assert_eq!((answer.status, answer.retry_after()), (500, Some(Duration::from_secs(7))));
    assert_eq!((answer.body.len(), answer.is_whole), (1 << 20, false));
    let text = answer.text(4_096);
    assert!(text.starts_with("a\\u0000b\\u001b[2J\u{fffd}\nxxx"), "{}", &text[..40]);
    assert!(text.len() <= 4_096);
}

#[tokio::test]
async fn a_length_that_is_a_lie_makes_a_body_that_is_not_whole() {
    let longer = server(|_, mut stream| async move {
        request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}").await;
    });
    let answer = post(&longer.await).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.is_whole), (b"{}".as_slice(), false));
    let shorter = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 X\r\n\r\n";
    let url = sends(at_once(shorter)).await;
    let client = client("127.0.0.1");
    for _ in 0..2 {
        let answer = client.send(to(&url)).await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (200, b"{}".as_slice()));
    }
    for wrong in ["-1", "x", "2, 3"] {
        let url = sends(at_once(format!("HTTP/1.1 200 OK\r\nContent-Length: {wrong}\r\n\r\n{{}}")));
        unanswered(post(&url.await).await);
    }
}

#[tokio::test]
async fn an_answer_of_another_kind_is_an_answer() {
    let html =
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<h1>x</h1";
    let answer = post(&sends(at_once(html)).await).await.unwrap();
    assert_eq!((answer.status, answer.text(100).as_str()), (502, "<h1>x</h1"));
    let redirect = "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let answer = post(&sends(at_once(redirect)).await).await.unwrap();
    assert_eq!(answer.status, StatusCode::FOUND);
    // Without a length the body ends with the connection.
    let url = server(|_, mut stream| async move {
        request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nall").await;
    });
    let answer = post(&url.await).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.is_whole), (b"all".as_slice(), true));
}

#[tokio::test]
async fn a_head_that_is_too_large_leaves_a_request_unanswered() {
    let lines: String = (0..50).map(|n| format!("X-{n}: {}\r\n", "y".repeat(1_000))).collect();
    let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
    for lines in [lines, many] {
        let url = sends(at_once(format!("HTTP/1.1 200 OK\r\n{lines}\r\n"))).await;
        unanswered(post(&url).await);
    }
}

#[tokio::test]
async fn an_address_that_is_not_public_is_not_connected_to() {
    let url = sends(at_once(EMPTY)).await;
    assert_eq!(post(&url).await.unwrap().status, 200);
    // A name is checked by the address that it resolves to.
    let mut named = url.clone();
    named.set_host(Some("localhost")).unwrap();
    for url in [&url, &named] {
        match client("").send(to(url)).await {
            Err(Error::NotSent { stage: Stage::Address, reason }) => assert_eq!(reason, NOT_PUBLIC),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(post(&named).await.unwrap().status, 200);
}

/// A server that counts connections and answers everything.
async fn counting(connections: &Arc<AtomicUsize>) -> Url {
    let connections = connections.clone();
    server(move |_, mut stream| {
        connections.fetch_add(1, Ordering::SeqCst);
        async move {
            while request(&mut stream).await {
                let _ = stream.write_all(EMPTY.as_bytes()).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_connection_is_used_again_and_at_most_a_few_wait() {
    let connections = Arc::default();
    let url = counting(&connections).await;
    let client = client("127.0.0.1");
    for _ in 0..20 {
        assert_eq!(client.send(to(&url)).await.unwrap().status, 200);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    let origin = origin(&url).unwrap();
    let all = (0..50).map(|_| {
        tokio::spawn({
            let (client, request) = (client.clone(), to(&url));
            async move { client.send(request).await.unwrap().status }
        })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), 200);
    }
    let waiting = std::iter::from_fn(|| client.shared.pool.take(&origin)).count();
    assert!((1..=8).contains(&waiting), "{waiting}");
}

#[tokio::test]
async fn a_connection_that_has_waited_too_long_is_closed() {
    let ended = Arc::new(Notify::new());
    let told = ended.clone();
    let url = server(move |_, mut stream| {
        let told = told.clone();
        async move {
            request(&mut stream).await;
            let _ = stream.write_all(EMPTY.as_bytes()).await;
            assert!(!request(&mut stream).await);
            told.notify_one();
        }
    })
    .await;
    let limits = Limits { idle_for: Duration::from_millis(50), ..Limits::default() };
    let client = Client::new("127.0.0.1".parse().unwrap(), limits);
    assert_eq!(client.send(to(&url)).await.unwrap().status, 200);
    tokio::time::timeout(Duration::from_secs(20), ended.notified()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_closes_between_requests_gets_each_once() {
    let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (opened, got) = (connections.clone(), requests.clone());
    let url = server(move |number, mut stream| {
        opened.fetch_add(1, Ordering::SeqCst);
        let got = got.clone();
        async move {
            if request(&mut stream).await {
                got.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(EMPTY.as_bytes()).await;
            }
            // At once, in good order or not; hyper has seen it or not.
            if number % 2 == 0 {
                reset(stream);
            }
        }
    })
    .await;
    let client = client("127.0.0.1");
    let (mut answered, mut lost) = (0, 0);
    for round in 0..200 {
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        match client.send(to(&url)).await {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                answered += 1;
            }
            // Written to a connection whose end had not arrived yet.
            Err(Error::Unanswered { .. }) => lost += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(answered, requests.load(Ordering::SeqCst), "none is sent twice");
    assert!(lost < 100, "{lost} of 200 unanswered");
    let closes = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let url = sends(at_once(closes)).await;
    for _ in 0..5 {
        assert_eq!(client.send(to(&url)).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_connection_with_a_body_that_was_not_read_is_not_used_again() {
    let url = server(|number, mut stream| async move {
        request(&mut stream).await;
        let length = if number == 0 { 2 << 20 } else { 2 };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(&vec![b'x'; length]).await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = client("127.0.0.1");
    assert!(!client.send(to(&url)).await.unwrap().is_whole);
    assert_eq!(client.send(to(&url)).await.unwrap().body.as_ref(), b"xx");
}

#[tokio::test]
async fn method_headers_and_body_arrive() {
    let (send, mut got) = tokio::sync::mpsc::unbounded_channel();
    let url = server(move |_, mut stream| {
        let send = send.clone();
        async move {
            let mut read = Vec::new();
            while !read.ends_with(b"{}") && stream.read_buf(&mut read).await.unwrap() > 0 {}
            send.send(String::from_utf8(read).unwrap()).unwrap();
            let _ = stream.write_all(EMPTY.as_bytes()).await;
        }
    })
    .await;
    let mut request = to(&url);
    request.method = Method::PUT;
    request.headers.insert("x-one", HeaderValue::from_static("1"));
    request.headers.insert(HOST, HeaderValue::from_static("other.example"));
    client("127.0.0.1").send(request).await.unwrap();
    let text = got.recv().await.unwrap();
    let port = url.port().unwrap();
    assert!(text.starts_with("PUT /hook?key=secret HTTP/1.1\r\n"), "{text}");
    for part in ["x-one: 1\r\n", "content-length: 2\r\n", &format!("host: 127.0.0.1:{port}\r\n")] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("other.example"));
}

/// A caller that answers as it is told, and notes how often it was asked.
struct Answers(Vec<bool>);

impl BeforeWrite for Answers {
    fn allows(&mut self) -> crate::Allowed<'_> {
        let answer = self.0.remove(0);
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_request_that_the_caller_does_not_allow_does_not_leave_and_its_connection_waits() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let url = server(move |_, mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            while request(&mut stream).await {
                if stream.write_all(EMPTY.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    let client = client("127.0.0.1");
    let mut caller = Answers(vec![false, true]);
    let refused = client.send_when(to(&url), &mut caller).await.unwrap_err();
    assert!(matches!(refused, Error::NotSent { stage: Stage::NotAllowed, .. }), "{refused:?}");
    assert_eq!(client.send_when(to(&url), &mut caller).await.unwrap().status, 200);
    assert!(caller.0.is_empty(), "asked once for each");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "the connection had not been written to");
}

#[tokio::test]
async fn a_caller_is_not_asked_without_a_connection() {
    let mut caller = Answers(Vec::new());
    let nowhere: Url = "http://127.0.0.1:1/".parse().unwrap();
    let refused = client("127.0.0.1").send_when(to(&nowhere), &mut caller).await.unwrap_err();
    assert!(matches!(refused, Error::NotSent { stage: Stage::Connect, .. }), "{refused:?}");
}
