//! One POST to an address that an organiser chose, within limits. Nothing of the environment, such as a proxy, has a say.
//!
//! ```text
//!   name ──▶ resolve once ──▶ addresses that may be reached ──▶ connect to one ──▶ TLS by the name ──▶ request ──▶ answer
//!                                └─ none: refused                                                       within 15 s
//! ```
//! The address that was checked is the one that is connected to. A redirect is an answer like any other: it is not followed.

mod answer;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

pub(crate) use self::answer::Answer;
use self::tls::Tls;
use crate::address::NOT_PUBLIC;
use crate::guard::AllowedAddresses;

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;
/// Most bytes of an answer's head, and most headers.
const MOST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 100;

/// How long the parts of a request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Resolving the name and connecting.
    pub(crate) connect: Duration,
    /// Everything.
    pub(crate) whole: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), whole: Duration::from_secs(15) }
    }
}

/// Sends messages.
pub(crate) struct Client {
    allowed: AllowedAddresses,
    tls: Tls,
    limits: Limits,
}

impl Client {
    pub(crate) fn new(allowed: AllowedAddresses) -> Self {
        Self { allowed, tls: Tls::default(), limits: Limits::default() }
    }

    /// The addresses that may be reached besides public ones.
    pub(crate) fn allowed(&self) -> &AllowedAddresses {
        &self.allowed
    }

    /// Sends one message; the error says why there is no answer. It is for the endpoint's owner, so it names no address.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, String> {
        let until = Instant::now() + self.limits.whole;
        match timeout_at(until, self.exchange(url, headers, body, until)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {:?}", self.limits.whole)),
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: String,
        until: Instant,
    ) -> Result<Answer, String> {
        let request = request(url, headers, body)?;
        let stream = match timeout(self.limits.connect, self.connect(url)).await {
            Ok(stream) => stream?,
            Err(_) => return Err(format!("no connection within {:?}", self.limits.connect)),
        };
        if url.scheme() != "https" {
            return send(stream, request, until).await;
        }
        let name = ServerName::try_from(host(url)?).map_err(told)?;
        let stream = self.tls.connector().await.connect(name, stream).await;
        send(stream.map_err(|error| format!("TLS: {error}"))?, request, until).await
    }

    /// Connects to the first address of the host that may be reached and answers.
    async fn connect(&self, url: &Url) -> Result<TcpStream, String> {
        let host = host(url)?;
        let port = url.port_or_known_default().unwrap_or(443);
        let found = lookup_host((host.as_str(), port)).await;
        let found: Vec<SocketAddr> =
            found.map_err(|_| "the name of the host cannot be resolved".to_owned())?.collect();
        let reached = found.iter().filter(|address| self.allowed.reach(address.ip()));
        let reached: Vec<&SocketAddr> = reached.take(MOST_ADDRESSES).collect();
        if reached.is_empty() {
            tracing::debug!(host, ?found, "a webhook leads to addresses that are not public");
            return Err(NOT_PUBLIC.to_owned());
        }
        // An address that does not answer leaves time for the next one.
        let patience = self.limits.connect / reached.len() as u32;
        let mut last = "no connection".to_owned();
        for address in reached {
            match timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = format!("no connection: {}", error.kind()),
                Err(_) => last = format!("no connection within {patience:?}"),
            }
        }
        Err(last)
    }
}

/// The host as text: a name, or an address without brackets.
fn host(url: &Url) -> Result<String, String> {
    match url.host() {
        Some(Host::Domain(name)) => Ok(name.to_owned()),
        Some(Host::Ipv4(address)) => Ok(address.to_string()),
        Some(Host::Ipv6(address)) => Ok(address.to_string()),
        None => Err("the URL has no host".to_owned()),
    }
}

fn request(url: &Url, headers: HeaderMap, body: String) -> Result<Request<Full<Bytes>>, String> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request =
        Request::post(path).header(HOST, host).body(Full::from(body)).map_err(told)?;
    request.headers_mut().extend(headers);
    Ok(request)
}

/// The headers of all messages.
pub(crate) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = concat!("Stampede-Webhooks/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>, until: Instant) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(MOST_HEAD).max_headers(MOST_HEADERS);
    let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(told)?;
    let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
    let response = sender.send_request(request).await;
    Ok(Answer::read(response.map_err(|error| format!("no answer: {error}"))?, until).await)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that reads a request, sends pieces with a pause before each, and then holds the connection.
    async fn server(pieces: Vec<(Duration, Vec<u8>)>) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let pieces = pieces.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    let _ = stream.read(&mut buffer).await;
                    for (pause, piece) in pieces {
                        tokio::time::sleep(pause).await;
                        if stream.write_all(&piece).await.is_err() {
                            return;
                        }
                    }
                    std::future::pending::<()>().await;
                });
            }
        });
        format!("http://127.0.0.1:{port}/hook").parse().unwrap()
    }

    fn client(allowed: &str) -> Client {
        let limits =
            Limits { connect: Duration::from_secs(2), whole: Duration::from_millis(1_500) };
        Client { limits, ..Client::new(allowed.parse().unwrap()) }
    }

    async fn post(url: &Url) -> Result<Answer, String> {
        client("127.0.0.1").post(url, headers(), "{}".to_owned()).await
    }

    fn at_once(text: impl Into<Vec<u8>>) -> Vec<(Duration, Vec<u8>)> {
        vec![(Duration::ZERO, text.into())]
    }

    #[tokio::test]
    async fn an_answer_is_read_up_to_a_limit_and_made_safe() {
        let head = "HTTP/1.1 500 X\r\nRetry-After: 7\r\nContent-Length: 1000000\r\n\r\n";
        let body = [b"a\x00b\x1b[2J\xff\n".as_slice(), &[b'x'; 200_000]].concat();
        let url = server(at_once([head.as_bytes(), &body].concat())).await;
        let answer = post(&url).await.unwrap();
        assert_eq!((answer.status, answer.retry_after), (500, Some(Duration::from_secs(7))));
        assert!(
            answer.text.starts_with("a\\u0000b\\u001b[2J\u{fffd}\nxxx"),
            "{}",
            &answer.text[..40]
        );
        assert!(answer.text.len() <= 4_200, "{}", answer.text.len());
    }

    #[tokio::test]
    async fn an_answer_without_end_is_ended() {
        let slow = std::iter::repeat_n((Duration::from_millis(200), b"H".to_vec()), 100);
        let never = post(&server(slow.collect()).await).await.unwrap_err();
        assert!(never.contains("no answer"), "{never}");
        assert!(post(&server(Vec::new()).await).await.unwrap_err().contains("no answer within"));
        let mut pieces = at_once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        pieces
            .extend(std::iter::repeat_n((Duration::from_millis(100), b"1\r\nx\r\n".to_vec()), 100));
        let begun = Instant::now();
        let accepted = post(&server(pieces).await).await.unwrap();
        assert_eq!(accepted.status, 200, "the status counts, whatever the body does");
        assert!(begun.elapsed() < Duration::from_secs(3));
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_is_refused() {
        let lines: String = (0..50).map(|n| format!("X-{n}: {}\r\n", "y".repeat(1_000))).collect();
        let large = server(at_once(format!("HTTP/1.1 200 OK\r\n{lines}\r\n"))).await;
        assert!(post(&large).await.is_err());
        let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
        let many = server(at_once(format!("HTTP/1.1 200 OK\r\n{many}\r\n"))).await;
        assert!(post(&many).await.is_err());
    }

    #[tokio::test]
    async fn an_address_that_is_not_public_is_not_connected_to() {
        let url = server(at_once("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(post(&url).await.unwrap().status, 200);
        let refused = client("").post(&url, headers(), String::new()).await;
        assert_eq!(refused.unwrap_err(), NOT_PUBLIC);
        // A name is checked by the address that it resolves to.
        let mut named = url.clone();
        named.set_host(Some("localhost")).unwrap();
        let refused = client("").post(&named, headers(), String::new()).await;
        assert_eq!(refused.unwrap_err(), NOT_PUBLIC);
        assert_eq!(post(&named).await.unwrap().status, 200);
        let unknown: Url = "http://no-such-host.invalid/".parse().unwrap();
        assert!(post(&unknown).await.unwrap_err().contains("cannot be resolved"));
    }
}
